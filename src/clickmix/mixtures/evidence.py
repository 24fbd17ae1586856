"""Evidence: what clicks and skips in a group say about relevance, as numbers, as numpy and as SQL.

    log ratio = log P(clicks | relevant) - log P(clicks | not relevant)
It never falls when a skip becomes a click.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.mixtures.observations import Floats

_RATE = "least(greatest(clicks / impressions, lowest), highest)"
EVIDENCE_SQL: Mapping[str, str] = {
    "binomial": "clicks * on_click + (impressions - clicks) * on_skip",
    "gaussian": f"(square * {_RATE} + slope) * {_RATE} + level",
}


@dataclass(frozen=True)
class Evidence:
    """The numbers of one group that `EVIDENCE_SQL` of its family names."""

    family: str
    numbers: Mapping[str, float]

    def log_ratio(self, impressions: Any, clicks: Any) -> Floats:
        """The log ratio of cells, the same formula as the SQL."""
        n, c, w = np.asarray(impressions, dtype=np.float64), np.asarray(clicks, dtype=np.float64), self.numbers
        if self.family == "binomial":
            return np.asarray(c * w["on_click"] + (n - c) * w["on_skip"])
        x = np.clip(c / n, w["lowest"], w["highest"])
        return np.asarray((w["square"] * x + w["slope"]) * x + w["level"])


def no_evidence(family: str) -> Evidence:
    """A group in which clicks say nothing of relevance."""
    if family == "binomial":
        return Evidence(family, {"on_click": 0.0, "on_skip": 0.0})
    return Evidence(family, {"square": 0.0, "slope": 0.0, "level": 0.0, "lowest": 0.0, "highest": 1.0})


def binomial_evidence(rates: tuple[float, ...]) -> Evidence:
    """A click counts log(p1/p0), a skip log((1-p1)/(1-p0))."""
    p0, p1 = rates
    return Evidence("binomial", {"on_click": float(np.log(p1 / p0)), "on_skip": float(np.log1p(-p1) - np.log1p(-p0))})


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
    return Evidence(
        "gaussian", {"square": square, "slope": slope, "level": level, "lowest": lowest, "highest": highest}
    )
