"""Pages of experiments: what tables and figures say of given results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clickmix.evaluate import Table, student_t_test
from clickmix.features import Collection
from clickmix.lab.collections import synthetic_collection
from clickmix.lab.experiments.figure1 import BINS, Pictures
from clickmix.lab.experiments.labels import TITLES
from clickmix.lab.experiments.page_files import latex, markdown, text
from clickmix.lab.experiments.paper import EFFICIENCY, EXPERIMENTS, FIGURE3, experiment
from clickmix.lab.experiments.ranking_tables import RankingTable, paper_listings, whole_runs
from clickmix.lab.experiments.request import Request
from clickmix.lab.experiments.task import Results, Scenario
from clickmix.report import Line, Listing, page_html

SMALL = RankingTable("table1", "A table", (Scenario(), Scenario(user="pbm-eta2")), ("none", "ideal-ac", "mbc", "truth"))
LEVELS = {"none": 0.5, "ideal-ac": 0.6, "mbc": 0.65, "truth": 0.7}


@pytest.fixture(scope="module")
def collection() -> Collection:
    return synthetic_collection(queries=40, rng=np.random.default_rng(0))


def results_of(config: RankingTable, runs: int, *, dnn: float = 0.05) -> Results:
    """A level for each kind of labels, a little more for every run, and more for the DNN."""
    tasks = config.tasks(Request(config.name, runs=runs))
    return {
        task.key: {
            "ndcg@10": LEVELS[task.labels] + 0.001 * task.run + dnn * (task.ranker == "dnn"),
            "label error": 0.7 - LEVELS[task.labels],
        }
        for task in tasks
    }


def tables(
    config: RankingTable, request: Request, collection: Collection, results: Results
) -> dict[str, list[Table | Listing]]:
    return {section.title: list(section.tables) for section in config.page(request, collection, results).sections}


class TestTables:
    def test_means_tests_and_marks(self, collection: Collection) -> None:
        table = tables(SMALL, Request("table1", runs=3), collection, results_of(SMALL, 3))["LambdaMART, 3 runs"][0]
        assert isinstance(table, Table)
        assert table.rankers == ("no correction", "Ideal-AC", "MBC", "true relevance")
        assert table.measures == ("eta 1, binarized", "eta 2, binarized")
        assert table.cells[2][0].mean == pytest.approx(0.651)
        assert table.baseline == "Ideal-AC"
        assert table.cells[2][0].test == student_t_test([0.65, 0.651, 0.652], [0.6, 0.601, 0.602])
        assert table.cells[2][0].mark == "*"

    def test_ac_is_what_others_are_compared_with(self, collection: Collection) -> None:
        config = replace(SMALL, labels=("none", "ideal-ac", "ac", "mbc"))
        results = {
            task.key: {"ndcg@10": 0.5 + 0.01 * task.run, "label error": 0.1}
            for task in config.tasks(Request(config.name, runs=2))
        }
        table = tables(config, Request("table1", runs=2), collection, results)["LambdaMART, 2 runs"][0]
        assert isinstance(table, Table)
        assert table.baseline == "AC"

    def test_a_single_run_has_no_test(self, collection: Collection) -> None:
        table = tables(SMALL, Request("table1", runs=1), collection, results_of(SMALL, 1))["LambdaMART, 1 run"][0]
        assert isinstance(table, Table)
        assert table.baseline is None

    def test_only_whole_runs_count(self, collection: Collection) -> None:
        results = results_of(SMALL, 3)
        del results[SMALL.task(1, Scenario(user="pbm-eta2"), "mbc", "dnn").key]
        request = Request("table1", runs=3)
        assert whole_runs(SMALL, request, results, "dnn") == [0, 2]
        assert whole_runs(SMALL, request, results, "lambdamart") == [0, 1, 2]
        assert "DNN, 2 runs" in tables(SMALL, request, collection, results)

    def test_the_way_from_no_correction_to_true_relevance(self, collection: Collection) -> None:
        found = tables(SMALL, Request("table1", runs=3), collection, results_of(SMALL, 3))["LambdaMART, 3 runs"][2]
        assert isinstance(found, Listing)
        assert found.rows == [["Ideal-AC", "50%", "50%"], ["MBC", "75%", "75%"]]

    def test_where_there_is_no_way_to_close_the_table_says_so(self, collection: Collection) -> None:
        results = results_of(SMALL, 1) | {
            SMALL.task(0, Scenario(), "truth", "lambdamart").key: {"ndcg@10": 0.4, "label error": 0.0}
        }
        found = tables(SMALL, Request("table1", runs=1), collection, results)["LambdaMART, 1 run"][1]
        assert isinstance(found, Listing)
        assert found.rows == [["Ideal-AC", "-", "-"], ["MBC", "-", "-"]]
        assert found.notes == [
            "-: rankers trained on true relevance did no better than on no correction, so there is no gap to close."
        ]

    def test_the_better_ranker_of_each_column(self, collection: Collection) -> None:
        results = results_of(SMALL, 2)
        worse = SMALL.task(0, Scenario(), "mbc", "dnn").key, SMALL.task(1, Scenario(), "mbc", "dnn").key
        results |= {key: {"ndcg@10": 0.1, "label error": 0.1} for key in worse}
        table = tables(SMALL, Request("table1", runs=2), collection, results)[
            "The better of the rankers, 2 runs of both"
        ][0]
        assert isinstance(table, Table)
        mbc = table.cells[table.rankers.index("MBC")]
        assert [cell.mean for cell in mbc] == pytest.approx([0.6505, 0.7005])  # LambdaMART's, then the DNN's

    def test_one_ranker_has_no_better_one(self, collection: Collection) -> None:
        request = Request("table1", runs=2, rankers=("lambdamart",))
        results = {key: found for key, found in results_of(SMALL, 2).items() if "lambdamart" in key}
        assert list(tables(SMALL, request, collection, results)) == ["LambdaMART, 2 runs", "Labels"]

    def test_the_error_of_labels_is_shown(self, collection: Collection) -> None:
        (found,) = tables(SMALL, Request("table1", runs=1), collection, results_of(SMALL, 1))["Labels"]
        assert isinstance(found, Listing)
        assert found.rows[2] == ["MBC", "0.0500", "0.0500"]

    def test_truth_is_trained_on_once_for_all_users(self) -> None:
        keys = {SMALL.task(0, scenario, "truth", "dnn").key for scenario in SMALL.scenarios}
        assert keys == {"ranking, run 0, pbm-eta1-binarized-8000000, truth, dnn"}

    @pytest.mark.parametrize(
        ("name", "number"), [("table1", "0.453"), ("table2", "0.474\\*")], ids=["table1", "table2"]
    )
    def test_the_papers_numbers_stand_beside_the_same_collection(
        self, collection: Collection, name: str, number: str
    ) -> None:
        config = EXPERIMENTS[name]
        assert isinstance(config, RankingTable)
        found = paper_listings(config, "MSLR-WEB30K", queries=18_919, top=None)
        assert number.replace("\\", "") in [cell for listing in found for row in listing.rows for cell in row]
        assert paper_listings(config, "MSLR-WEB30K", queries=18_919, top=50) == []
        assert paper_listings(config, "synthetic, 18919 training queries", queries=18_919, top=None) == []
        part = replace(collection, name="MSLR-WEB30K")  # by its name, but not by its size
        request = Request(name, runs=1)
        results = {task.key: {"ndcg@10": 0.5, "label error": 0.1} for task in config.tasks(request)}
        text = markdown(config.page(request, part, results), {})
        assert "The paper" not in text.replace("The paper's reading", "")

    def test_the_better_ranker_is_of_the_runs_that_both_have(self, collection: Collection) -> None:
        results = {key: found for key, found in results_of(SMALL, 3).items() if not ("run 2" in key and "dnn" in key)}
        request = Request("table1", runs=3)
        assert list(tables(SMALL, request, collection, results))[:3] == [
            "LambdaMART, 3 runs",
            "DNN, 2 runs",
            "The better of the rankers, 2 runs of both",
        ]


class TestOutputs:
    def test_text_markdown_latex_and_html(self, collection: Collection) -> None:
        page = SMALL.page(Request("table1", runs=2), collection, results_of(SMALL, 2))
        assert text(page).startswith(
            "LambdaMART, 2 runs\n\n"
            "nDCG@10         eta 1, binarized  eta 2, binarized\n"
            "--------------------------------------------------\n"
            "no correction            0.5005*           0.5005*\n"
        )
        assert "| MBC | 0.6505\\* | 0.6505\\* |" in markdown(page, {})
        assert r"MBC & 0.6505$^*$ & 0.6505$^*$ \\" in latex(page)
        assert "0.6505*" in page_html(page)

    def test_curves_over_clicks(self, collection: Collection) -> None:
        config = EXPERIMENTS["figure2"]
        assert isinstance(config, RankingTable)
        request = Request("figure2", runs=2)
        results = {task.key: {"ndcg@10": 0.5 + 0.1 * task.run} for task in config.tasks(request)}
        (figure,) = config.page(request, collection, results).sections[0].figures
        lines = figure.panels[0].marks
        assert [line.name for line in lines] == [TITLES[name] for name in config.labels]
        assert lines[0].x == tuple(scenario.clicks_on(collection.train) for scenario in config.scenarios)  # type: ignore[union-attr]
        assert lines[0].y == pytest.approx([0.55] * 7)  # type: ignore[union-attr]

    def test_pictures(self, collection: Collection) -> None:
        config = EXPERIMENTS["figure1"]
        assert isinstance(config, Pictures)
        request = Request("figure1")
        empty = {"mean": [None] * BINS, "low": [None] * BINS, "high": [None] * BINS}
        some = {"mean": [0.5] * BINS, "low": [0.4] * BINS, "high": [0.6] * BINS}
        result = {
            "edges": np.linspace(0, 1, BINS + 1).tolist(),
            "relevant": [1] * BINS,
            "not relevant": [2] * BINS,
            **dict.fromkeys(config.labels, some),
            config.labels[0]: empty,
        }
        page = config.page(request, collection, {task.key: result for task in config.tasks(request)})
        assert [figure.title for figure in page.sections[0].figures] == ["Position 1", "Position 9"]
        assert "<svg" in page_html(page)


def test_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(ValueError, match=r"There is no experiment named 'table3'\. Choose one of table1, table2, "):
        experiment("table3")


class TestRegressionPages:
    def test_curves_by_iteration_end_where_regression_em_stopped(self, collection: Collection) -> None:
        config, request = FIGURE3, Request("figure3", runs=2)
        results: Results = {task.key: {"ndcg@10": 0.5 + 0.1 * task.run} for task in config.tasks(request)}
        for run in range(2):
            stopped = {"iterations": 40 - run, "stopped": "sudden drop", "kept": 39 - run}
            results |= {need.key: stopped for task in config.run(run) for need in task.needs if need.kind == "estimate"}
        late, last = config.iterations[-2:]
        results[config.task(1, "dnn-sigmoid", late).key] = {"ndcg@10": None}
        results |= {config.task(run, "dnn-sigmoid", last).key: {"ndcg@10": None} for run in range(2)}
        page = config.page(request, collection, results)
        curve = page.sections[0].figures[0].panels[0].marks[0]
        assert isinstance(curve, Line)
        assert curve.name == "dnn-sigmoid"
        assert curve.y[:-2] == pytest.approx([0.55] * 8)
        assert curve.y[-2] == 0.5  # run 0 alone
        assert np.isnan(curve.y[-1])
        endings = page.sections[1].tables[0]
        assert isinstance(endings, Listing)
        assert endings.rows[1] == ["dnn-sigmoid", "2", "39", "sudden drop", "38"]
        assert "nan" not in page_html(page).lower().replace("font", "")

    def test_timings_are_ratios_of_medians_over_thirty_iterations(self, collection: Collection) -> None:
        config, request = EFFICIENCY, Request("efficiency", runs=1)
        slow = {"seconds": 99.0, "iterations": 10, "regression seconds": 20.0, "step seconds": 0.1}
        results: Results = {task.key: slow if task.regression else {"seconds": 0.5} for task in config.tasks(request)}
        listing = config.page(request, collection, results).sections[0].tables[0]
        assert isinstance(listing, Listing)
        assert listing.rows[0] == ["MBC", "-", "-", "0.50", "1.0", "-"]
        assert listing.rows[2] == ["AC, dnn-sigmoid", "2.000", "0.0100", "60.3", "121", "0.60"]
