"""The page on a ranker: which features it uses, and how scores depend on them.   ranker, examples -> Page"""

from __future__ import annotations

from clickmix.features import Examples
from clickmix.rankers import DependencePoint, Importance, Ranker
from clickmix.report.figures import Axis, Bars, Figure, Line, Panel
from clickmix.report.pages import Listing, Page, Section

STRONGEST = 6  # features with their own curve
MOST_ROWS = 30  # rows of the table of importances


def ranker_page(ranker: Ranker, examples: Examples) -> Page:
    """The report on a trained ranker and the examples it was trained on."""
    importances = ranker.importance()
    ranked = [each.name for each in importances if each.gain > 0] or list(ranker.feature_names)
    curves = [ranker.partial_dependence(examples.features, name) for name in ranked[:STRONGEST]]
    facts = [
        ("queries", f"{examples.queries:,}"),
        ("labelled documents", f"{len(examples.relevance):,}"),
        ("features", f"{ranker.features:,}"),
        ("features with missing values", f"{len(ranker.missing):,}"),
    ]
    sections = [
        Section("Training", [*ranker.remarks(), str(examples.left_out)], facts),
        *([_importance_section(importances)] if importances else []),
        _dependence_section(curves, strongest=bool(importances)),
    ]
    return Page("What the ranker learned", ["How much a trained ranker uses each feature, and how."], sections)


def _importance_section(importances: tuple[Importance, ...]) -> Section:
    used = [each for each in importances if each.gain > 0]
    shown = used[:MOST_ROWS]
    bars = Bars("", [i + 0.5 for i in range(len(shown) + 1)], [each.share for each in shown], colour="blue")
    figure = Figure(
        "Share of the gain by feature",
        Axis("rank of the feature", whole=True),
        [Panel(Axis("share of the gain", low=0, percent=True), [bars])],
        note="The table below names them.",
    )
    rows = [(str(i), each.name, f"{100 * each.share:.1f}%") for i, each in enumerate(shown, start=1)]
    unused = len(importances) - len(used)
    notes = [f"{len(used) - len(shown):,} more features with smaller gains."] if len(used) > len(shown) else []
    if unused:
        notes.append(f"{unused:,} {'feature is' if unused == 1 else 'features are'} not used at all.")
    table = Listing(("rank", "feature", "share of the gain"), rows, notes=notes, numbers=frozenset({0, 2}))
    prose = "The gain of a feature is how much the splits on it improved the training objective, over all trees."
    return Section("Which features matter", [prose], figures=[figure], tables=[table])


def _dependence_section(curves: list[tuple[DependencePoint, ...]], *, strongest: bool) -> Section:
    which = (
        "the strongest features" if strongest else "the first features: this ranker does not say which are strongest"
    )
    prose = (
        f"Partial dependence of {which}. Each curve is the mean score of the training documents if the feature had the "
        "value below in all of them and nothing else changed. The values are quantiles of the feature. A flat curve "
        "means that the feature alone changes nothing."
    )
    scores = [point.score for curve in curves for point in curve]
    axis = Axis("mean score", low=min(scores), high=max(scores))  # the same for all: a weak feature looks flat
    return Section("How scores follow a feature", [prose], figures=[_curve_figure(curve, axis) for curve in curves])


def _curve_figure(curve: tuple[DependencePoint, ...], axis: Axis) -> Figure:
    present = [point for point in curve if not point.missing]
    values, scores = [point.value for point in present], [point.score for point in present]
    marks = [Line("", values, scores, colour="blue")]
    for point in curve:
        if point.missing:  # a level line across the figure: a missing value has no place on the axis
            ends = [min(values, default=0.0), max(values, default=1.0)]
            marks.append(Line("value is missing", ends, [point.score] * 2, colour="vermillion", points=False))
    return Figure(curve[0].name, Axis(curve[0].name), [Panel(axis, marks)])
