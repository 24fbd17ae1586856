"""Slow and obvious versions of the corrections that other tools have, and the exact quantiles of their posteriors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.stats import beta, gamma

from oracles_corrections import Cell


def log_beta(a: float, b: float) -> float:
    """log B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def beta_binomial_likelihood(cells: Sequence[tuple[int, int]], mean: float, strength: float) -> float:
    """log P(clicks) of (impressions, clicks), one document after the other, without the binomial coefficients."""
    a, b = mean * strength, (1 - mean) * strength
    return sum(log_beta(a + c, b + n - c) - log_beta(a, b) for n, c in cells)


def gamma_poisson_likelihood(documents: Sequence[tuple[float, int]], shape: float) -> float:
    """log P(clicks) of (expected clicks, clicks), one document after the other, without terms in the clicks alone."""
    return sum(
        math.lgamma(shape + c)
        - math.lgamma(shape)
        + shape * math.log(shape / (shape + expected))
        - c * math.log(shape + expected)
        for expected, c in documents
    )


def smoothed_rate(
    cells: Sequence[Cell], means: dict[int, float], strengths: dict[int, float]
) -> tuple[float, float, float]:
    """The posterior mean of a document's click rate, and its Beta posterior's parameters."""
    N, C = sum(n for _, n, _ in cells), sum(c for _, _, c in cells)
    mean = sum(n * means[k] for k, n, _ in cells) / N
    strength = N / sum(n / strengths[k] for k, n, _ in cells)
    a, b = C + mean * strength, N - C + (1 - mean) * strength
    return a / (a + b), a, b


def beta_inside(low: float, high: float, a: float, b: float) -> float:
    """How much of Beta(a, b) lies between."""
    return float(beta.cdf(high, a, b) - beta.cdf(low, a, b))


def gamma_inside(low: float, high: float, shape: float, rate: float) -> float:
    """How much of Gamma(shape, rate) lies between."""
    return float(gamma.cdf(high * rate, shape) - gamma.cdf(low * rate, shape))


def by_rate_then_position(documents: Sequence[Sequence[Cell]]) -> list[int]:
    """The documents, best first: by rate, then by mean position, compared as fractions without rounding."""
    from fractions import Fraction

    def key(i: int) -> tuple[Fraction, Fraction]:
        N = sum(n for _, n, _ in documents[i])
        return Fraction(-sum(c for _, _, c in documents[i]), N), Fraction(sum(k * n for k, n, _ in documents[i]), N)

    return sorted(range(len(documents)), key=key)
