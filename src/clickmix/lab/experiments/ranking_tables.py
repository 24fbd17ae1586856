"""Rankings as tables and curves: nDCG@10 by labels and scenario (tables 1 and 2, figure 2).   tasks, results -> Page"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from statistics import mean

import numpy as np

from clickmix.errors import SettingError
from clickmix.evaluate import Table, bootstrap_interval, student_t_test, tabulate
from clickmix.features import Collection
from clickmix.lab.experiments.labels import ORACLES
from clickmix.lab.experiments.labels import TITLES as LABEL_TITLES
from clickmix.lab.experiments.request import RANKERS, Request
from clickmix.lab.experiments.task import LABEL_ERROR, MEASURE, Experiment, Results, Scenario, Task
from clickmix.lab.self_debiasing import SELF_DEBIASING
from clickmix.lab.self_debiasing import TITLES as RANKER_TITLES
from clickmix.lab.users import preset_title
from clickmix.report import Axis, Figure, Line, Listing, Page, Panel, Section

Values = dict[str, dict[str, list[float]]]  # nDCG@10 of complete runs, by labels and column
BASELINES = ("ac", "ideal-ac", "none")  # others are compared with the first of these that is there
REGRESSION = "dnn-sigmoid"  # the paper's choice for AC
NO_WAY = "-"
TITLES = LABEL_TITLES | RANKER_TITLES
OWN_NAMES = "AC: affine correction; MBC: the paper's mixture-based correction."


@dataclass(frozen=True)
class RankingTable(Experiment):
    """Rankers trained on each kind of label for each kind of user, in several runs: tables, and curves over clicks."""

    scenarios: tuple[Scenario, ...]
    labels: tuple[str, ...]
    rankers: tuple[str, ...] = ("lambdamart", "dnn")

    by_ranker = True
    measures_rankings = True

    def tasks(self, request: Request) -> list[Task]:
        """All tasks, run by run, so that results of the first run come first."""
        chosen = [ranker for ranker in self.rankers if ranker in request.rankers]
        if not chosen:
            raise SettingError(f"{self.name} is made with {' and '.join(self.rankers)}, not with {request.rankers[0]}.")
        return [task for run in range(request.runs) for ranker in chosen for task in self.run(run, ranker)]

    def run(self, run: int, ranker: str) -> Iterator[Task]:
        """The tasks of one run of one ranker."""
        done = set()
        for scenario in self.scenarios:
            for labels in self.labels:
                task = self.task(run, scenario, labels, ranker)
                if task not in done:
                    done.add(task)
                    yield task

    def task(self, run: int, scenario: Scenario, labels: str, ranker: str) -> Task:
        """The task behind one number. True relevance does not depend on clicks, so one ranker is trained on it."""
        if labels == "truth":
            scenario = next(other for other in self.scenarios if other.relevance == scenario.relevance)
        return Task("ranking", run, scenario, labels, ranker, REGRESSION if labels == "ac" else "")

    def page(self, request: Request, collection: Collection, results: Results) -> Page:
        """nDCG@10 by labels and users, ranker by ranker; the better of two; the paper's numbers if they compare."""
        values = {ranker: values_of(self, request, results, ranker, column_name) for ranker in self.rankers}
        values = {ranker: found for ranker, found in values.items() if found}
        sections = [ranker_section(RANKERS[ranker], found) for ranker, found in values.items()]
        both = set.intersection(*(set(whole_runs(self, request, results, ranker)) for ranker in values))
        if len(values) > 1 and both:
            common = {ranker: values_of(self, request, results, ranker, column_name, runs=both) for ranker in values}
            sections.append(_best_section(common))
        errors = [values_of(self, request, results, ranker, column_name, LABEL_ERROR) for ranker in values]
        sections.append(Section("Labels", tables=[_errors(errors[0])]))
        paper = paper_listings(self, collection.name, queries=collection.train.queries, top=request.top)
        if paper:
            sections.append(Section("The paper's own numbers", tables=paper))
        return Page(self.title, prose=_prose(self), sections=sections)


@dataclass(frozen=True)
class ClickCurves(RankingTable):
    """The same numbers by number of clicks, as curves; scenarios differ only in their clicks."""

    def page(self, request: Request, collection: Collection, results: Results) -> Page:
        """nDCG@10 by labels and number of clicks, as curves and as a table."""

        def clicks(scenario: Scenario) -> str:
            return f"{scenario.clicks_on(collection.train):,} clicks"

        values = values_of(self, request, results, self.rankers[0], clicks)
        section = ranker_section(RANKERS[self.rankers[0]], values)
        across = [scenario.clicks_on(collection.train) for scenario in self.scenarios]
        lines = [
            line_of_means(TITLES[name], across, list(columns.values()), points=name != "truth")
            for name, columns in values.items()
        ]
        figure = Figure(
            f"nDCG@10 by number of clicks on {collection.train.queries:,} training queries",
            Axis("clicks", log=True),
            (Panel(Axis("nDCG@10 on the test queries"), tuple(lines), height=220),),
            "Means over runs, with 95 % intervals.",
        )
        curves = Section("Curves", figures=[figure])
        return Page(self.title, prose=_prose(self), sections=[curves, section])


def line_of_means(name: str, across: Sequence[int], samples: Sequence[Sequence[float]], *, points: bool = True) -> Line:
    """The means of samples with their intervals; the line breaks where a sample is empty."""
    intervals = [bootstrap_interval(sample, rng=np.random.default_rng(0)) if sample else None for sample in samples]
    return Line(
        name,
        across,
        [mean(sample) if sample else np.nan for sample in samples],
        [interval.low if interval else np.nan for interval in intervals],
        [interval.high if interval else np.nan for interval in intervals],
        points=points,
    )


def column_name(scenario: Scenario) -> str:
    """A column of a table, in words."""
    return f"{preset_title(scenario.user)}, {scenario.relevance}"


def whole_runs(table: RankingTable, request: Request, results: Results, ranker: str) -> list[int]:
    """The runs with every number of this ranker: only these count, so that all means are over the same runs."""
    runs = range(request.runs)
    return [run for run in runs if all(task.key in results for task in table.run(run, ranker))]


def values_of(
    table: RankingTable,
    request: Request,
    results: Results,
    ranker: str,
    column: Callable[[Scenario], str],
    measure: str = MEASURE,
    *,
    runs: Container[int] | None = None,
) -> Values:
    """nDCG@10 by labels and column, one number per complete run (of `runs`); empty if no run is complete."""
    runs = [run for run in whole_runs(table, request, results, ranker) if runs is None or run in runs]
    return {
        labels: {
            column(scenario): [
                results[table.task(run, scenario, labels, ranker).key].get(measure, np.nan) for run in runs
            ]
            for scenario in table.scenarios
        }
        for labels in (table.labels if runs else ())
    }


def ranker_section(title: str, values: Values) -> Section:
    """The means with the paper's marks, their intervals, and how much of the gap to true relevance is closed."""
    runs = len(next(iter(next(iter(values.values())).values())))
    tables: list[Table | Listing] = [compared(values)]
    if runs > 1:
        tables.append(_intervals(values))
    if {"none", "truth"} <= set(values):
        tables.append(_way_closed(values))
    return Section(f"{title}, {runs} run{'s' * (runs > 1)}", tables=tables)


def compared(values: Values) -> Table:
    """The means, with Student's t-test over runs against AC if there are several."""
    runs = min(len(sample) for columns in values.values() for sample in columns.values())
    baseline = next((TITLES[name] for name in BASELINES if name in values), None) if runs > 1 else None
    rows = {TITLES[name]: columns for name, columns in values.items()}
    return tabulate(rows, baseline=baseline, test=student_t_test, head="nDCG@10")


def _intervals(values: Values) -> Listing:
    def text(sample: Sequence[float]) -> str:
        interval = bootstrap_interval(sample, rng=np.random.default_rng(0))
        return f"{interval.low:.4f} to {interval.high:.4f}"

    return _listing("95 % intervals of the means", values, {name: _each(values[name], text) for name in values})


def _errors(values: Values) -> Listing:
    def text(sample: Sequence[float]) -> str:
        return f"{np.mean(sample):.4f}"

    rows = {name: _each(values[name], text) for name in values if name not in ("truth", *SELF_DEBIASING)}
    return _listing("Root mean squared error of the labels, against the true relevance", values, rows)


def _way_closed(values: Values) -> Listing:
    """(nDCG - that of no correction) / (that of true relevance - that of no correction), from the means."""
    rows = {}
    for name in values:
        if name not in ("none", "truth"):
            rows[name] = [_share(values, name, column) for column in values[name]]
    found = _listing("How much of the gap from no correction to true relevance is closed", values, rows)
    blank = any(cell == NO_WAY for cells in rows.values() for cell in cells)
    note = (
        f"{NO_WAY}: rankers trained on true relevance did no better than on no correction, so there is no gap to close."
    )
    return replace(found, notes=[note]) if blank else found


def _share(values: Values, name: str, column: str) -> str:
    none, found, truth = (float(np.mean(values[row][column])) for row in ("none", name, "truth"))
    return f"{(found - none) / (truth - none):.0%}" if truth > none else NO_WAY


def _each(columns: Mapping[str, list[float]], text: Callable[[Sequence[float]], str]) -> list[str]:
    return [text(sample) for sample in columns.values()]


def _listing(caption: str, values: Values, rows: Mapping[str, Sequence[str]]) -> Listing:
    columns = list(next(iter(values.values())))
    numbers = frozenset(range(1, len(columns) + 1))
    texts = [[TITLES[name], *cells] for name, cells in rows.items()]
    return Listing(["labels", *columns], texts, caption=caption, numbers=numbers)


def _best_section(values: Mapping[str, Values]) -> Section:
    """As the paper reports it: for each correction and column, the ranker with the higher mean."""
    first = next(iter(values.values()))
    best: Values = {}
    for name, columns in first.items():
        best[name] = {
            column: max((found[name][column] for found in values.values()), key=lambda sample: float(np.mean(sample)))
            for column in columns
        }
    prose = ["As in the paper, the ranker counts as a setting of the correction, chosen by the test means."]
    runs = len(next(iter(next(iter(best.values())).values())))
    title = f"The better of the rankers, {runs} run{'s' * (runs > 1)} of both"
    return Section(title, prose=prose, tables=[compared(best)])


def paper_listings(table: RankingTable, collection: str, *, queries: int, top: int | None) -> list[Listing]:
    """The paper's table on the same collection, ranker by ranker; empty for other collections, parts or lists."""
    paper = json.loads((files("clickmix.lab.experiments") / "paper.json").read_text(encoding="utf-8"))
    if paper["training_queries"].get(collection) != queries or top is not None:
        return []
    found: dict[str, dict[str, list[str]]] = paper.get(table.name, {}).get(collection, {})
    columns = [column_name(scenario) for scenario in table.scenarios]
    return [
        Listing(
            ["nDCG@10", *columns],
            [[TITLES[name], *cells] for name, cells in rows.items()],
            caption=RANKERS[ranker],
            notes=[f"{paper['source']}, {paper[table.name]['caption']}."],
            numbers=frozenset(range(1, len(columns) + 1)),
        )
        for ranker, rows in found.items()
    ]


def _prose(table: RankingTable) -> list[str]:
    oracles = ", ".join(TITLES[name] for name in table.labels if name in ORACLES)
    return [
        "Rankers trained on labels from simulated clicks, measured by nDCG@10 on the grades of test queries; queries "
        f"without relevant documents are left out. {OWN_NAMES if 'ac' in table.labels else ''}".rstrip(),
        f"Made with knowledge that nobody has about a real log: {oracles}.",
    ]
