"""Soft-min-max probabilities of scores, query by query, and the slope of their cross entropy.   scores -> probabilities

    p = (e^s - m) / (M - m), where m and M are the least and the largest e^s of the query
The least score of a query has p = 0 and the largest p = 1, where cross entropy can be infinite. So probabilities are
q = MARGIN + (1 - 2 MARGIN) p. If all scores of a query are equal, q is 1/2.
"""

from __future__ import annotations

import numpy as np

from clickmix.types import Floats, Ints

MARGIN = 1e-3
LEAST_SPREAD = 1e-9  # spread of e^s in a query, relative to its largest; below this, scores count as equal


def soft_min_max(scores: Floats, offsets: Ints) -> Floats:
    """q of every document; query i has the rows offsets[i] to offsets[i + 1], at least one."""
    e, m, spread = _spread(scores, offsets)
    p = np.where(spread > LEAST_SPREAD, (e - m) / np.maximum(spread, LEAST_SPREAD), 0.5)
    return MARGIN + (1 - 2 * MARGIN) * p


def cross_entropy_slope(scores: Floats, offsets: Ints, target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The slope of sum of weight (-t log q - (1 - t) log(1 - q)) in every score, and a positive curvature.

    A score moves its own q by e^s / (M - m); the least and the largest also move those of all others of the query. The
    curvature is that of q's own score alone (Gauss-Newton). If all scores are equal, both are those of the sigmoid.
    """
    e, m, spread = _spread(scores, offsets)
    R = np.maximum(spread, LEAST_SPREAD)
    equal, q, t, w = spread <= LEAST_SPREAD, soft_min_max(scores, offsets), target, weight
    by_q = w * (q - t) / (q * (1 - q)) * (1 - 2 * MARGIN)
    own = e / R
    slope = by_q * own
    p = (e - m) / R
    # Everything is relative to the largest e^s, M = 1; m is the least.
    by_least, by_largest = _total(by_q * (1 - p) * m / R, offsets), _total(by_q * p / R, offsets)
    least, largest = e == m, e == 1.0
    slope -= np.where(least, by_least / _total(least, offsets), 0) + np.where(
        largest, by_largest / _total(largest, offsets), 0
    )
    curvature = w * ((1 - 2 * MARGIN) * own) ** 2 / (q * (1 - q))
    return np.where(equal, w * (0.5 - t), slope), np.where(equal, w / 4, np.maximum(curvature, 0.01 * w))


def _spread(scores: Floats, offsets: Ints) -> tuple[Floats, Floats, Floats]:
    """e^s relative to the largest of the query, its least, and the difference of largest and least."""
    sizes, first = np.diff(offsets), offsets[:-1]
    e = np.exp(scores - np.repeat(np.maximum.reduceat(scores, first), sizes))
    m = np.repeat(np.minimum.reduceat(e, first), sizes)
    return e, m, 1 - m


def _total(values: Floats | np.ndarray[tuple[int, ...], np.dtype[np.bool_]], offsets: Ints) -> Floats:
    """Sums over the documents of a query, for each of them."""
    sums = np.add.reduceat(values.astype(np.float64), offsets[:-1])
    return np.repeat(sums, np.diff(offsets))
