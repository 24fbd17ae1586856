"""Fit one model to a whole log, and say what it means at each place.   Counts -> LogModel, Groups

Whole queries are sampled from a log that is larger than parameters need. Where documents stay and queries are alike,
the histogram has all there is to know, and the chosen model is fitted to all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from clickmix.counts.counts import Counts
from clickmix.groups.histogram import Histogram
from clickmix.groups.sample import QueryCells, read_queries
from clickmix.mixtures.group import Group, PlaceCounts
from clickmix.mixtures.hierarchical.cells import Cells, Places, join_places
from clickmix.mixtures.hierarchical.climb import climb, expected
from clickmix.mixtures.hierarchical.held import one_rate_value
from clickmix.mixtures.hierarchical.label import looks
from clickmix.mixtures.hierarchical.problem import hats
from clickmix.mixtures.kinds.kind import WholeLogKind
from clickmix.mixtures.log_model import LogModel
from clickmix.mixtures.mixture import SEPARATED_FROM, Mixture, Verdict, left_over
from clickmix.types import Floats, Ints

LEAST_GAIN = 2.0  # log-likelihood over one rate per place, in logs of the number of documents: BIC, two parameters
LEAST_PRIOR = 1e-13
FROZEN_BELOW = 0.01  # share of documents at several places up to which a histogram has all there is to know


def fit_whole_log(
    kind: WholeLogKind,
    counts: Counts | None,
    histogram: Histogram,
    *,
    moving: float,
    flat: bool,
    queries: bool,
) -> tuple[LogModel, Ints, float] | None:
    """The model, the number of its place for each place of the histogram, and the expected error of labels.

    None where nothing can be learned from the clicks: nobody clicked, everybody did, or one rate explains it all.
    Without `counts`, or where documents stay and `queries` are not known to differ, from the histogram alone.
    """
    clicks, shown = histogram.total(histogram.clicks).sum(), histogram.total(histogram.impressions).sum()
    if clicks in (0, shown):
        return None
    places, joined = joined_places(histogram)
    stay = moving < FROZEN_BELOW
    rows = None if counts is None or (stay and not queries) else read_queries(counts, histogram)
    if rows is None:
        cells, share = _histogram_cells(histogram, places, joined), 1.0
    else:
        cells, share = _query_cells(rows, places, joined, apart=queries), rows.share
    model = kind.fit_log(cells, alike=rows is None or not queries, flat=flat)
    if share < 1 and stay and not (model.effects.attention or model.effects.shares):
        cells, share = _histogram_cells(histogram, places, joined), 1.0
        model = climb(cells, model)[0]
    problem, seen = expected(model, cells)
    one_rate = one_rate_value(cells)
    if 2 * (seen.value - one_rate) < LEAST_GAIN * np.log(cells.documents.sum()):
        return None
    grades = sum(weight * posterior for weight, posterior in looks(problem, seen))
    return LogModel.of(model, share=share), joined, left_over(np.asarray(grades), cells.documents)[1]


def joined_places(histogram: Histogram) -> tuple[Places, Ints]:
    """The model's places, and the number of the one that each place of the histogram belongs to."""
    contexts = sorted({place.context for place in histogram.places})
    number = {context: i for i, context in enumerate(contexts)}
    return join_places(
        np.array([place.position for place in histogram.places]),
        np.array([number[place.context] for place in histogram.places]),
        histogram.total(np.ones_like(histogram.documents)),
    )


def _query_cells(rows: QueryCells, places: Places, joined: Ints, *, apart: bool) -> Cells:
    """The model's cells; every document is a query of its own unless queries are kept `apart`."""
    query, queries = (rows.query, rows.queries) if apart else (np.arange(len(rows.query)), len(rows.query))
    return Cells.of_documents(
        places, query, rows.document, joined[rows.place], rows.impressions, rows.clicks, queries=queries
    )[0].in_order()


def _histogram_cells(histogram: Histogram, places: Places, joined: Ints) -> Cells:
    """Every row as a pattern of one cell, and a query of its own."""
    number = np.arange(len(histogram.place))
    n, c, documents = (
        column.astype(np.float64) for column in (histogram.impressions, histogram.clicks, histogram.documents)
    )
    return Cells(places, number, joined[histogram.place], n, c, number, number, documents, len(number))


def groups_of(model: LogModel, histogram: Histogram, members: Sequence[tuple[PlaceCounts, ...]], joined: Ints) -> tuple[Group, ...]:
    """What the model says of each of its places; `members` are the places of the log that are joined to it."""
    of_group = joined[histogram.place]
    prior = _mean_prior(model, histogram, of_group)
    return tuple(_group(model, k, histogram, of_group == k, members[k], prior[k]) for k in range(len(members)))


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
    n, c, documents = (column[rows].astype(np.float64) for column in (histogram.impressions, histogram.clicks, histogram.documents))
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
    """Place x grade: the share of each grade before any click, for documents as often shown as those of the place."""
    shown = np.log(np.maximum(histogram.impressions, 1))
    often = hats(shown, np.array(model.often))[:, 1:] @ np.array(model.prior)[:, len(model.where) :].T
    logits = np.hstack([np.zeros((len(shown), 1)), model.place_logits[of_group] + often])
    logits = logits - logits.max(axis=1, keepdims=True)
    prior = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    places = len(model.positions)
    sums = np.stack([np.bincount(of_group, histogram.documents * column, places) for column in prior.T], axis=1)
    return np.maximum(sums / sums.sum(axis=1, keepdims=True), LEAST_PRIOR)
