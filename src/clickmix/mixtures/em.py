"""The EM loop: climb a likelihood by EM steps, with quasi-Newton climbs between them.

Plain EM needs thousands of steps if components overlap, because the likelihood is a long curved ridge. EM's quantities
give the gradient (Fisher's identity), and the curvature of complete data gives a scale for it, so that L-BFGS can walk
the ridge (Jamshidian & Jennrich 1997). EM has the last word: the climb ends when an EM step gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from clickmix.types import Floats

LARGEST_ROUNDING = 1e-9
ROUNDING = 1e-14  # a likelihood is a sum of many terms: smaller relative differences are noise
START_STEPS = 3  # EM steps from every start
EM_STEPS = 6  # EM steps between quasi-Newton climbs
CLIMBS = 20
QUASI_NEWTON_STEPS = 200


class Hill(Protocol):
    """A function to climb, by EM and by its gradient."""

    def step(self, x: Floats) -> tuple[float, Floats]:
        """The log-likelihood at x, and the point after one EM step from x."""

    def slope(self, x: Floats) -> tuple[float, Floats]:
        """The log-likelihood at x, and its gradient there."""

    def curvature(self, x: Floats) -> Floats:
        """How fast the slope would change in each direction if relevance were known: positive, a scale for steps."""

    def bounds(self) -> Sequence[tuple[float | None, float | None]]:
        """The bounds of each coordinate."""


@dataclass(frozen=True)
class Climb:
    """Where the climb ended, the log-likelihood at every point on the way, and whether it stopped rising."""

    parameters: Floats
    log_likelihoods: tuple[float, ...]
    converged: bool


def climb(hill: Hill, starts: Sequence[Floats], *, tolerance: float) -> Climb:
    """Climb from the best of some starts to the top, where an EM step gains at most `tolerance`."""
    path = set_out(hill, starts, tolerance=tolerance)
    for _ in range(CLIMBS):
        if path.converged:
            break
        path = _em(hill, *_quasi_newton(hill, path), tolerance, steps=EM_STEPS)
    return path


def set_out(hill: Hill, starts: Sequence[Floats], *, tolerance: float) -> Climb:
    """A few EM steps from every start, and some more from the best: enough to reach the top if components are clear."""
    paths = [_em(hill, x, (), tolerance, steps=START_STEPS) for x in starts]
    path = max(paths, key=lambda path: path.log_likelihoods[-1])
    return _em(hill, path.parameters, path.log_likelihoods[:-1], tolerance, steps=EM_STEPS)


def _em(hill: Hill, x: Floats, before: tuple[float, ...], tolerance: float, *, steps: int) -> Climb:
    """EM steps from x; `before` are the log-likelihoods on the way to x."""
    trace = list(before)
    value, image = hill.step(x)
    trace.append(value)
    for _ in range(steps):
        new_value, new_image = hill.step(image)
        gain = new_value - value
        if gain < 0:  # an EM step can lose only by rounding; a larger loss would be a bug, so not converged
            return Climb(x, tuple(trace), -gain <= LARGEST_ROUNDING * abs(value))
        x, value, image = image, new_value, new_image
        trace.append(value)
        if gain <= max(tolerance, ROUNDING * abs(value)):
            return Climb(x, tuple(trace), True)
    return Climb(x, tuple(trace), False)


def _quasi_newton(hill: Hill, path: Climb) -> tuple[Floats, tuple[float, ...]]:
    """Where L-BFGS gets to from the end of a path, and the trace so far; the path's end if it gets no higher."""
    end, values = _lbfgs(hill, path.parameters)
    trace = path.log_likelihoods
    # Only EM puts priors and rates in order, so the value that counts is the one that EM sees.
    if not hill.step(end)[0] > trace[-1]:
        return path.parameters, trace[:-1]
    return end, (*trace, *np.maximum.accumulate(values)[:-1].tolist())


def _lbfgs(hill: Hill, x: Floats) -> tuple[Floats, list[float]]:
    """L-BFGS from x until a step gains nothing: where it ends, and the values on the way."""
    scale = 1 / np.sqrt(np.maximum(hill.curvature(x), 1e-6))
    values: list[float] = []

    def descent(y: Floats) -> tuple[float, Floats]:
        value, gradient = hill.slope(y * scale)
        return -value, -gradient * scale

    found = minimize(
        descent,
        x / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=[
            (None if low is None else low / s, None if high is None else high / s)
            for (low, high), s in zip(hill.bounds(), scale, strict=True)
        ],
        callback=lambda intermediate_result: values.append(-intermediate_result.fun),
        options={"maxiter": QUASI_NEWTON_STEPS, "ftol": ROUNDING, "gtol": 1e-8, "maxcor": 20},
    )
    return found.x * scale, values
