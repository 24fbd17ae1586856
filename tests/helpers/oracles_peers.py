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


def position_based_em(
    documents: Sequence[Sequence[Cell]], positions: int, *, steps: int
) -> tuple[list[float], list[float]]:
    """Attraction and examination after so many steps of the published EM, all from 1/2, cell by cell."""
    attraction, examination = [0.5] * len(documents), [0.5] * positions
    shown_at = [sum(n for cells in documents for k, n, _ in cells if k == at) for at in range(1, positions + 1)]
    for _ in range(steps):
        attracted, examined = [0.0] * len(documents), [0.0] * positions
        for i, cells in enumerate(documents):
            for k, n, c in cells:
                a, g = attraction[i], examination[k - 1]
                attracted[i] += c + (n - c) * a * (1 - g) / (1 - a * g)
                examined[k - 1] += c + (n - c) * g * (1 - a) / (1 - a * g)
        shown = [sum(n for _, n, _ in cells) for cells in documents]
        attraction = [part / whole for part, whole in zip(attracted, shown, strict=True)]
        examination = [part / whole for part, whole in zip(examined, shown_at, strict=True)]
    return attraction, examination


def shared_rates(documents: Sequence[Sequence[Cell]], at: int, other: int) -> float:
    """The sum of click rates at a position of the documents that were shown at another one too."""
    both = [{k: (n, c) for k, n, c in cells} for cells in documents]
    return sum(seen[at][1] / seen[at][0] for seen in both if at in seen and other in seen)
