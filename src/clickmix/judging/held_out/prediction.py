"""How well a fit predicts clicks it has not seen, as perplexity.   placed cells, rates -> Prediction

    perplexity = 2^(-mean over held-out impressions of log2 P(what happened))
1 is perfect, 2 is tossing a coin. Margins are half 95 % intervals over queries: those of a sum over queries that are
alike and independent, which need no resampling.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from clickmix.corrections.click_rates import PlacedCells
from clickmix.types import Floats

LEAST_RATE = 1e-5  # a rate nearer to 0 or 1 counts as this one: no fit is that sure of a single click
NORMAL = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Prediction:
    """Bits and impressions of every held-out query under one fit; `name` says whose."""

    name: str
    bits: Floats = field(repr=False)
    impressions: Floats = field(repr=False)

    @property
    def perplexity(self) -> float:
        """2^(bits per impression)."""
        return float(2 ** (self.bits.sum() / self.impressions.sum()))

    def gain_over(self, other: Prediction) -> tuple[float, float]:
        """How many bits per 1,000 impressions this one saves over another, and half the interval of that."""
        saved, shown = other.bits - self.bits, self.impressions.sum()
        mean = saved.sum() / shown
        spread = np.sqrt(((saved - mean * self.impressions) ** 2).sum()) / shown
        return float(1000 * mean), float(1000 * NORMAL * spread)


def held_out_bits(name: str, rates: Floats, asked: PlacedCells) -> Prediction:
    """-log2 of the likelihood of the asked cells, by query; queries without held-out impressions are left out."""
    p = np.clip(rates, LEAST_RATE, 1 - LEAST_RATE)
    bits = -(asked.clicks * np.log2(p) + (asked.impressions - asked.clicks) * np.log2(1 - p))
    query = asked.query[asked.document]
    shown = np.bincount(query, asked.impressions)
    return Prediction(name, np.bincount(query, bits)[shown > 0], shown[shown > 0])
