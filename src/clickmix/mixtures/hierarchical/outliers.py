"""Outliers: queries that are clicked far more than the others, mostly by robots.   Cells -> distances of queries

A few such queries would choose the model for all the others, and move its rates.
"""

from __future__ import annotations

import numpy as np

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.climb import Look, climb, expected
from clickmix.mixtures.hierarchical.fit import fit
from clickmix.mixtures.hierarchical.problem import Effects, Model
from clickmix.types import Floats

FEWEST_QUERIES = 30  # among which one can be far from the others
RARELY = 0.002  # share of clean logs in which a query may be taken for an outlier
MOST_CELLS = 12_000  # that attention is fitted to
LEAST_DEVIATION = 0.05  # of attention
KNOWN = 0.8  # deviations of attention: a query that is known no better says nothing
LOOKS = 3  # for outliers: some hide others
ENOUGH = 1.0  # log-likelihood that a round must bring


def farthest(queries: int) -> float:
    """How far from the middle the furthest of that many normal values may lie, in deviations."""
    return float(np.sqrt(2 * np.log(max(queries, 2) / RARELY)))


def from_middle(values: Floats, *, least: float) -> Floats:
    """Distances from the median, in robust deviations."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return np.asarray((values - middle) / max((high - low) / 1.35, least))


def relevant_shares(cells: Cells, model: Model) -> Floats:
    """Per query how many more documents are relevant than usual, on a scale where chance has the deviation 1.

    If robots click everything, everything seems relevant.
    """
    problem, seen = expected(model, cells)
    prior = problem.prior(problem.split(model.vector)[1])
    x = np.linspace(0, 1, model.grades)
    number = np.maximum(np.bincount(cells.query, cells.documents, cells.queries), 1)
    found, usual = (
        np.clip(np.bincount(cells.query, cells.documents * (x @ grades)[cells.entry], cells.queries) / number, 0, 1)
        for grades in (seen.posterior(), prior)
    )
    return np.asarray(2 * np.sqrt(number) * (np.arcsin(np.sqrt(found)) - np.arcsin(np.sqrt(usual))))


def distances(cells: Cells, start: Model | None = None) -> Floats:
    """How much more attention each query has than the others, in deviations; 0 where little is known of it.

    Two grades, as the `start` has: more of them, or other effects, would take an outlier for a usual query.
    """
    distance = np.zeros(cells.queries)
    if cells.queries < FEWEST_QUERIES:
        return distance
    some = cells.sample(np.arange(0, cells.queries, 1 + len(cells.pattern) // MOST_CELLS))
    model = fit(some, effects=Effects("odds"), start=start, gain=ENOUGH)[0]
    look = Look.first(cells, model)
    known = look.deviation < KNOWN * model.attention
    known = known if known.sum() >= FEWEST_QUERIES else np.ones_like(known)
    distance[known] = from_middle(look.mean[known], least=LEAST_DEVIATION)
    return distance


def without_outliers(cells: Cells, plain: Model) -> tuple[Cells, Model]:
    """Usual queries alone, and the model of two grades fitted to them."""
    for _ in range(LOOKS):
        distance = distances(cells, plain)
        if cells.queries >= FEWEST_QUERIES:
            distance = np.maximum(distance, from_middle(relevant_shares(cells, plain), least=1.0))
        usual = distance <= farthest(cells.queries)
        if usual.all():
            break
        cells = cells.sample(np.flatnonzero(usual))
        plain = climb(cells, plain)[0]
    return cells, plain
