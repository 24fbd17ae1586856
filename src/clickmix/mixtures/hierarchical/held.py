"""Held-out clicks: how well a model predicts the clicks of one half of a log from those of the other.   -> Halved, Held

With parameters from all, a document's clicks in half B are predicted from its own clicks in half A, and from where all
documents of its query in A put the query's attention u and share v:
    log P(its clicks in B | A) = log sum over (u, v) of P(u, v | A) P(its clicks | u, v) / P(its clicks in A | u, v)
Other documents of B say nothing of u and v here: what people of one session have in common is not the query's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlog1py, xlogy

from clickmix.mixtures.hierarchical.cells import Cells, Places
from clickmix.mixtures.hierarchical.climb import Look, expected
from clickmix.mixtures.hierarchical.problem import Expected, Model, Problem
from clickmix.types import Floats, Ints

MOST_DEALT = 10**9
LEAST_CHANCE = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Halved:
    """Rows (document, place, impressions, clicks), and how many of both are in the first half; query per document."""

    places: Places
    query: Ints
    document: Ints
    place: Ints
    impressions: Floats
    clicks: Floats
    first_impressions: Floats
    first_clicks: Floats

    @classmethod
    def dealt(cls, cells: Cells, rng: np.random.Generator) -> Halved:
        """The impressions of every cell dealt out at random, for a log without sessions."""
        query, document, place, n, c = cells.rows()
        taken = ((n + rng.integers(0, 2, len(n))) // 2).astype(np.int64)
        # numpy deals out fewer than 10^9; of that many, a binomial number is the same but for chance.
        few = n < MOST_DEALT
        clicked = rng.binomial(c.astype(np.int64), taken / np.maximum(n, 1))
        clicked[few] = rng.hypergeometric(c[few].astype(np.int64), (n - c)[few].astype(np.int64), taken[few])
        return cls(cells.places, query, document, place, n, c, taken.astype(float), clicked.astype(float))

    def held(self, queries: int) -> Held:
        """Cells of all rows and of both halves."""
        whole = self._cells(self.impressions, self.clicks, queries)
        first = self._cells(self.first_impressions, self.first_clicks, queries)
        second = self._cells(self.impressions - self.first_impressions, self.clicks - self.first_clicks, queries)
        return Held(self.query, whole, (first, second))

    def _cells(self, n: Floats, c: Floats, queries: int) -> tuple[Cells, Ints]:
        seen = n > 0
        left, document = np.unique(self.document[seen], return_inverse=True)
        cells, entry = Cells.of_documents(
            self.places, self.query[left], document, self.place[seen], n[seen], c[seen], queries=queries
        )
        entries = np.full(len(self.query), -1)
        entries[left] = entry
        return cells, entries


@dataclass(frozen=True)
class Held:
    """A log and its two halves, each with the entry of every document, -1 where it was not seen."""

    query: Ints
    whole: tuple[Cells, Ints]
    halves: tuple[tuple[Cells, Ints], ...]

    @property
    def cells(self) -> Cells:
        """All of the log."""
        return self.whole[0]

    def score(self, model: Model, look: Look) -> Floats:
        """How well each half predicts the other: log-likelihood per query."""
        wide = look.wider()
        both = _totals(*expected(model, self.cells, wide), self.whole[1])  # in the same nodes as the halves
        score = np.zeros(self.cells.queries)
        for cells, entries in self.halves:
            problem, seen = expected(model, cells, wide)
            gained = both - _totals(problem, seen, entries)
            weight = seen.weight[self.query] if len(problem.nodes.at) > 1 else seen.weight
            highest = gained.max(axis=(1, 2), keepdims=True)
            # One half can find impossible, to the last digit, what the other half shows.
            chance = np.maximum((weight * np.exp(gained - highest)).sum(axis=(1, 2)), LEAST_CHANCE)
            logs = highest.ravel() + np.log(chance)
            score += np.bincount(self.query, logs, self.cells.queries)
        return score


def one_rate_value(cells: Cells) -> float:
    """The log-likelihood if all documents of a place were clicked at one rate."""
    clicks, shown = (cells.per_place(part) for part in (cells.clicks, cells.impressions))
    rate = np.divide(clicks, shown, out=np.zeros_like(shown), where=shown > 0)
    return float((xlogy(clicks, rate) + xlog1py(shown - clicks, -rate)).sum())


def _totals(problem: Problem, seen: Expected, entries: Ints) -> Floats:
    """Document x point x v: the log-likelihood of its pattern in each node; 0 where it was not seen."""
    found = seen.total[problem.nodes.of_entry[np.maximum(entries, 0)]]
    return np.where((entries >= 0)[:, None, None], found, 0.0)
