"""Agreement of labels with judgments: whether a score orders judged documents as their grades do.   scores -> measures

    ndcg@10     over queries with at least two grades; gain 2^(grade - lowest common grade) - 1; ties in expectation
    pairs       of documents of a query with different grades, the share of pairs in the right order; a tie counts half
    same place  the same for documents at the same position, of any queries: what a score says beyond the position
    overturned  the share of pairs that the score orders differently from production, and how many of those are right

The lowest common grade is the lowest that at least a tenth of the judged documents have; lower grades count as that. If
grades reach more than 5 above it, they are scaled down to 5 first, because gains double with every grade.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clickmix.evaluate.rankings import rank
from clickmix.evaluate.resampling import Measured
from clickmix.evaluate.scores import score
from clickmix.types import Floats, Ints

COMMON = 0.1  # a grade of this share of judged documents is common
HIGHEST = 5.0  # grade above the lowest common one
MOST_GRADES = 50  # more grades than this, such as true relevance, are cut into this many steps to make pairs
MOST_OF_A_QUERY = 64  # documents to make pairs of; from longer lists, a random choice
CUTOFF = 10


@dataclass(frozen=True, eq=False)
class JudgedDocuments:
    """Judged documents that people saw: the query's code, the grade, and the mean position."""

    query: Ints
    grade: Floats
    position: Floats

    @property
    def queries(self) -> int:
        """How many queries."""
        return int(self.query.max()) + 1 if len(self.query) else 0

    @cached_property
    def lowest(self) -> float:
        """The lowest common grade."""
        grades, counts = np.unique(self.grade, return_counts=True)
        common = grades[counts >= COMMON * counts.sum()]
        return float(common[0] if len(common) else grades[0])

    @cached_property
    def gained(self) -> Floats:
        """Grades above the lowest common one, from 0 to 5."""
        above = np.maximum(self.grade - self.lowest, 0.0)
        highest = float(above.max(initial=0.0))
        return above * (HIGHEST / highest) if highest > HIGHEST else above

    @cached_property
    def steps(self) -> Ints:
        """Grades as whole numbers in order, few enough to count pairs of them."""
        grades, step = np.unique(self.gained, return_inverse=True)
        if len(grades) <= MOST_GRADES:
            return np.asarray(step)
        return np.asarray(np.minimum((self.gained / grades[-1] * MOST_GRADES).astype(np.int64), MOST_GRADES - 1))

    @cached_property
    def varied(self) -> Ints:
        """The codes of queries with at least two grades."""
        first, last = np.full(self.queries, np.inf), np.full(self.queries, -np.inf)
        np.minimum.at(first, self.query, self.gained)
        np.maximum.at(last, self.query, self.gained)
        return np.flatnonzero(last > first)

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Pairs of documents of a query: first those with the higher grades, then those with the lower."""
        order = np.lexsort((np.random.default_rng(0).random(len(self.query)), self.query))
        query = self.query[order]
        new = np.r_[True, query[1:] != query[:-1]]
        nth = np.arange(len(query)) - np.flatnonzero(new)[np.cumsum(new) - 1]
        order, query = order[nth < MOST_OF_A_QUERY], query[nth < MOST_OF_A_QUERY]
        found: list[tuple[Ints, Ints]] = []
        for apart in range(1, MOST_OF_A_QUERY):
            same = query[apart:] == query[:-apart]
            one, other = order[apart:][same], order[:-apart][same]
            if not len(one):
                break
            higher = self.steps[one] > self.steps[other]
            differ = self.steps[one] != self.steps[other]
            found.append((np.where(higher, one, other)[differ], np.where(higher, other, one)[differ]))
        if not found:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.concatenate([pair[0] for pair in found]), np.concatenate([pair[1] for pair in found])

    def measures(self, scores: Floats) -> Mapping[str, Measured]:
        """Every measure of a score, one per judged document; higher is better."""
        overturned, right = self._overturned(scores)
        return {
            "ndcg": self._ndcg(scores),
            "pairs": self._pairs_in_order(scores),
            "same_place": self._same_place(scores),
            "overturned": overturned,
            "right": right,
        }

    def _ndcg(self, scores: Floats) -> Measured:
        chosen = np.isin(self.query, self.varied)
        above = np.zeros(self.queries)
        if chosen.any():
            found = score(rank(scores[chosen], self.gained[chosen], self.query[chosen]), measure=f"ndcg@{CUTOFF}")
            above[found.query_ids.astype(np.int64)] = found.values
        return Measured(above, np.isin(np.arange(self.queries), self.varied).astype(np.float64))

    def _pairs_in_order(self, scores: Floats) -> Measured:
        """The mean over queries of the share of pairs in the right order."""
        higher, lower = self.pairs
        credit = (np.sign(scores[higher] - scores[lower]) + 1) / 2
        total = np.bincount(self.query[higher], minlength=self.queries)
        share = np.bincount(self.query[higher], credit, self.queries) / np.maximum(total, 1)
        return Measured(share, (total > 0).astype(np.float64))

    def _overturned(self, scores: Floats) -> tuple[Measured, Measured]:
        higher, lower = self.pairs
        by_score = np.sign(scores[higher] - scores[lower])
        by_production = np.sign(self.position[lower] - self.position[higher])
        other_way = by_score * by_production < 0
        query = self.query[higher]
        total, turned, good = (
            np.bincount(query, weights, self.queries)
            for weights in (np.ones(len(query)), other_way.astype(float), (other_way & (by_score > 0)).astype(float))
        )
        return Measured(turned, total), Measured(good, turned)

    def _same_place(self, scores: Floats) -> Measured:
        """Pairs at one position, by query: those of its documents with all others there; each pair counts twice."""
        place = np.rint(self.position).astype(np.int64)
        above, below = np.zeros(len(scores)), np.zeros(len(scores))
        order = np.argsort(place, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
            above[rows], below[rows] = _wins(scores[rows], self.steps[rows])
        won, met = (np.bincount(self.query, values, self.queries) for values in (above, below))
        return Measured(won, met, scale=2.0)


def _wins(scores: Floats, grades: Ints) -> tuple[Floats, Floats]:
    """Per document: in how many pairs with other grades the order is right, ties half; and how many pairs it has."""
    won, met = np.zeros(len(scores)), np.zeros(len(scores))
    values, grade = np.unique(grades, return_inverse=True)
    ranked = [np.sort(scores[grade == g]) for g in range(len(values))]
    for g in range(len(values)):
        rows = np.flatnonzero(grade == g)
        for other in range(len(values)):
            if other == g:
                continue
            below = (ranked[other].searchsorted(scores[rows], side) for side in ("left", "right"))
            beaten = sum(below) / 2  # ties are half beaten
            won[rows] += beaten if other < g else len(ranked[other]) - beaten
            met[rows] += len(ranked[other])
    return won, met
