"""Fit one model to a whole log, and say what it means at each place.   Counts -> LogModel, Groups

If a log is larger than the parameters need, whole queries are sampled. If documents stay and queries are alike, the
histogram has everything, and the chosen model is fitted to all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from clickmix.counts.counts import Counts
from clickmix.groups.places import Histogram, rows_of_groups
from clickmix.groups.sample import QueryCells, read_queries
from clickmix.mixtures.hierarchical.cells import Cells, Places, join_places
from clickmix.mixtures.hierarchical.choose import fills_a_fit, one_rate_suffices
from clickmix.mixtures.hierarchical.climb import climb_on, expected
from clickmix.mixtures.hierarchical.fit import with_flat_prior
from clickmix.mixtures.hierarchical.label import Documents, grades_of
from clickmix.mixtures.hierarchical.sharing import hats
from clickmix.mixtures.kinds.kind import WholeLogKind
from clickmix.mixtures.log_model import LogModel
from clickmix.mixtures.mixture import SEPARATED_FROM, Group, Mixture, PlaceCounts, Verdict, left_over
from clickmix.types import Floats, Ints

LEAST_PRIOR = 1e-13
MOST_APART, OWN_CONTEXTS = 60, 30  # contexts that the model tells apart; the largest, which are never joined
LEVELS, FALLS = 10, 3  # kinds of small contexts: by how often they are clicked, and by how that changes down the page
FEW_CLICKS = 30.0  # usual clicks added to those of a small context
FEW_CELLS = 50_000  # enough to see whether queries differ, if documents stay
FROZEN_BELOW = 0.01  # share of documents at several places; below it, a histogram has everything


def fit_whole_log(
    kind: WholeLogKind, counts: Counts | None, histogram: Histogram, *, moving: float, flat: bool, queries: bool
) -> tuple[LogModel, Ints, float] | None:
    """The model, the number of its place for each place of the histogram, and the expected error of labels.

    None if clicks teach nothing: nobody clicked, everybody did, or one rate explains all clicks.
    Without `counts`, or if documents stay and `queries` are not known to differ, only the histogram is read.
    """
    places, joined = joined_places(histogram)
    stay = moving < FROZEN_BELOW
    if counts is None or (stay and not queries):
        cells, share = _histogram_cells(histogram, places, joined), 1.0
        model = kind.fit_log(cells, alike=True)
    else:
        most = FEW_CELLS if stay else None
        cells, rows = _query_cells(counts, histogram, places, joined, queries=queries, most=most)
        model = kind.fit_log(cells, alike=not queries)
        differ = model.effects.attention or model.effects.shares
        # A few queries were enough to see that queries differ, but maybe not by how much.
        if rows.share < 1 and stay and differ and not fills_a_fit(cells):
            cells, rows = _query_cells(counts, histogram, places, joined, queries=queries)
            model = kind.fit_log(cells, alike=not queries)
        share = rows.share * model.share
        if share < 1 and stay and not differ:
            cells, share = _histogram_cells(histogram, places, joined), 1.0
            # All documents tell grades apart better than a sample does, but they include those of outlier queries.
            model = climb_on(cells, model) if model.outliers else kind.fit_log(cells, alike=True)
    # Positions of a cascade are fitted one by one, with a number of grades that their clicks may not show.
    if model.state not in ("fitted", "still climbing") or (not queries and one_rate_suffices(model, cells)):
        return None
    model = with_flat_prior(model, cells) if flat else model
    if model.effects.attention or model.effects.shares:
        seen = Documents.of_rows(places, rows.query, rows.document, joined[rows.place], rows.impressions, rows.clicks)
        grades, documents = grades_of(model, seen), np.ones(len(rows.query))
    else:
        grades, documents = expected(model, cells)[1].posterior(), cells.multiplicity
    return LogModel.of(model, share=share), joined, left_over(grades, documents)[1]


def _query_cells(
    counts: Counts, histogram: Histogram, places: Places, joined: Ints, *, queries: bool, most: int | None = None
) -> tuple[Cells, QueryCells]:
    """The cells of queries with about that many; if `queries` are not known to differ, every document is its own."""
    rows = read_queries(counts, histogram, cells=most)
    query, number = (rows.query, rows.queries) if queries else (np.arange(len(rows.query)), len(rows.query))
    cells, _ = Cells.of_documents(
        places, query, rows.document, joined[rows.place], rows.impressions, rows.clicks, queries=number
    )
    return cells.in_order(), rows


def _histogram_cells(histogram: Histogram, places: Places, joined: Ints) -> Cells:
    """Cells in which every row is a pattern of one cell and its own query; joined places have their rows together."""
    place, impressions, clicks = joined[histogram.place], histogram.impressions, histogram.clicks
    documents = histogram.documents
    if len(places.position) < len(histogram.places):
        of = np.lexsort((clicks, impressions, place))
        rows = np.stack([place, impressions, clicks])[:, of]
        first = np.flatnonzero(np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0)))
        (place, impressions, clicks), documents = rows[:, first], np.add.reduceat(documents[of], first)
    number = np.arange(len(place))
    n, c, m = (column.astype(np.float64) for column in (impressions, clicks, documents))
    return Cells(places, number, place, n, c, number, number, m, len(number))


def joined_places(histogram: Histogram) -> tuple[Places, Ints]:
    """The model's places, and the number of the model's place for each place of the histogram."""
    contexts = sorted({place.context for place in histogram.places})
    number = {context: i for i, context in enumerate(contexts)}
    position = np.array([place.position for place in histogram.places])
    context = np.array([number[place.context] for place in histogram.places])
    if len(contexts) > MOST_APART:
        context = _joined_contexts(
            position, context, histogram.total(histogram.impressions), histogram.total(histogram.clicks)
        )
    return join_places(position, context, histogram.total(np.ones_like(histogram.documents)))


def _joined_contexts(position: Ints, context: Ints, impressions: Ints, clicks: Ints) -> Ints:
    """The context of each place. Small contexts that are clicked alike are joined; the largest stay separate.

    They are compared by how often each half of their pages is clicked, relative to what is usual at their positions.
    """
    at = np.unique(position, return_inverse=True)[1]
    usual = (np.bincount(at, clicks) / np.bincount(at, impressions))[at] * impressions
    of_context = np.bincount(context, usual)
    small = np.argsort(-of_context, kind="stable")[OWN_CONTEXTS:]
    upper = position <= np.median(position)
    often = [
        np.log((np.bincount(context, clicks * part) + FEW_CLICKS) / (np.bincount(context, usual * part) + FEW_CLICKS))
        for part in (upper, ~upper)
    ]
    found = np.arange(len(of_context))
    found[small] = len(found) + _interval(often[0] + often[1], small, LEVELS) * FALLS
    found[small] += _interval(often[0] - often[1], small, FALLS)
    return np.asarray(np.unique(found[context], return_inverse=True)[1])


def _interval(values: Floats, small: Ints, steps: int) -> Ints:
    """Which of `steps` equal intervals holds each of the small contexts' values; extremes do not stretch them."""
    low, high = np.quantile(values[small], [0.02, 0.98])
    share = (values[small] - low) / max(high - low, np.finfo(float).tiny)
    return np.asarray(np.clip((share * steps).astype(np.int64), 0, steps - 1))


def groups_of(
    model: LogModel, histogram: Histogram, members: Sequence[tuple[PlaceCounts, ...]], joined: Ints
) -> tuple[Group, ...]:
    """What the model says about each of its places; `members` are the log's places that are joined in each."""
    of_group = joined[histogram.place]
    prior = _mean_prior(model, histogram, of_group)
    rows = rows_of_groups(of_group, groups=len(members))
    return tuple(_group(model, k, histogram, rows[k], members[k], prior[k]) for k in range(len(members)))


def _group(
    model: LogModel, k: int, histogram: Histogram, rows: Ints, places: tuple[PlaceCounts, ...], prior: Floats
) -> Group:
    weights = tuple(prior.tolist())
    alike = None if model.alike is None else tuple(model.alike[:, k].tolist())
    errors = (model.low_errors[k], model.high_errors[k])
    plain = Mixture(
        "binomial" if alike is None else "beta-binomial",
        Verdict.OVERLAPPING,
        weights,
        tuple(model.rates[:, k].tolist()),
        alike=alike,
        standard_errors=errors,
    )
    n, c, documents = (
        column[rows].astype(np.float64) for column in (histogram.impressions, histogram.clicks, histogram.documents)
    )
    separation, error = left_over(plain.posterior(n, c), documents)
    clicks, shown = float(c @ documents), float(n @ documents)
    verdict = (
        Verdict.NO_CLICKS
        if clicks == 0
        else Verdict.ALL_CLICKED
        if clicks == shown
        else Verdict.SEPARATED
        if separation >= SEPARATED_FROM
        else Verdict.OVERLAPPING
    )
    return Group(places, replace(plain, verdict=verdict, separation=separation, error=error), weights)


def _mean_prior(model: LogModel, histogram: Histogram, of_group: Ints) -> Floats:
    """Place x grade: the share of each grade before any click, for documents shown as often as those of the place."""
    shown = np.log(np.maximum(histogram.impressions, 1))
    often = hats(shown, np.array(model.often))[:, 1:] @ np.array(model.prior)[:, len(model.where) :].T
    logits = np.hstack([np.zeros((len(shown), 1)), model.place_logits[of_group] + often])
    logits = logits - logits.max(axis=1, keepdims=True)
    prior = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    places = len(model.positions)
    sums = np.stack([np.bincount(of_group, histogram.documents * column, places) for column in prior.T], axis=1)
    return np.asarray(np.maximum(sums / sums.sum(axis=1, keepdims=True), LEAST_PRIOR))
