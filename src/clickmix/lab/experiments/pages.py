"""Pages of experiments: results in, a page of tables and figures out.   results -> Page"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from clickmix.evaluate import Table, bootstrap_interval, student_t_test, tabulate
from clickmix.features import Collection
from clickmix.lab.experiments.configs import Grid
from clickmix.lab.experiments.labels import ORACLES, TITLES
from clickmix.lab.experiments.study import RANKERS, Setting, Study
from clickmix.lab.experiments.tasks import Results
from clickmix.lab.experiments.work import LABEL_ERROR, MEASURE
from clickmix.report import Axis, Figure, Line, Listing, Page, Panel, Section

Values = dict[str, dict[str, list[float]]]  # nDCG@10 of the whole runs, by labels and column
BASELINES = ("ac", "ideal-ac", "none")  # what others are compared with: the first that is there
OWN_NAMES = "AC: affine correction; MBC: the paper's mixture-based correction."


def table_page(config: Grid, study: Study, collection: Collection, results: Results) -> Page:
    """nDCG@10 by labels and users, ranker by ranker; the better of two; the paper's numbers where they compare."""
    values = {ranker: grid_values(config, study, results, ranker, column_name) for ranker in config.rankers}
    values = {ranker: found for ranker, found in values.items() if found}
    sections = [ranker_section(RANKERS[ranker], found) for ranker, found in values.items()]
    both = set.intersection(*(set(whole_runs(config, study, results, ranker)) for ranker in values))
    if len(values) > 1 and both:
        common = {ranker: grid_values(config, study, results, ranker, column_name, runs=both) for ranker in values}
        sections.append(_best_section(common))
    errors = [grid_values(config, study, results, ranker, column_name, LABEL_ERROR) for ranker in values]
    sections.append(Section("Labels", tables=[_errors(errors[0])]))
    paper = paper_listings(config, collection.name, queries=collection.train.queries, top=study.top)
    if paper:
        sections.append(Section("The paper's own numbers", tables=paper))
    return Page(config.title, prose=_prose(config), sections=sections)


def clicks_page(config: Grid, study: Study, collection: Collection, results: Results) -> Page:
    """nDCG@10 by labels and number of clicks, as curves and as a table."""

    def clicks(setting: Setting) -> str:
        return f"{setting.clicks_on(collection.train):,} clicks"

    values = grid_values(config, study, results, config.rankers[0], clicks)
    section = ranker_section(RANKERS[config.rankers[0]], values)
    across = [setting.clicks_on(collection.train) for setting in config.settings]
    lines = []
    for name, columns in values.items():
        intervals = [bootstrap_interval(sample, rng=np.random.default_rng(0)) for sample in columns.values()]
        means = [float(np.mean(sample)) for sample in columns.values()]
        low, high = [interval.low for interval in intervals], [interval.high for interval in intervals]
        lines.append(Line(TITLES[name], tuple(across), tuple(means), tuple(low), tuple(high), points=name != "truth"))
    figure = Figure(
        f"nDCG@10 by number of clicks on {collection.train.queries:,} training queries",
        Axis("clicks", log=True),
        (Panel(Axis("nDCG@10 on the test queries"), tuple(lines), height=220),),
        "Means over runs, with 95 % intervals.",
    )
    curves = Section("Curves", figures=[figure])
    return Page(config.title, prose=_prose(config), sections=[curves, section])


def column_name(setting: Setting) -> str:
    """A column of a table, in words."""
    return f"{f'eta {setting.eta:g}' if setting.user == 'pbm' else setting.user.upper()}, {setting.relevance}"


def whole_runs(config: Grid, study: Study, results: Results, ranker: str) -> list[int]:
    """The runs in which every number of this ranker is there: only these count, so that all means are of the same."""
    runs = range(study.runs)
    return [run for run in runs if all(task.key in results for task in config.run(run, ranker))]


def grid_values(
    config: Grid,
    study: Study,
    results: Results,
    ranker: str,
    column: Callable[[Setting], str],
    measure: str = MEASURE,
    *,
    runs: Container[int] | None = None,
) -> Values:
    """nDCG@10 by labels and column, one number per whole run (of `runs`); nothing where there is no whole run."""
    runs = [run for run in whole_runs(config, study, results, ranker) if runs is None or run in runs]
    return {
        labels: {
            column(setting): [results[config.task(run, setting, labels, ranker).key][measure] for run in runs]
            for setting in config.settings
        }
        for labels in (config.labels if runs else ())
    }


def ranker_section(title: str, values: Values, *, prose: Sequence[str] = ()) -> Section:
    """The means with the paper's marks, their intervals, and how much of the way to true relevance is closed."""
    runs = len(next(iter(next(iter(values.values())).values())))
    tables: list[Table | Listing] = [compared(values)]
    if runs > 1:
        tables.append(_intervals(values))
    if {"none", "truth"} <= set(values):
        tables.append(_way_closed(values))
    return Section(f"{title}, {runs} run{'s' * (runs > 1)}", prose=prose, tables=tables)


def compared(values: Values) -> Table:
    """The means, with Student's t-test over runs against AC where there are several."""
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

    rows = {name: _each(values[name], text) for name in values if name != "truth"}
    return _listing("Root mean squared error of the labels, against the true relevance", values, rows)


def _way_closed(values: Values) -> Listing:
    """(nDCG - that of no correction) / (that of true relevance - that of no correction), of the means."""
    rows = {}
    for name in values:
        if name not in ("none", "truth"):
            rows[name] = [_share(values, name, column) for column in values[name]]
    return _listing("How much of the way from no correction to true relevance is closed", values, rows)


def _share(values: Values, name: str, column: str) -> str:
    none, found, truth = (float(np.mean(values[row][column])) for row in ("none", name, "truth"))
    return f"{(found - none) / (truth - none):.0%}" if truth > none else ""  # else there is no way to go


def _each(columns: Mapping[str, list[float]], text: Callable[[Sequence[float]], str]) -> list[str]:
    return [text(sample) for sample in columns.values()]


def _listing(caption: str, values: Values, rows: Mapping[str, Sequence[str]]) -> Listing:
    columns = list(next(iter(values.values())))
    numbers = frozenset(range(1, len(columns) + 1))
    texts = [[TITLES[name], *cells] for name, cells in rows.items()]
    return Listing(["labels", *columns], texts, caption=caption, numbers=numbers)


def _best_section(values: Mapping[str, Values]) -> Section:
    """The paper's reading: for each correction and column the ranker with the higher mean."""
    first = next(iter(values.values()))
    best: Values = {}
    for name, columns in first.items():
        best[name] = {
            column: max((found[name][column] for found in values.values()), key=lambda sample: float(np.mean(sample)))
            for column in columns
        }
    prose = ["The paper's reading: the ranker counts as a setting of the correction, chosen by the test means."]
    runs = len(next(iter(next(iter(best.values())).values())))
    title = f"The better of the rankers, {runs} run{'s' * (runs > 1)} of both"
    return Section(title, prose=prose, tables=[compared(best)])


def paper_listings(config: Grid, collection: str, *, queries: int, top: int | None) -> list[Listing]:
    """The paper's table on the same collection, ranker by ranker; nothing for others, or parts, or other lists."""
    paper = json.loads((files("clickmix.lab.experiments") / "paper.json").read_text(encoding="utf-8"))
    if paper["training_queries"].get(collection) != queries or top is not None:
        return []
    found: dict[str, dict[str, list[str]]] = paper.get(config.name, {}).get(collection, {})
    columns = [column_name(setting) for setting in config.settings]
    return [
        Listing(
            ["nDCG@10", *columns],
            [[TITLES[name], *cells] for name, cells in rows.items()],
            caption=RANKERS[ranker],
            notes=[f"{paper['source']}, {paper[config.name]['caption']}."],
            numbers=frozenset(range(1, len(columns) + 1)),
        )
        for ranker, rows in found.items()
    ]


def _prose(config: Grid) -> list[str]:
    oracles = ", ".join(TITLES[name] for name in config.labels if name in ORACLES)
    return [
        "Rankers trained on labels from simulated clicks, measured by nDCG@10 on the grades of test queries; queries "
        f"without relevant documents are left out. {OWN_NAMES if 'ac' in config.labels else ''}".rstrip(),
        f"Made with what nobody knows of a real log: {oracles}.",
    ]


def circumstances(
    study: Study, collection: Collection, settings: Sequence[Setting], versions: Sequence[Mapping[str, str]]
) -> list[str]:
    """How the numbers came about."""
    clicks = sorted({setting.clicks_on(collection.train) for setting in settings})
    splits: dict[str, Any] = {"training": collection.train, "validation": collection.vali, "test": collection.test}
    sizes = (f"{split.queries:,} {name}" for name, split in splits.items())
    made = [", ".join(f"{name} {version}" for name, version in sorted(each.items())) for each in versions]
    lists = "the paper's length" if study.top is None else f"length {study.top}"
    return [
        f"Command: {study.command}",
        f"Collection: {collection.name}; {', '.join(sizes)} queries; scale {study.scale:g}; result lists of {lists}.",
        f"Clicks on the training queries: {', '.join(f'{number:,}' for number in clicks)}.",
        *collection.notes,
        *(f"Made with {each}." for each in made),
    ]
