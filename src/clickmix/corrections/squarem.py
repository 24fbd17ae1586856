"""SQUAREM: EM that leaps along the direction of its steps (Varadhan, Roland 2008).   start, step -> Ascent

Plain EM creeps along ridges of the likelihood. Two steps show where it is going and how the steps shrink; a leap goes
there at once, and is kept only if it gains at least as much as the first step. One length serves all parameters; with
many, it is too long for some. So leaps are bounded: the bound grows after a leap that was kept, and shrinks otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from clickmix.types import Floats, Progress

P = TypeVar("P")
LONGER = 4.0  # the bound grows by this factor after a leap of full length that was kept


@dataclass(frozen=True, eq=False)
class Ascent(Generic[P]):
    """Where EM ended, the log-likelihood after each round (it never falls), and whether it stopped rising."""

    end: P
    log_likelihoods: tuple[float, ...]
    converged: bool


def ascend(
    start: P,
    *,
    step: Callable[[P], P],
    leap: Callable[[P, P, P, float], tuple[P, float]],
    log_likelihood: Callable[[P], float],
    tolerance: float,
    max_steps: int,
    progress: Progress | None = None,
) -> Ascent[P]:
    """Rounds of two EM steps and a leap, until a round gains no more than `tolerance` times the log-likelihood.

    `step` gives the parameters after one EM step. `leap` takes those before, after one and after two steps, and the
    longest leap allowed; it also gives the length of its leap.
    """
    point, trace, longest = start, [log_likelihood(start)], 1.0
    while len(trace) < max_steps:
        first = step(point)
        second = step(first)
        landed, length = leap(point, first, second, longest)
        leapt = step(landed)
        kept = log_likelihood(leapt) >= log_likelihood(first)
        if kept:
            point, longest = leapt, LONGER * longest if length == longest else longest
        else:
            point, longest = second, max(1.0, longest / LONGER)
        trace.append(log_likelihood(point))
        if progress is not None:
            progress(len(trace) / max_steps)
        # A long leap that was not kept says nothing about the top: try shorter ones first.
        if (kept or length == 1) and trace[-1] - trace[-2] <= tolerance * abs(trace[-1]):
            return Ascent(point, tuple(trace), True)
    return Ascent(point, tuple(trace), False)


def leap_on_log_odds(x0: Floats, x1: Floats, x2: Floats, *, farthest: float, longest: float) -> tuple[Floats, float]:
    """The probabilities with log-odds x0 + 2 s r + s^2 v, and s. r is the first step, v its change, s = |r| / |v|.

    s is at least 1, where the leap is the second step, and at most `longest`. All x are log-odds. The leap stays within
    `farthest`, because EM cannot leave a probability of 0 or 1.
    """
    from scipy.special import expit  # here, because --help loads this module

    r, v = x1 - x0, x2 - 2 * x1 + x0
    length = float((v * v).sum()) ** 0.5
    s = max(1.0, min(float((r * r).sum()) ** 0.5 / length, longest)) if length > 0 else 1.0
    return np.asarray(expit(np.clip(x0 + 2 * s * r + s * s * v, -farthest, farthest))), s
