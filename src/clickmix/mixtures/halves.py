"""Whether two parts of a group's documents are clicked at the same rates, whatever their grades.   -> RateGap

Both parts have the grades' weights w_0, w_1 of their own. With the lowest and highest rate p in common, and with rates
of their own, the likelihood is
    common = max over w_0, w_1, p of l_0(w_0, p) + l_1(w_1, p),    own = max l_0(w_0, p_0) + max l_1(w_1, p_1)
and 2 (own - common) is chi-square with two degrees of freedom where the rates are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from clickmix.mixtures.em import Vector
from clickmix.mixtures.families import LOWEST_RATE
from clickmix.mixtures.fit import LARGEST_LOGIT
from clickmix.mixtures.mixture import Mixture
from clickmix.mixtures.observations import Floats, Observations
from clickmix.mixtures.surfaces import group_surfaces, rising

STEPS = 30
GAIN = 0.01  # of the log-likelihood: the least a step must bring


@dataclass(frozen=True)
class RateGap:
    """Twice the log-likelihood that rates of their own gain, and the second part's rates beside the first's.

    `ratio` is that of their click rates for a document of the same relevance: the geometric mean of both ends'.
    """

    gain: float
    ratio: float


def compare_rates(first: Observations, second: Observations, mixture: Mixture) -> RateGap:
    """Two parts of a group against the mixture fitted to both."""
    grades = len(mixture.rates)
    logs = np.log(np.maximum(mixture.weights, LOWEST_RATE))
    weights = logs[1:] - logs[0]
    ends = logit(np.array([mixture.rates[0], mixture.rates[-1]]))
    common, value = _climb([first, second], np.concatenate([weights, weights, ends]))
    own = []
    for i, part in enumerate((first, second)):
        start = np.concatenate([common[i * (grades - 1) : (i + 1) * (grades - 1)], common[-2:]])
        own.append(_climb([part], start))
    rates = [np.log(expit(x[-2:])) for x, _ in own]
    ratio = float(np.exp((rates[1] - rates[0]).mean()))
    return RateGap(max(0.0, 2 * (sum(v for _, v in own) - value)), ratio)


def _climb(parts: Sequence[Observations], x: Vector) -> tuple[Vector, float]:
    """Newton's steps up the likelihood of parts with rates in common: weights of each part, then the two rates."""
    value, slope, information = _surface(parts, x)
    for _ in range(STEPS):
        direction = np.linalg.lstsq(rising(information), slope, rcond=1e-9)[0]
        for halvings in range(12):
            candidate = np.clip(x + direction / 2**halvings, -LARGEST_LOGIT, LARGEST_LOGIT)
            there = _surface(parts, candidate)
            if there[0] > value:
                break
        gain = there[0] - value
        if gain > 0:
            x, (value, slope, information) = candidate, there
        if gain < GAIN:
            break
    return x, value


def _surface(parts: Sequence[Observations], x: Vector) -> tuple[float, Vector, Floats]:
    weights = (len(x) - 2) // len(parts)
    at = [np.r_[i * weights : (i + 1) * weights, len(x) - 2 : len(x)] for i in range(len(parts))]
    found = group_surfaces(parts, x[np.stack(at)])
    slope, information = np.zeros(len(x)), np.zeros((len(x),) * 2)
    for i, mine in enumerate(at):
        slope[mine] += found.slope[i]
        information[np.ix_(mine, mine)] += found.information[i]
    return float(found.value.sum()), slope, information
