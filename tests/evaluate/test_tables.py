"""Tables: the whole text of each form, names that could break it, and results that do not belong side by side."""

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickmix.errors import InputError, SettingError
from clickmix.evaluate import (
    Measure,
    Scores,
    Table,
    bootstrap_interval,
    evaluate,
    paired_t_test,
    student_t_test,
    tabulate,
)


def scores_of(values: list[float], *, measure: str = "ndcg@10", first_query: int = 0) -> Scores:
    """Scores of as many queries, and of two more that were left out."""
    query_ids = np.arange(first_query, first_query + len(values))
    return Scores(Measure.parse(measure), query_ids, np.array(values), 2, "leave-out")


def two_rankers() -> Table:
    mbc = [scores_of([0.5, 0.8, 0.9, 0.5]), scores_of([1.0, 1.0, 0.5, 1.0], measure="mrr")]
    plain = [scores_of([0.4, 0.6, 0.7, 0.5]), scores_of([1.0, 1.0, 1.0, 1.0], measure="mrr")]
    return tabulate({"MBC": mbc, "no_correction": plain}, baseline="no_correction")


def test_a_table_as_text() -> None:
    # differences .1 .2 .2 0: t = .125 / sqrt(.0091667 / 4) = 2.61, p = .08
    assert str(two_rankers()) == (
        "ranker         ndcg@10  w/t/l      mrr  w/t/l\n"
        "---------------------------------------------\n"
        "MBC            0.6750†  3/1/0  0.8750   0/3/1\n"
        "no_correction  0.5500          1.0000\n"
        "\n"
        "ndcg@10: 6 queries, 2 of them without relevant documents (left out).\n"
        "mrr: 6 queries, 2 of them without relevant documents (left out).\n"
        "* p < .01, † p < .1: different from no_correction (paired t-test).\n"
        "w/t/l: wins, ties and losses against no_correction.\n"
    )


def test_a_table_as_markdown() -> None:
    assert two_rankers().markdown() == (
        "| ranker | ndcg@10 | w/t/l | mrr | w/t/l |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| MBC | **0.6750**† | 3/1/0 | 0.8750 | 0/3/1 |\n"
        "| no\\_correction | 0.5500 |  | **1.0000** |  |\n"
        "\n"
        "ndcg@10: 6 queries, 2 of them without relevant documents (left out).\n"
        "mrr: 6 queries, 2 of them without relevant documents (left out).\n"
        "\\* p \\< .01, † p \\< .1: different from no\\_correction (paired t-test).\n"
        "w/t/l: wins, ties and losses against no\\_correction.\n"
    )


def test_a_table_as_latex() -> None:
    assert two_rankers().latex() == (
        "% ndcg@10: 6 queries, 2 of them without relevant documents (left out).\n"
        "% mrr: 6 queries, 2 of them without relevant documents (left out).\n"
        "% * p < .01, † p < .1: different from no_correction (paired t-test).\n"
        "% w/t/l: wins, ties and losses against no_correction.\n"
        "\\begin{tabular}{lrrrr}\n"
        "\\toprule\n"
        "ranker & ndcg@10 & w/t/l & mrr & w/t/l \\\\\n"
        "\\midrule\n"
        "MBC & \\textbf{0.6750}$^\\dagger$ & 3/1/0 & 0.8750 & 0/3/1 \\\\\n"
        "no\\_correction & 0.5500 &  & \\textbf{1.0000} &  \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_a_table_as_json() -> None:
    document = json.loads(two_rankers().json())
    test = paired_t_test([0.5, 0.8, 0.9, 0.5], [0.4, 0.6, 0.7, 0.5])
    assert document["baseline"] == "no_correction"
    assert [(row["ranker"], row["measure"]) for row in document["results"]] == [
        ("MBC", "ndcg@10"),
        ("MBC", "mrr"),
        ("no_correction", "ndcg@10"),
        ("no_correction", "mrr"),
    ]
    assert document["results"][0] == {
        "ranker": "MBC",
        "measure": "ndcg@10",
        "mean": test.first,
        "n": 4,
        "without_relevant": 2,
        "no_relevant": "leave-out",
        "test": {"kind": "paired t-test", "baseline_mean": test.second, "t": test.t, "degrees": 3, "p": test.p},
        "wins": 3,
        "ties": 1,
        "losses": 0,
    }


def test_an_infinite_t_is_null_in_json() -> None:
    table = tabulate({"a": {"ndcg@10": [0.6, 0.6]}, "b": {"ndcg@10": [0.5, 0.5]}}, baseline="b")
    test = json.loads(table.json())["results"][0]["test"]
    assert (test["t"], test["p"]) == (None, 0.0)


def test_a_table_of_independent_runs() -> None:
    runs = {"MBC": {"ndcg@10": [0.760, 0.761, 0.762]}, "AC": {"ndcg@10": [0.750, 0.752, 0.751]}}
    assert tabulate(runs, baseline="AC", test=student_t_test).text() == (
        "ranker  ndcg@10\n"
        "---------------\n"
        "MBC     0.7610*\n"
        "AC      0.7510\n"
        "\n"
        "* p < .01, † p < .1: different from AC (Student's t-test).\n"
    )  # fmt: skip


def test_means_alone_have_no_notes() -> None:
    table = tabulate({"MBC": {"ndcg@10": [0.76, 0.77]}})
    assert table.text() == "ranker  ndcg@10\n---------------\nMBC     0.7650\n"
    assert table.notes == ()


def test_with_a_generator_means_have_intervals() -> None:
    values = [0.5, 0.8, 0.9, 0.4]
    interval = bootstrap_interval(values, rng=np.random.default_rng(5))
    table = tabulate({"MBC": [scores_of(values)]}, rng=np.random.default_rng(5))
    assert table.cells[0][0].interval == interval
    assert table.text().splitlines()[0] == "ranker  ndcg@10     95 % interval"
    assert table.text().splitlines()[2] == f"MBC     0.6500   {interval.low:.4f} to {interval.high:.4f}"
    assert json.loads(table.json())["results"][0]["interval"] == {
        "low": interval.low,
        "high": interval.high,
        "level": 0.95,
    }
    assert r"& 95 \% interval \\" in table.latex()


def test_means_that_look_the_same_are_both_the_best() -> None:
    table = tabulate({"a": {"mrr": [0.5, 0.5]}, "b": {"mrr": [0.5, 0.50001]}})
    assert table.markdown().count("**0.5000**") == 2


@pytest.mark.parametrize(
    ("no_relevant", "note"),
    [
        ("leave-out", "ndcg@10: 2 queries, 1 of them without relevant documents (left out)."),
        ("zero", "ndcg@10: 2 queries, 1 of them without relevant documents (counted as 0)."),
        ("one", "ndcg@10: 2 queries, 1 of them without relevant documents (counted as 1)."),
    ],
)
def test_the_notes_say_what_happened_to_queries_without_relevant_documents(no_relevant: Any, note: str) -> None:
    table = tabulate({"MBC": [evaluate([1, 2], [0, 3], ["a", "b"], no_relevant=no_relevant)]})
    assert table.notes == (note,)


# Names that could break a table


def test_names_are_escaped_in_latex() -> None:
    table = tabulate({r"50 % & 1_000 \$ #{~^}†": {"mrr": [0.5, 0.5]}})
    name = r"50 \% \& 1\_000 \textbackslash{}\$ \#\{\textasciitilde{}\textasciicircum{}\}\dag{}"
    assert table.latex().splitlines()[4] == name + r" & \textbf{0.5000} \\"


@settings(deadline=None)
@given(st.text(min_size=1).filter(str.isprintable))
def test_any_name_is_one_cell_in_markdown(name: str) -> None:
    row = tabulate({name: {"mrr": [0.5, 0.5]}}).markdown().splitlines()[2]
    cells = re.split(r"(?<!\\)(?:\\\\)*\|", row)  # at bars that no backslash escapes
    assert len(cells) == 4
    assert cells[2] == " **0.5000** "
    assert "<" not in re.sub(r"\\.", "", row)  # so no tag either


@pytest.mark.parametrize("name", ["", "two\nlines", "\x1b[31mred"])
def test_names_that_are_not_printable_are_refused(name: str) -> None:
    message = f"{name!r} cannot name a row or column of a table. Use printable text on one line."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        tabulate({name: [scores_of([0.5, 0.6])]})


# Results that do not belong side by side


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({}, "No results: expected at least one ranker with its scores."),
        ({"a": []}, "No results: expected at least one measure of each ranker."),
        (
            {"a": [scores_of([0.5]), scores_of([0.5])]},
            "ndcg@10, ndcg@10: a measure appears twice. Give each measure once.",
        ),
        (
            {"a": [scores_of([0.5])], "b": [scores_of([0.5], measure="mrr")]},
            "b: measured by mrr; the first ranker by ndcg@10.",
        ),
        (
            {"a": [scores_of([0.5, 0.6])], "b": [scores_of([0.5, 0.6], first_query=1)]},
            "The queries differ: 2 in the first, 2 in the second, 1 in both. Evaluate both on the same queries.",
        ),
        (
            {"a": {"mrr": [0.5, float("nan")]}},
            "results: expected one finite number per query or run, and at least one.",
        ),
    ],
)
def test_results_that_do_not_belong_side_by_side_are_refused(results: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        tabulate(results)


def test_an_unknown_baseline_is_refused() -> None:
    message = "baseline: unknown ranker 'AC'. The rankers are MBC, none."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        tabulate({"MBC": [scores_of([0.5])], "none": [scores_of([0.5])]}, baseline="AC")
