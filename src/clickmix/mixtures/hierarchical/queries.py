"""What single queries say about a model: how well it predicts their held-out clicks, and which are outliers.

Held-out clicks: how well does a model predict the clicks of one half of a log from those of the other? With parameters
from all, a document's clicks in half B are predicted from its own clicks in half A, and from where all documents of its
query in A put the query's attention u and share v:
    log P(its clicks in B | A) = log sum over (u, v) of P(u, v | A) P(its clicks | u, v) / P(its clicks in A | u, v)
Other documents of B say nothing about u and v here: what clicks of one session have in common is not the query's.

Outliers are queries that are clicked far more than the others, mostly by robots. A few of them would decide the model
for all others, and move its rates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlog1py, xlogy

from clickmix.mixtures.hierarchical.cells import Cells, Places
from clickmix.mixtures.hierarchical.climb import Look, climb, expected, prior_of
from clickmix.mixtures.hierarchical.fit import fit
from clickmix.mixtures.hierarchical.problem import Effects, Expected, Model, Problem
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
        """Deal out the impressions of every cell at random, for a log without sessions."""
        query, document, place, n, c = cells.rows()
        taken = ((n + rng.integers(0, 2, len(n))) // 2).astype(np.int64)
        # numpy deals out fewer than 10^9; for more, a binomial number is as good.
        few = n < MOST_DEALT
        clicked = rng.binomial(c.astype(np.int64), taken / np.maximum(n, 1))
        clicked[few] = rng.hypergeometric(c[few].astype(np.int64), (n - c)[few].astype(np.int64), taken[few])
        return cls(cells.places, query, document, place, n, c, taken.astype(float), clicked.astype(float))

    def held(self, queries: int) -> Held:
        """Cells of all rows and of both halves."""
        whole = Cells.of_documents(
            self.places, self.query, self.document, self.place, self.impressions, self.clicks, queries=queries
        )
        first = self._half(self.first_impressions, self.first_clicks, *whole)
        second = self._half(self.impressions - self.first_impressions, self.clicks - self.first_clicks, *whole)
        return Held(self.query, whole, (first, second))

    def _half(self, n: Floats, c: Floats, whole: Cells, entry_of_whole: Ints) -> tuple[Cells, Ints]:
        """Cells, and the entry of each document, which has the same prior as in the whole log."""
        seen = n > 0
        left, document = np.unique(self.document[seen], return_inverse=True)
        kind = whole.entry[entry_of_whole[left]]
        cells, entry = Cells.of_documents(
            self.places,
            self.query[left],
            document,
            self.place[seen],
            n[seen],
            c[seen],
            queries=whole.queries,
            kind=kind,
        )
        pattern = np.zeros(cells.patterns, dtype=np.int64)
        pattern[cells.entry[entry]] = kind
        entries = np.full(len(self.query), -1)
        entries[left] = entry
        return replace(cells, whole=(whole, pattern)), entries


@dataclass(frozen=True)
class Held:
    """A log and its two halves, each with the entry of every document, -1 if it was not seen."""

    query: Ints
    whole: tuple[Cells, Ints]
    halves: tuple[tuple[Cells, Ints], ...]

    @property
    def cells(self) -> Cells:
        """The whole log."""
        return self.whole[0]

    def score(self, model: Model, look: Look) -> Floats:
        """How well each half predicts the other: log-likelihood per query."""
        wide = look.wider()
        both = _of_documents(*expected(model, self.cells, wide), self.whole[1])  # in the same nodes as the halves
        score = np.zeros(self.cells.queries)
        for cells, entries in self.halves:
            problem, seen = expected(model, cells, wide)
            gained = both - _of_documents(problem, seen, entries)
            weight = seen.weight[self.query] if len(problem.nodes.at) > 1 else seen.weight
            highest = gained.max(axis=(1, 2), keepdims=True)
            # What one half shows can have the probability 0, to the last digit, after the other.
            chance = np.maximum((weight * np.exp(gained - highest)).sum(axis=(1, 2)), LEAST_CHANCE)
            logs = highest.ravel() + np.log(chance)
            score += np.bincount(self.query, logs, self.cells.queries)
        return score


@dataclass(frozen=True)
class Whole:
    """A log whose queries are alike: then no document says anything about another, and all clicks judge a model."""

    cells: Cells

    def score(self, model: Model, _: Look) -> Floats:
        """How likely its clicks are: one log-likelihood."""
        return expected(model, self.cells)[1].of_query


def one_rate_value(cells: Cells) -> float:
    """The log-likelihood if all documents of a place were clicked at one rate."""
    clicks, shown = (cells.per_place(part) for part in (cells.clicks, cells.impressions))
    rate = np.divide(clicks, shown, out=np.zeros_like(shown), where=shown > 0)
    return float((xlogy(clicks, rate) + xlog1py(shown - clicks, -rate)).sum())


def totals(problem: Problem, seen: Expected) -> Floats:
    """Entry x point x v: the log-likelihood of its pattern in each node."""
    return np.asarray(seen.total[problem.nodes.of_entry])


def _of_documents(problem: Problem, seen: Expected, entries: Ints) -> Floats:
    """Document x point x v: the same; 0 if it was not seen."""
    found = seen.total[problem.nodes.of_entry[np.maximum(entries, 0)]]
    return np.where((entries >= 0)[:, None, None], found, 0.0)


FEWEST_SESSIONS = 5  # sessions that must have seen a query before models are compared on it


def known_queries(cells: Cells) -> Ints:
    """The queries that enough sessions have seen, judging by their documents' impressions; all if there are none.

    The halves share sessions. With few of them, differences between people would look like those between queries.
    """
    sessions = np.zeros(cells.queries)
    np.maximum.at(sessions, cells.query, cells.per_pattern(cells.impressions)[cells.entry])
    known = np.flatnonzero(sessions >= FEWEST_SESSIONS)
    return known if len(known) else np.arange(cells.queries)


FEWEST_QUERIES = 30  # queries needed to say that one is far from the others
RARELY = 0.002  # share of clean logs in which a query may be taken for an outlier
MOST_CELLS = 12_000  # cells to fit attention to
LEAST_DEVIATION = 0.05  # smallest deviation of attention
KNOWN = 0.8  # deviations of attention: a query known no better than this says nothing
LOOKS = 3  # rounds of looking for outliers, because some hide others
ENOUGH = 1.0  # log-likelihood that a round must gain to go on


def farthest(queries: int) -> float:
    """How far the furthest of that many normal values may lie from the middle, in deviations."""
    return float(np.sqrt(2 * np.log(max(queries, 2) / RARELY)))


def from_middle(values: Floats, *, least: float) -> Floats:
    """Distances from the median, in robust deviations."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return np.asarray((values - middle) / max((high - low) / 1.35, least))


def relevant_shares(cells: Cells, model: Model, relevance: Floats) -> Floats:
    """Per query, how many more documents are relevant than usual, on a scale where chance has deviation 1.

    `relevance` is that of each entry's documents. If robots click everything, everything seems relevant.
    """
    usual = (np.linspace(0, 1, model.grades) @ prior_of(model, cells))[cells.entry]
    number = np.maximum(np.bincount(cells.query, cells.documents, cells.queries), 1)
    found, expected_share = (
        np.clip(np.bincount(cells.query, cells.documents * part, cells.queries) / number, 0, 1)
        for part in (relevance, usual)
    )
    return np.asarray(2 * np.sqrt(number) * (np.arcsin(np.sqrt(found)) - np.arcsin(np.sqrt(expected_share))))


def distances(cells: Cells, start: Model | None = None) -> Floats:
    """How much more attention each query has than the others, in deviations; 0 if little is known about it.

    The fit has two grades, like the `start`: with more, or with other effects, an outlier would look usual.
    """
    distance = np.zeros(cells.queries)
    if cells.queries < FEWEST_QUERIES:
        return distance
    some = cells.sample(np.arange(0, cells.queries, 1 + len(cells.pattern) // MOST_CELLS))
    model = fit(some, effects=Effects("odds"), start=start, gain=ENOUGH)[0]
    look = Look.first(cells, model)
    known = look.deviation < KNOWN * model.attention
    known = known if known.sum() >= FEWEST_QUERIES else np.ones_like(known)
    distance[known] = from_middle(look.mean[known], least=LEAST_DEVIATION)
    return distance


def without_outliers(cells: Cells, plain: Model) -> tuple[Cells, Model]:
    """Only the usual queries, and the model of two grades fitted to them."""
    for _ in range(LOOKS):
        distance = distances(cells, plain)
        if cells.queries >= FEWEST_QUERIES:
            relevance = (np.linspace(0, 1, plain.grades) @ expected(plain, cells)[1].posterior())[cells.entry]
            distance = np.maximum(distance, from_middle(relevant_shares(cells, plain, relevance), least=1.0))
        usual = distance <= farthest(cells.queries)
        if usual.all():
            break
        cells = cells.sample(np.flatnonzero(usual))
        plain = climb(cells, plain)[0]
    return cells, plain
