"""EM over an array of probabilities, for the fits of click models.   start, step -> Ascent"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clickmix.corrections.squarem import Ascent, ascend, leap_on_log_odds
from clickmix.types import Floats

Step = Callable[[Floats], tuple[Floats, float]]

FARTHEST = 15.0  # log-odds


@dataclass(frozen=True, eq=False)
class Point:
    """Probabilities; one call of `em` gives both their log-likelihood and those after an EM step."""

    probabilities: Floats
    em: Step

    @cached_property
    def _after(self) -> tuple[Floats, float]:
        return self.em(self.probabilities)

    def step(self) -> Point:
        """After one EM step."""
        return Point(self._after[0], self.em)

    def log_likelihood(self) -> float:
        """The log-likelihood of the sessions."""
        return self._after[1]

    def leap(self, first: Point, second: Point, longest: float) -> tuple[Point, float]:
        """Leap from here, and say how far; a probability that has reached 0 or 1 takes its ordinary step."""
        points = [point.probabilities for point in (self, first, second)]
        lowest = 1 / (1 + np.exp(FARTHEST))
        inside = np.all([(p > lowest) & (p < 1 - lowest) for p in points], axis=0)
        x0, x1, x2 = (np.log(p[inside] / (1 - p[inside])) for p in points)
        leapt = second.probabilities.copy()
        leapt[inside], length = leap_on_log_odds(x0, x1, x2, farthest=FARTHEST, longest=longest)
        return Point(leapt, self.em), length


def run_em(em: Step, start: Floats, *, tolerance: float, max_steps: int) -> Ascent[Point]:
    """Go uphill from `start`; `em` gives the probabilities after one step, and the log-likelihood before it."""
    return ascend(
        Point(start, em),
        step=Point.step,
        leap=Point.leap,
        log_likelihood=Point.log_likelihood,
        tolerance=tolerance,
        max_steps=max_steps,
    )
