"""Observations: what was seen of documents that each have one relevance nobody sees.   groups -> mixtures"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clickmix.types import Floats, Ints


@dataclass(frozen=True)
class Observations:
    """Parallel columns of cells: which document, in which group, how often shown and clicked.

    `multiplicity` says how many documents were seen exactly so: one entry per document. A group's histogram is a set
    of documents with one cell each; documents that move have several cells and the multiplicity 1.

    >>> Observations.histogram([10, 10], [1, 8], [30, 10]).multiplicity.tolist()
    [30.0, 10.0]
    """

    document: Ints
    group: Ints
    impressions: Floats
    clicks: Floats
    multiplicity: Floats
    groups: int

    @classmethod
    def histogram(cls, impressions: Any, clicks: Any, documents: Any) -> Observations:
        """One group: distinct (impressions, clicks) and how many documents have them."""
        n, c, m = (np.asarray(column, dtype=np.float64) for column in (impressions, clicks, documents))
        return cls(np.arange(len(n)), np.zeros(len(n), dtype=np.int64), n, c, m, 1)

    @property
    def totals(self) -> tuple[float, float]:
        """Clicks and impressions of all documents."""
        return float((self.weight * self.clicks).sum()), float((self.weight * self.impressions).sum())

    @classmethod
    def stacked(cls, groups: Sequence[Observations]) -> Observations:
        """Groups of documents with one cell each, one after the other."""
        sizes = [len(group.clicks) for group in groups]
        return cls(
            np.arange(sum(sizes)),
            np.repeat(np.arange(len(groups)), sizes),
            np.concatenate([group.impressions for group in groups]),
            np.concatenate([group.clicks for group in groups]),
            np.concatenate([group.multiplicity for group in groups]),
            len(groups),
        )

    @cached_property
    def one_cell_each(self) -> bool:
        """Whether every document has exactly its own cell, so that sums over its cells can be left out."""
        return len(self.document) == len(self.multiplicity) and bool(
            (self.document == np.arange(len(self.document))).all()
        )

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
        n, c = self.impressions, self.clicks
        from scipy.special import betaln  # late: scipy is slow to load, and who lists corrections needs none

        return np.asarray(-np.log1p(n) - betaln(n - c + 1, c + 1))  # C(n, c) itself overflows beyond n = 1030

    def shares_of(self, groups: Floats) -> Floats:
        """Documents x columns: the mean of values (groups x columns), weighted by the document's impressions."""
        total = self.per_document(self.impressions)
        return np.stack(
            [self.per_document(self.impressions * column[self.group]) / total for column in groups.T], axis=1
        )

    def per_document(self, cells: Floats) -> Floats:
        """Sums over the cells of each document."""
        if self.one_cell_each:
            return cells
        return np.bincount(self.document, weights=cells, minlength=len(self.multiplicity))

    @cached_property
    def weight(self) -> Floats:
        """How many documents each cell stands for."""
        return self.multiplicity if self.one_cell_each else self.multiplicity[self.document]

    @cached_property
    def _first_cells(self) -> Ints | None:
        """Where the cells of each group begin, if they stand group by group and no group is without."""
        in_order = bool((np.diff(self.group) >= 0).all()) and len(np.unique(self.group)) == self.groups
        return np.searchsorted(self.group, np.arange(self.groups)) if in_order else None

    def sums(self, cells: Floats) -> Floats:
        """Sums over the cells of each group: row x cell -> row x group."""
        if self._first_cells is None:
            return np.stack([np.bincount(self.group, weights=row, minlength=self.groups) for row in cells])
        return np.asarray(np.add.reduceat(cells, self._first_cells, axis=-1))

    def per_group(self, cells: Floats) -> Floats:
        """Sums over the cells of each group, each cell as often as its document was seen."""
        return np.asarray(self.sums((cells * self.weight)[None])[0])

    def shared_out(self, weights: Floats, cells: Floats) -> Floats:
        """Component x group: the sums of each group, a cell counting for component k with `weights[k]` of it."""
        return self.sums(weights * (self.weight * cells))

    def per_cell(self, groups: Floats) -> Floats:
        """Values (component x group) for each cell; a single group's stand for all cells as they are."""
        return groups if self.groups == 1 else groups.take(self.group, axis=-1)  # an index would take longer
