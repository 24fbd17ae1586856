"""Slow and obvious versions of what the verdict on a log rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.optimize
from scipy.special import expit, softmax
from scipy.stats import binom

from clickmix.groups.observations import Observations


def expected_squared_error(weights: Sequence[float], rates: Sequence[float], impressions: int) -> float:
    """Every number of clicks, every grade, one after the other."""
    total = 0.0
    for clicks in range(impressions + 1):
        joint = [w * binom.pmf(clicks, impressions, p) for w, p in zip(weights, rates, strict=True)]
        grades = [k / (len(rates) - 1) for k in range(len(rates))]
        mean = sum(x * j for x, j in zip(grades, joint, strict=True)) / sum(joint)
        total += sum(j * (x - mean) ** 2 for x, j in zip(grades, joint, strict=True))
    return total


def log_likelihood(seen: Observations, weights: Sequence[float], rates: Sequence[float]) -> float:
    """Of a histogram: the mixture's probability of every row, as often as it was seen."""
    densities = [binom.pmf(seen.clicks, seen.impressions, p) for p in rates]
    return float(seen.multiplicity @ np.log(np.array(weights) @ densities))


def gain_of_a_rate(
    seen: Observations, weights: Sequence[float], rates: Sequence[float], rate: float
) -> tuple[float, float]:
    """The share that another rate should get, and twice the log-likelihood it gains, by a search."""

    def loss(log_share: float) -> float:
        share = np.exp(log_share)
        return -log_likelihood(seen, [*((1 - share) * np.array(weights)), share], [*rates, rate])

    found = scipy.optimize.minimize_scalar(loss, bounds=(-18, -1e-3), method="bounded", options={"xatol": 1e-7})
    return float(np.exp(found.x)), 2 * (-found.fun - log_likelihood(seen, weights, rates))


def gain_of_own_rates(first: Observations, second: Observations, start: Sequence[float]) -> float:
    """Twice the log-likelihood gained by rates of their own: two grades, all maxima by a search without slopes.

    `start` has the logit of a weight and those of the two rates.
    """

    def value(part: Observations, x: Any) -> float:
        weights = softmax([0.0, x[0]])
        return log_likelihood(part, weights.tolist(), expit(np.asarray(x[1:])).tolist())

    def best(loss: Any, x: Sequence[float]) -> float:
        options = {"xatol": 1e-7, "fatol": 1e-9, "maxiter": 20_000, "maxfev": 20_000}
        return -float(scipy.optimize.minimize(loss, x, method="Nelder-Mead", options=options).fun)

    common = best(lambda x: -value(first, [x[0], *x[2:]]) - value(second, [x[1], *x[2:]]), [start[0], *start])
    return 2 * (best(lambda x: -value(first, x), start) + best(lambda x: -value(second, x), start) - common)


def split_below(cells: Sequence[tuple[int, int, int, int, int]], relevance: dict[tuple[int, int], float]) -> set[Any]:
    """(position, below, impressions, clicks, documents): cells by whether a relevant document stands above them."""
    rows: dict[tuple[int, int, int, int], int] = {}
    for query, _, position, impressions, clicks in cells:
        above = [relevance[q, d] > 0.5 for q, d, other, _, _ in cells if q == query and other < position]
        key = (position, int(any(above)), impressions, clicks)
        rows[key] = rows.get(key, 0) + 1
    return {(*key, documents) for key, documents in rows.items()}
