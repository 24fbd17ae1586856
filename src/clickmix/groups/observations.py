"""Observations: impressions and clicks of a group's documents, whose relevance is hidden.   groups -> mixtures"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clickmix.types import Floats


@dataclass(frozen=True)
class Observations:
    """The histogram of a group: distinct cells (impressions, clicks), and how many documents have each.

    >>> Observations.histogram([10, 10], [1, 8], [30, 10]).multiplicity.tolist()
    [30.0, 10.0]
    """

    impressions: Floats
    clicks: Floats
    multiplicity: Floats

    @classmethod
    def histogram(cls, impressions: Any, clicks: Any, documents: Any) -> Observations:
        """Distinct (impressions, clicks) and how many documents have them."""
        return cls(*(np.asarray(column, dtype=np.float64) for column in (impressions, clicks, documents)))

    @property
    def totals(self) -> tuple[float, float]:
        """Clicks and impressions of all documents."""
        return float((self.multiplicity * self.clicks).sum()), float((self.multiplicity * self.impressions).sum())

    @cached_property
    def skips(self) -> Floats:
        """Impressions without a click."""
        return self.impressions - self.clicks

    @cached_property
    def rates(self) -> Floats:
        """Click-through rate of each cell."""
        return self.clicks / self.impressions

    @cached_property
    def log_choose(self) -> Floats:
        """log C(n, c) of each cell: the part of a binomial likelihood that no parameter changes."""
        from scipy.special import betaln  # here, because listing corrections does not need scipy

        n, c = self.impressions, self.clicks
        return np.asarray(-np.log1p(n) - betaln(n - c + 1, c + 1))  # C(n, c) itself overflows beyond n = 1030

    def per_group(self, cells: Floats) -> Floats:
        """The sum over all documents, as an array of one."""
        return np.asarray(group_sums((cells * self.multiplicity)[None])[0])

    def shared_out(self, weights: Floats, cells: Floats) -> Floats:
        """Component x 1: the sums over documents, with each cell weighted by `weights[k]` for component k."""
        return group_sums(weights * (self.multiplicity * cells))


def group_sums(cells: Floats) -> Floats:
    """Sums over the cells of a group: row x cell -> row x 1."""
    return np.asarray(np.add.reduceat(cells, [0], axis=-1))
