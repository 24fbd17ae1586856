"""Fit one model to a whole log, and say what it means at each place.   Counts -> LogModel, Groups

Whole queries are sampled from a log that is larger than parameters need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from clickmix.counts.counts import Counts
from clickmix.errors import InputError
from clickmix.groups.histogram import Histogram
from clickmix.groups.sample import read_queries
from clickmix.mixtures.group import Group, PlaceCounts
from clickmix.mixtures.hierarchical.cells import Cells, Places, join_places
from clickmix.mixtures.hierarchical.climb import expected
from clickmix.mixtures.hierarchical.label import looks
from clickmix.mixtures.hierarchical.spread import hats
from clickmix.mixtures.kinds.kind import WholeLogKind
from clickmix.mixtures.log_model import LogModel
from clickmix.mixtures.mixture import SEPARATED_FROM, Mixture, Verdict, left_over
from clickmix.types import Floats, Ints

LEAST_PRIOR = 1e-13
MOST_IMPRESSIONS = 10**9  # of a cell: numpy deals out fewer


def fit_whole_log(kind: WholeLogKind, counts: Counts, histogram: Histogram) -> tuple[LogModel, Ints, float] | None:
    """The model, the number of its place for each place of the histogram, and the expected error of labels.

    None where nothing can be learned from the clicks: nobody clicked, everybody did, or one rate explains it all.
    """
    places, joined = joined_places(histogram)
    rows = read_queries(counts, histogram)
    most = int(rows.impressions.max())
    if most >= MOST_IMPRESSIONS:
        raise InputError(
            f"{most:,} impressions of one document at one place found, expected fewer than {MOST_IMPRESSIONS:,}. "
            "Use --mixture auto for this log."
        )
    cells = Cells.of_documents(
        places, rows.query, rows.document, joined[rows.place], rows.impressions, rows.clicks, queries=rows.queries
    )[0].in_order()
    model = kind.fit_log(cells)
    if model.state not in ("fitted", "still climbing"):
        return None
    problem, seen = expected(model, cells)
    grades = np.asarray(sum(weight * posterior for weight, posterior in looks(problem, seen)))
    return LogModel.of(model, share=rows.share), joined, left_over(grades, cells.documents)[1]


def joined_places(histogram: Histogram) -> tuple[Places, Ints]:
    """The model's places, and the number of the one that each place of the histogram belongs to."""
    contexts = sorted({place.context for place in histogram.places})
    number = {context: i for i, context in enumerate(contexts)}
    return join_places(
        np.array([place.position for place in histogram.places]),
        np.array([number[place.context] for place in histogram.places]),
        histogram.total(np.ones_like(histogram.documents)),
    )


def groups_of(
    model: LogModel, histogram: Histogram, members: Sequence[tuple[PlaceCounts, ...]], joined: Ints
) -> tuple[Group, ...]:
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
    """Place x grade: the share of each grade before any click, for documents as often shown as those of the place."""
    shown = np.log(np.maximum(histogram.impressions, 1))
    often = hats(shown, np.array(model.often))[:, 1:] @ np.array(model.prior)[:, len(model.where) :].T
    logits = np.hstack([np.zeros((len(shown), 1)), model.place_logits[of_group] + often])
    logits = logits - logits.max(axis=1, keepdims=True)
    prior = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    places = len(model.positions)
    sums = np.stack([np.bincount(of_group, histogram.documents * column, places) for column in prior.T], axis=1)
    return np.asarray(np.maximum(sums / sums.sum(axis=1, keepdims=True), LEAST_PRIOR))
