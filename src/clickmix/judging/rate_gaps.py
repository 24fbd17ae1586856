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

from clickmix.groups.observations import Observations
from clickmix.mixtures.curvature import group_surfaces, in_blocks
from clickmix.mixtures.families import LOWEST_RATE
from clickmix.mixtures.mixture import Mixture
from clickmix.mixtures.problem import LARGEST_LOGIT
from clickmix.types import Floats, Ints

STEPS, HALVINGS = 30, 12
LEVEL = 1e-9  # beside the steepest direction
GAIN = 0.01  # of the log-likelihood: the least a step must bring


@dataclass(frozen=True)
class RateGap:
    """Twice the log-likelihood that rates of their own gain, and the second part's rates beside the first's.

    `ratio` is that of their click rates for a document of the same relevance: the geometric mean of both ends'.
    """

    gain: float
    ratio: float


def compare_rates(halves: Sequence[tuple[Observations, Observations]], mixtures: Sequence[Mixture]) -> list[RateGap]:
    """Two parts of every group against the mixture fitted to both; all mixtures have the same number of grades."""
    logs = np.log(np.maximum([mixture.weights for mixture in mixtures], LOWEST_RATE))
    weights = logs[:, 1:] - logs[:, :1]
    ends = logit(np.array([(mixture.rates[0], mixture.rates[-1]) for mixture in mixtures]))
    blocks = in_blocks([part for parts in halves for part in parts])
    common, together = _climb(blocks, np.hstack([weights, weights, ends]), parts=2)
    start = common[:, _coordinates(common.shape[1], 2)].reshape(2 * len(halves), -1)
    own, apart = _climb(blocks, start, parts=1)
    log_rates = np.log(expit(own[:, -2:])).reshape(len(halves), 2, 2)
    ratios = np.exp((log_rates[:, 1] - log_rates[:, 0]).mean(axis=1))
    gains = np.maximum(0.0, 2 * (apart.reshape(-1, 2).sum(axis=1) - together))
    return [RateGap(gain, ratio) for gain, ratio in zip(gains.tolist(), ratios.tolist(), strict=True)]


def _climb(blocks: Sequence[Observations], x: Floats, *, parts: int) -> tuple[Floats, Floats]:
    """Newton's steps up many likelihoods at once, each of so many histograms that have their rates in common.

    A row of x for each: weights of each part, then the two rates. Where they end, and how high.
    """
    value, slope, information = _surface(blocks, x, parts)
    climbing = np.ones(len(x), dtype=bool)
    for _ in range(STEPS):
        direction, part = _towards(information, slope), np.where(climbing, 1.0, 0.0)
        for _ in range(HALVINGS):
            candidate = np.clip(x + direction * part[:, None], -LARGEST_LOGIT, LARGEST_LOGIT)
            there = _surface(blocks, candidate, parts)
            short = climbing & (there[0] <= value)
            if not short.any():
                break
            part = np.where(short, part / 2, part)
        gain = there[0] - value
        better = climbing & (gain > 0)
        x, value = np.where(better[:, None], candidate, x), np.where(better, there[0], value)
        slope = np.where(better[:, None], there[1], slope)
        information = np.where(better[:, None, None], there[2], information)
        climbing &= gain >= GAIN
        if not climbing.any():
            break
    return x, value


def _towards(information: Floats, slope: Floats) -> Floats:
    """Newton's steps, without the directions in which a likelihood is level or curved the wrong way."""
    values, vectors = np.linalg.eigh(information)
    steep = values > LEVEL * np.maximum(values.max(axis=1, keepdims=True), 0)
    along = np.einsum("gij,gi->gj", vectors, slope) * steep / np.where(steep, values, 1.0)
    return np.asarray(np.einsum("gij,gj->gi", vectors, along))


def _coordinates(length: int, parts: int) -> Ints:
    """Part x coordinate: where the weights and rates of each part stand in a row."""
    weights = (length - 2) // parts
    return np.stack([np.r_[i * weights : (i + 1) * weights, length - 2 : length] for i in range(parts)])


def _surface(blocks: Sequence[Observations], x: Floats, parts: int) -> tuple[Floats, Floats, Floats]:
    rows, length = x.shape
    at = _coordinates(length, parts)
    found = group_surfaces(blocks, x[:, at].reshape(rows * parts, -1))
    slope, information = np.zeros((rows, length)), np.zeros((rows, length, length))
    for i, mine in enumerate(at):
        slope[:, mine] += found.slope[i::parts]
        information[:, mine[:, None], mine] += found.information[i::parts]
    return found.value.reshape(rows, parts).sum(axis=1), slope, information
