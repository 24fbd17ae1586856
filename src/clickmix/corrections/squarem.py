"""SQUAREM: EM that leaps along the direction of its steps (Varadhan, Roland 2008).   start, step -> Ascent

Plain EM creeps along ridges of the likelihood. Two steps show where it is going and how the steps shrink; a leap goes
there at once, and is kept only if it gained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from clickmix.types import Floats, Progress

P = TypeVar("P")


@dataclass(frozen=True, eq=False)
class Ascent(Generic[P]):
    """Where EM ended, the log-likelihood after each round (it never falls), and whether it had stopped rising."""

    end: P
    log_likelihoods: tuple[float, ...]
    converged: bool


def ascend(
    start: P,
    *,
    step: Callable[[P], P],
    leap: Callable[[P, P, P], P],
    log_likelihood: Callable[[P], float],
    tolerance: float,
    max_steps: int,
    progress: Progress | None = None,
) -> Ascent[P]:
    """Rounds of two EM steps and a leap, until a round gains no more than `tolerance` times the log-likelihood.

    `step` gives the parameters after one EM step; `leap` takes those before, after one and after two steps.
    """
    point, trace = start, [log_likelihood(start)]
    while len(trace) < max_steps:
        first = step(point)
        second = step(first)
        leapt = step(leap(point, first, second))
        point = max((second, leapt), key=log_likelihood)
        trace.append(log_likelihood(point))
        if progress is not None:
            progress(len(trace) / max_steps)
        if trace[-1] - trace[-2] <= tolerance * abs(trace[-1]):
            return Ascent(point, tuple(trace), True)
    return Ascent(point, tuple(trace), False)


def leap_on_log_odds(x0: Floats, x1: Floats, x2: Floats, *, farthest: float) -> Floats:
    """The probabilities x0 + 2 s r + s^2 v stands for: r the first step, v its change, s = |r| / |v|, at least 1.

    All log-odds. The leap stays within `farthest`: from a probability of 0 or 1 EM could not leave again.
    """
    from scipy.special import expit  # late: corrections are loaded to list their names

    r, v = x1 - x0, x2 - 2 * x1 + x0
    length = float((v * v).sum()) ** 0.5
    s = max(1.0, float((r * r).sum()) ** 0.5 / length) if length > 0 else 1.0
    return np.asarray(expit(np.clip(x0 + 2 * s * r + s * s * v, -farthest, farthest)))
