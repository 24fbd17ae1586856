"""Evidence: what clicks and skips in a group say about relevance, as numbers, as numpy and as SQL.

    log ratio of grade k = log P(clicks | grade k) - log P(clicks | grade 0)
The mean of grades that it gives never falls when a skip becomes a click.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.types import Floats

_RATE = "least(greatest(clicks / impressions, lowest), highest)"
# By family: the log ratio of a grade, in the names of its numbers.
EVIDENCE_SQL: Mapping[str, str] = {
    "binomial": "clicks * on_click + (impressions - clicks) * on_skip",
    "gaussian": f"(square * {_RATE} + slope) * {_RATE} + level",
}
NOTHING: Mapping[str, Mapping[str, float]] = {
    "binomial": {"on_click": 0.0, "on_skip": 0.0},
    "gaussian": {"square": 0.0, "slope": 0.0, "level": 0.0, "lowest": 0.0, "highest": 1.0},
}


@dataclass(frozen=True)
class Evidence:
    """For each grade above 0 the numbers of one group that `EVIDENCE_SQL` of its family names."""

    family: str
    numbers: tuple[Mapping[str, float], ...]

    def log_ratios(self, impressions: Any, clicks: Any) -> Floats:
        """Grade above 0 x cell: the log ratios, the same formula as the SQL."""
        n, c = np.asarray(impressions, dtype=np.float64), np.asarray(clicks, dtype=np.float64)
        if self.family == "binomial":
            return np.array([c * w["on_click"] + (n - c) * w["on_skip"] for w in self.numbers])
        x = [np.clip(c / n, w["lowest"], w["highest"]) for w in self.numbers]
        return np.array([(w["square"] * r + w["slope"]) * r + w["level"] for w, r in zip(self.numbers, x, strict=True)])


def no_evidence(family: str, *, grades: int) -> Evidence:
    """A group in which clicks say nothing of relevance."""
    return Evidence(family, (NOTHING[family],) * (grades - 1))


def binomial_evidence(rates: tuple[float, ...]) -> Evidence:
    """A click counts log(p_k/p_0), a skip log((1-p_k)/(1-p_0))."""
    p0 = rates[0]
    return Evidence(
        "binomial",
        tuple({"on_click": float(np.log(p / p0)), "on_skip": float(np.log1p(-p) - np.log1p(-p0))} for p in rates[1:]),
    )


def gaussian_evidence(means: tuple[float, ...], variances: tuple[float, ...]) -> Evidence:
    """The log ratio of two normal densities is a parabola in the rate x: square x^2 + slope x + level.

    With unequal variances the wider component wins both tails, and fewer clicks could look more relevant. So the rate
    is kept on the rising side of the parabola's vertex.
    """
    (m0, m1), (v0, v1) = means, variances
    square = (1 / v0 - 1 / v1) / 2
    slope = m1 / v1 - m0 / v0
    level = float((m0**2 / v0 - m1**2 / v1 + np.log(v0 / v1)) / 2)
    vertex = -slope / (2 * square) if square else 0.0
    lowest = vertex if square > 0 else min(0.0, vertex)
    highest = vertex if square < 0 else max(1.0, vertex)
    numbers = {"square": square, "slope": slope, "level": level, "lowest": lowest, "highest": highest}
    return Evidence("gaussian", (numbers,))
