"""Fits as figures: per group, click-through rates, the fitted mixture, and labels.   histogram, groups -> figures"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import bdtr, expit, logit, ndtr

from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.groups.places import Histogram
from clickmix.mixtures.mixture import Group, Mixture
from clickmix.report.figures import Axis, Bars, Colour, Figure, Line, Panel
from clickmix.report.log_numbers import thinned
from clickmix.report.rows import cut
from clickmix.report.scales import log_start, round_up
from clickmix.types import Floats, Ints

BINS = 30
MOST_PANELS = 10
MOST_COMPONENTS = 4  # drawn one by one; of more, only their sum
MOST_CONTEXTS = 4
ALMOST_ALL = 0.995  # share of documents that the horizontal axis covers; the rest are in its last bin
CURVE_POINTS = 100
LOWEST_RATE = 1e-5  # shown; a rate of 1e-12 would leave no room for the others


def group_figures(fitted: MixtureFit, histogram: Histogram) -> list[Figure]:
    """A figure for each group, or if there are many, for some groups of the largest contexts.

    A group of a cascade that the final labels leave without documents has none.
    """
    found = [(fitted.groups[g], _documents_of(fitted.groups[g], histogram)) for g in chosen_groups(fitted)]
    return [_group_figure(group, fitted, seen) for group, seen in found if len(seen[0])]


def _documents_of(group: Group, histogram: Histogram) -> tuple[Ints, Ints, Ints]:
    """Impressions and clicks at the places of a group, and how many documents have them."""
    places = {place: number for number, place in enumerate(histogram.places)}
    numbers = [places[seen.place] for seen in group.places if seen.place in places]
    member = np.isin(histogram.place, numbers)
    return histogram.impressions[member], histogram.clicks[member], histogram.documents[member]


def chosen_groups(fitted: MixtureFit) -> list[int]:
    """Which groups get a figure: at most about `MOST_PANELS`, more of them at the first positions."""
    contexts = by_context(fitted)
    each = max(1, MOST_PANELS // len(contexts))
    return [members[i] for members in contexts.values() for i in thinned(len(members), each)]


def by_context(fitted: MixtureFit) -> dict[tuple[str, ...], list[int]]:
    """The groups of each of the largest contexts, by position.

    The patterns of a cascade belong to one position each, so the largest group of every position stands for it.
    """
    if fitted.steps:
        sizes = [(group.places[0].place.position, group.impressions, g) for g, group in enumerate(fitted.groups)]
        at_position = {position: g for position, _, g in sorted(sizes)}
        return {("",): list(at_position.values())}
    contexts: dict[tuple[str, ...], list[int]] = {}
    for g, group in enumerate(fitted.groups):
        contexts.setdefault(group.places[0].place.context, []).append(g)

    def impressions(context: tuple[str, ...]) -> int:
        return -sum(fitted.groups[g].impressions for g in contexts[context])

    largest = sorted(contexts, key=lambda context: (impressions(context), context))[:MOST_CONTEXTS]
    return {context: contexts[context] for context in largest}


def described(group: Group, fitted: MixtureFit) -> str:
    """The places of a group in words."""
    first = group.places[0].place.describe(fitted.context)
    others = len(group.places) - 1
    return cut(first) + (f" and {others} more" if others else "")


def _group_figure(group: Group, fitted: MixtureFit, seen: tuple[Ints, Ints, Ints]) -> Figure:
    n, c, documents = seen
    typical = int(_median(n, documents))
    widest = _widest(c / n, documents, group.mixture)
    # Bins are no narrower than one click of a typical document: of narrower ones, many would be empty.
    edges = np.linspace(0, widest, int(np.clip(np.floor(widest * typical), 5, BINS)) + 1)
    bins = np.clip(np.searchsorted(edges, c / n + 1e-12, side="right") - 1, 0, len(edges) - 2)
    heights = np.bincount(bins, weights=documents, minlength=len(edges) - 1)
    centres = (edges[1:] + edges[:-1]) / 2
    shown, weight = np.unique(n, return_inverse=True)
    expected = expected_documents(
        group.mixture, shown, np.bincount(weight, weights=documents).astype(np.float64), edges
    )
    fewest, bars = log_start(heights), Bars("seen", edges, heights)
    lines = [
        Line(name, centres, np.maximum(values, fewest), colour=colour, points=False)
        for name, values, colour in _named(expected)
    ]
    curve = Line("", *label_curve(fitted, fitted.groups.index(group), typical, edges[-1]), colour="green", points=False)
    times = "once" if typical == 1 else f"{typical:,} times"
    verdict = group.mixture.verdict
    return Figure(
        described(group, fitted),
        Axis("click-through rate", 0, edges[-1], percent=True),
        [
            Panel(Axis("documents, logarithmic scale", low=fewest, log=True), [bars, *lines], height=110),
            Panel(Axis(f"label of a document shown {times} here", 0, 1), [curve], height=70),
        ],
        note=f"{group.documents:,} documents. Verdict: {verdict}.",
    )


def _widest(rates: Floats, documents: Ints, mixture: Mixture) -> float:
    """Where the horizontal axis ends: beyond almost all documents and the highest fitted rate."""
    order = np.argsort(rates)
    at = np.searchsorted(np.cumsum(documents[order]), ALMOST_ALL * documents.sum())
    return min(1.0, round_up(max(float(rates[order][at]), 1.1 * mixture.rates[-1], 1e-6)))


def expected_documents(mixture: Mixture, impressions: Ints, documents: Floats, edges: Floats) -> Floats:
    """Component x bin: how many documents the mixture expects with a click-through rate between two edges.

    sum over documents with n impressions of w_k (P(clicks < n e_high | k) - P(clicks < n e_low | k)); the last bin
    also holds everything above it.
    """
    n, components = impressions[:, None], []
    for k, (weight, rate) in enumerate(zip(mixture.weights, mixture.rates, strict=True)):
        if mixture.variances is None:
            below = np.ceil(n * edges - 1e-9) - 1  # the most clicks that are still below the edge
            share = np.where(below >= 0, bdtr(np.maximum(below, 0), n, rate), 0.0)
        else:
            share = np.broadcast_to(ndtr((edges - rate) / np.sqrt(mixture.variances[k])), (len(n), len(edges)))
        cumulated = weight * (documents @ share)
        cumulated[0], cumulated[-1] = 0.0, weight * documents.sum()
        components.append(np.diff(cumulated))
    return np.array(components)


def _named(expected: Floats) -> Iterator[tuple[str, Floats, Colour]]:
    """The curves to draw, with their names: each component, or the sum of many."""
    colours: tuple[Colour, ...] = ("vermillion", "orange", "purple", "blue")
    if len(expected) == 1:
        yield "one rate fits all", expected[0], "vermillion"
        return
    if len(expected) == 2:
        yield "fit: not relevant", expected[0], "vermillion"
        yield "fit: relevant", expected[1], "blue"
        return
    if len(expected) <= MOST_COMPONENTS:
        for k, values in enumerate(expected):
            yield f"fit: grade {k}", values, colours[k]
        return
    yield f"fit: {len(expected)} grades together", expected.sum(axis=0), "vermillion"


def label_curve(fitted: MixtureFit, number: int, impressions: int, widest: float) -> tuple[Floats, Floats]:
    """Click-through rates up to `widest`, and the label of a document shown that often here and nowhere else.

    If queries differ, in a typical query.
    """
    most = max(1, int(np.ceil(widest * impressions)))
    clicks = np.unique(np.round(np.linspace(0, min(most, impressions), CURVE_POINTS + 1)))
    rates = clicks / impressions
    group = fitted.groups[number]
    if not group.mixture.informative:
        return rates, np.full(len(clicks), group.prior_relevance)
    # The prior can differ from the shares of grades there.
    mixture = replace(group.mixture, weights=fitted.prior_at(number, impressions))
    return rates, np.asarray(mixture.relevance(np.full(len(clicks), impressions), clicks))


def _median(values: Ints, weights: Ints) -> float:
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulated, cumulated[-1] / 2)])


def rates_figures(fitted: MixtureFit) -> list[Figure]:
    """Per context, the fitted click rates by position, with intervals if they are known."""
    return [_rates_figure(fitted, context, members) for context, members in by_context(fitted).items()]


def _rates_figure(fitted: MixtureFit, context: Sequence[str], members: Sequence[int]) -> Figure:
    groups = [fitted.groups[members[i]] for i in thinned(len(members), 60)]
    positions = [group.places[0].place.position for group in groups]
    graded = any(len(group.mixture.rates) > 2 for group in groups)
    names = ("least relevant documents", "most relevant documents") if graded else ("not relevant", "relevant")
    lines = [
        _rate_line(names[-1], positions, groups, -1, "blue"),
        _rate_line(names[0], positions, groups, 0, "vermillion"),
    ]
    rates = [group.clicks / group.impressions for group in groups]
    lines.append(Line("all documents", positions, rates, colour="grey", points=False))
    low = max(LOWEST_RATE, min((y for line in lines for y in line.y if y > 0), default=LOWEST_RATE) / 1.5)
    where = ", ".join(f"{name} {value or '(none)'}" for name, value in zip(fitted.context, context, strict=True))
    if fitted.steps:
        where = "below the most common pattern at each position"
    return Figure(
        f"Click rate of relevant and other documents{': ' if where else ''}{cut(where)}",
        Axis("position", whole=True),
        [Panel(Axis("click rate, logarithmic scale", low, 1, log=True, percent=True), lines)],
        note="Labels rest on the gap between the lines. Position bias makes both fall. Trust bias makes people click "
        "at the top even if a document is not relevant. Thin bars are 95% intervals.",
    )


def _rate_line(name: str, positions: Sequence[int], groups: Sequence[Group], component: int, colour: Colour) -> Line:
    rates, low, high = [], [], []
    for group in groups:
        mixture = group.mixture
        rate = mixture.rates[component] if mixture.informative else float("nan")
        error = mixture.standard_errors[component] if mixture.standard_errors else float("nan")
        rates.append(rate)
        low.append(float(expit(logit(rate) - 1.96 * error)))
        high.append(float(expit(logit(rate) + 1.96 * error)))
    return Line(name, positions, rates, low, high, colour)


def separation_figure(fitted: MixtureFit) -> Figure:
    """How much of the uncertainty about relevance clicks remove, by position."""
    lines = []
    for context, members in by_context(fitted).items():
        groups = [fitted.groups[members[i]] for i in thinned(len(members), 60)]
        positions = [group.places[0].place.position for group in groups]
        name = ", ".join(value or "(none)" for value in context) if len(by_context(fitted)) > 1 else ""
        lines.append(Line(name, positions, [group.mixture.separation for group in groups]))
    return Figure(
        "How much clicks say about relevance",
        Axis("position", whole=True),
        [Panel(Axis("uncertainty removed by clicks", 0, 1, percent=True), lines)],
        note="At 100% the clicks at a position settle which documents are relevant. At 0% they say nothing, and "
        "labels there are just the share of relevant documents. Labels also use a document's other positions.",
    )
