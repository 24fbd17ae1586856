"""EM: steps uphill on the log-likelihood, taken further where they keep their direction.   start -> parameters"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from clickmix.types import Floats

Step = Callable[[Floats], tuple[Floats, float]]

FARTHEST = 15.0  # log-odds: a leap never ends on 0 or 1 itself, where EM could not leave again


@dataclass(frozen=True, eq=False)
class Climb:
    """Where EM ended, the log-likelihood on the way (it never falls), and whether it had stopped rising."""

    parameters: Floats
    log_likelihoods: tuple[float, ...]
    converged: bool


def climb(step: Step, start: Floats, *, tolerance: float, max_steps: int) -> Climb:
    """EM with leaps (SQUAREM): two steps show direction and curvature, a leap follows them, and counts if it gained.

    `step` takes probabilities and gives those after one EM step, with the log-likelihood of the ones it took. The
    climb has converged when one EM step gains no more than `tolerance` times the log-likelihood.
    """
    first, before = step(start)
    trace = [before]
    while len(trace) < max_steps:
        second, after = step(first)
        trace.append(after)
        if after - before <= tolerance * abs(after):
            return Climb(parameters=first, log_likelihoods=tuple(trace), converged=True)
        beyond, leapt = step(_leap(start, first, second))
        if leapt >= after:
            trace.append(leapt)
            start = beyond
        else:
            start = second
        first, before = step(start)
        trace.append(before)
    return Climb(parameters=start, log_likelihoods=tuple(trace), converged=False)


def _leap(start: Floats, first: Floats, second: Floats) -> Floats:
    """start + 2 s r + s^2 v on the log-odds: r the first step, v its change, s = |r| / |v| (Varadhan, Roland 2008)."""
    inside = np.all([(p > expit(-FARTHEST)) & (p < expit(FARTHEST)) for p in (start, first, second)], axis=0)
    x0, x1, x2 = (logit(p[inside]) for p in (start, first, second))
    r, v = x1 - x0, x2 - 2 * x1 + x0
    length = float((v * v).sum()) ** 0.5
    s = max(1.0, float((r * r).sum()) ** 0.5 / length) if length > 0 else 1.0
    leapt = second.copy()  # s = 1 leaps exactly here; what is at 0 or 1 takes its ordinary step
    leapt[inside] = expit(np.clip(x0 + 2 * s * r + s * s * v, -FARTHEST, FARTHEST))
    return leapt
