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


def _log_gamma(x: str) -> str:
    """SQL for ln Gamma(x), x > 0, exact to 1e-10: Stirling's series at x + 5. Few engines have the function itself."""
    z, below = f"({x} + 5)", " * ".join(f"({x} + {i})" for i in range(5))
    series = "0.0"
    for numerator, denominator in ((1, 1188), (-1, 1680), (1, 1260), (-1, 360), (1, 12)):
        series = f"({series} / ({z} * {z}) + {numerator / denominator!r})"
    return f"(({x} + 4.5) * ln({z}) - {z} + {series} / {z} - ln({below}))"


def _counted(a: str, b: str) -> str:
    """SQL for what a cell's counts change in the log density of a beta-binomial, but for a constant."""
    skips = "(impressions - clicks)"
    logs = _log_gamma(f"(clicks + {a})"), _log_gamma(f"({skips} + {b})"), _log_gamma(f"(impressions + {a} + {b})")
    return f"({logs[0]} + {logs[1]} - {logs[2]})"


# By family: the log ratio of a grade, in the names of its numbers.
EVIDENCE_SQL: Mapping[str, str] = {
    "binomial": "clicks * on_click + (impressions - clicks) * on_skip",
    "beta-binomial": f"{_counted('a', 'b')} - {_counted('a_of_0', 'b_of_0')} + level",
    "gaussian": f"(square * {_RATE} + slope) * {_RATE} + level",
}
NOTHING: Mapping[str, Mapping[str, float]] = {
    "binomial": {"on_click": 0.0, "on_skip": 0.0},
    "beta-binomial": {"a": 1.0, "b": 1.0, "a_of_0": 1.0, "b_of_0": 1.0, "level": 0.0},
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
        if self.family == "beta-binomial":
            from scipy.special import betaln  # late: slow to load

            return np.array(
                [
                    betaln(w["a"] + c, w["b"] + n - c) - betaln(w["a_of_0"] + c, w["b_of_0"] + n - c) + w["level"]
                    for w in self.numbers
                ]
            )
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


def beta_binomial_evidence(rates: tuple[float, ...], weights: tuple[float, ...]) -> Evidence:
    """Documents of grade k are clicked at rates that scatter as Beta(m p_k, m (1 - p_k)), with m its weight.

    The log ratio of ln B(a + clicks, b + skips) / B(a, b); `level` has what no count changes.
    """
    from scipy.special import betaln

    ends = [(p * m, (1 - p) * m) for p, m in zip(rates, weights, strict=True)]
    (a0, b0), above = ends[0], ends[1:]
    level = betaln(a0, b0)
    return Evidence(
        "beta-binomial",
        tuple({"a": a, "b": b, "a_of_0": a0, "b_of_0": b0, "level": float(level - betaln(a, b))} for a, b in above),
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
