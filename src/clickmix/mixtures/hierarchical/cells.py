"""Cells: distinct patterns of impressions and clicks, and how many documents of each query have each.   rows -> cells

A document is a (query, document) pair. Its pattern is the set of its cells: place, impressions, clicks. Documents with
the same pattern are one row with a multiplicity: most documents of a real log are copies of each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from clickmix.mixtures.hierarchical.sharing import Spread
from clickmix.types import Floats, Ints

Kept = TypeVar("Kept")
SMALLEST_PLACE = 30  # documents; a place with fewer joins its neighbour
MOST_POSITIONS = 300  # positions of a context
WIDTH = 0.01  # if there are more, positions closer than this in log position are one place


@dataclass(frozen=True)
class Places:
    """Per place, its position (the mean if several were joined) and the number of its context."""

    position: Floats
    context: Ints

    def __len__(self) -> int:
        return len(self.position)

    @cached_property
    def spread(self) -> Spread:
        """Which of them have their own rates."""
        return Spread.of(self.position, self.context)


@dataclass(frozen=True)
class Cells:
    """Cells of distinct patterns, in order of pattern; entries (query, pattern, documents), in order of query.

    `score` is what else is known about the documents of each pattern (tilt.py), if anything. Cells of a part of a log
    know the pattern that their documents have in the `whole` log.
    """

    places: Places
    pattern: Ints
    place: Ints
    impressions: Floats
    clicks: Floats
    query: Ints
    entry: Ints  # the pattern of each entry
    documents: Floats  # how many documents of the query have it
    queries: int
    score: Floats | None = None
    whole: tuple[Cells, Ints] | None = None
    kept: dict[Any, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    @classmethod
    def of_documents(
        cls,
        places: Places,
        query: Ints,
        document: Ints,
        place: Ints,
        impressions: Any,
        clicks: Any,
        *,
        queries: int,
        score: Floats | None = None,
        kind: Ints | None = None,
    ) -> tuple[Cells, Ints]:
        """Cells from rows (document, place, impressions, clicks), and the entry of each document.

        `query`, `score` and `kind` have an element per document; queries and documents are numbered from 0. Documents
        with different scores, or of different kinds, have different patterns.
        """
        n, c = np.asarray(impressions, dtype=np.float64), np.asarray(clicks, dtype=np.float64)
        codes = _mixed(place.astype(np.uint64), n.astype(np.uint64), c.astype(np.uint64))
        order = np.argsort(document, kind="stable")
        starts = np.searchsorted(document[order], np.arange(len(query)))
        # Sums of mixed codes do not depend on the order of cells, and different patterns hardly ever have the same sum.
        sums = np.add.reduceat(codes[order], starts) if len(order) else codes
        if score is not None:
            sums = sums + _mixed(np.unique(score, return_inverse=True)[1].astype(np.uint64))
        if kind is not None:
            sums = sums + _mixed(kind.astype(np.uint64))
        _, first, pattern = np.unique(sums, return_index=True, return_inverse=True)
        kept = np.isin(document, first)
        rank = np.empty(len(query), dtype=np.int64)
        rank[first] = np.arange(len(first))
        own = rank[document[kept]]
        sort = np.lexsort((place[kept], own))
        keys, entry_of, counts = np.unique(query * len(first) + pattern, return_inverse=True, return_counts=True)
        return (
            cls(
                places,
                own[sort],
                place[kept][sort],
                n[kept][sort],
                c[kept][sort],
                keys // len(first),
                keys % len(first),
                counts.astype(np.float64),
                queries,
                None if score is None else score[first],
            ),
            entry_of,
        )

    def keep(self, name: object, make: Callable[[], Kept]) -> Kept:
        """What many models of the same cells need, made once."""
        if name not in self.kept:
            self.kept[name] = make()
        kept: Kept = self.kept[name]
        return kept

    def in_order(self) -> Cells:
        """The same cells, with queries numbered by what was seen of them."""
        query = self.ranks()[self.query]
        order = np.lexsort((self.entry, query))
        return replace(self, query=query[order], entry=self.entry[order], documents=self.documents[order])

    def ranks(self) -> Ints:
        """The rank of each query, decided only by what was seen of it: engines sort ids in different ways."""
        parts = (part.astype(np.uint64) for part in (self.place, self.impressions, self.clicks))
        patterns, totals = np.zeros(self.patterns, dtype=np.uint64), np.zeros(self.queries, dtype=np.uint64)
        np.add.at(patterns, self.pattern, _mixed(*parts))
        np.add.at(totals, self.query, _mixed(patterns)[self.entry] * self.documents.astype(np.uint64))
        rank = np.empty(self.queries, dtype=np.int64)
        rank[np.argsort(totals, kind="stable")] = np.arange(self.queries)
        return rank

    @cached_property
    def patterns(self) -> int:
        """The number of patterns."""
        return int(self.pattern[-1]) + 1 if len(self.pattern) else 0

    @cached_property
    def multiplicity(self) -> Floats:
        """The number of documents with each pattern, over all queries."""
        return np.bincount(self.entry, weights=self.documents, minlength=self.patterns)

    def per_pattern(self, cells: Floats) -> Floats:
        """Sums over the cells of each pattern."""
        return np.bincount(self.pattern, weights=cells, minlength=self.patterns)

    @cached_property
    def weight(self) -> Floats:
        """How many documents each cell stands for."""
        return self.multiplicity[self.pattern]

    def per_place(self, cells: Floats) -> Floats:
        """Sums over the cells of each place, each counted once per document."""
        return np.bincount(self.place, weights=cells * self.weight, minlength=len(self.places))

    def rows(self) -> tuple[Ints, Ints, Ints, Floats, Floats]:
        """Every document separately: query per document; document, place, impressions and clicks per row."""
        documents = self.documents.astype(np.int64)
        query, pattern = np.repeat(self.query, documents), np.repeat(self.entry, documents)
        sizes = np.bincount(self.pattern, minlength=self.patterns)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        lengths = sizes[pattern]
        document = np.repeat(np.arange(len(pattern)), lengths)
        within = np.arange(len(document)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        cell = starts[pattern][document] + within
        return query, document, self.place[cell], self.impressions[cell], self.clicks[cell]

    @cached_property
    def work(self) -> float:
        """About how much work a fit of these cells takes, in patterns."""
        return float(self._pattern_work.sum() + len(self.entry) / 8)

    @cached_property
    def _pattern_work(self) -> Floats:
        return np.asarray(1 + np.bincount(self.pattern, minlength=self.patterns) / 4)

    def some_queries(self, rng: np.random.Generator, most: float, *, fewest: int = 0, at_most: float = 0.0) -> Ints:
        """Random queries that take about `most` work; all of them if they take less.

        If these are fewer than `fewest`, it adds queries, but not beyond `at_most` work.
        """
        queries = np.arange(self.queries)
        if self.work <= most:
            return queries
        rank = rng.permutation(queries)
        order = np.argsort(rank[self.query], kind="stable")
        met, first = np.unique(self.entry[order], return_index=True)  # where each pattern first occurs
        added = np.bincount(rank[self.query][order][first], self._pattern_work[met], self.queries)
        shared = np.bincount(rank[self.query], minlength=self.queries) / 8
        enough, most_taken = np.searchsorted(np.cumsum(added + shared), [most, max(most, at_most)]) + 1
        return np.sort(np.argsort(rank)[: max(enough, min(fewest, most_taken))])

    def thinned(self, rng: np.random.Generator, share: float) -> Cells:
        """A random share of the documents; queries without any left are dropped."""
        documents = rng.binomial(self.documents.astype(np.int64), share).astype(np.float64)
        some = documents > 0
        left = replace(self, query=self.query[some], entry=self.entry[some], documents=documents[some])
        return left.sample(np.unique(left.query))

    def at_places(self, places: Ints) -> Cells:
        """Only what was seen at some places; documents not seen there are dropped, and queries without any left."""
        number = np.full(len(self.places), -1)
        number[places] = np.arange(len(places))
        kept = number[self.place] >= 0
        contexts = np.unique(self.places.context[places], return_inverse=True)[1]
        few = replace(
            self,
            places=Places(self.places.position[places], contexts),
            pattern=self.pattern[kept],
            place=number[self.place[kept]],
            impressions=self.impressions[kept],
            clicks=self.clicks[kept],
        )
        seen = np.isin(self.entry, few.pattern)
        few = replace(few, query=self.query[seen], entry=self.entry[seen], documents=self.documents[seen])
        return few.sample(np.unique(few.query))

    def sample(self, queries: Ints) -> Cells:
        """Only the cells of some queries, numbered from 0 in the order given."""
        number = np.full(self.queries, -1)
        number[queries] = np.arange(len(queries))
        kept = number[self.query] >= 0
        used, entry = np.unique(self.entry[kept], return_inverse=True)
        of_pattern = np.full(self.patterns, -1)
        of_pattern[used] = np.arange(len(used))
        cells = of_pattern[self.pattern] >= 0
        return Cells(
            self.places,
            of_pattern[self.pattern[cells]],
            self.place[cells],
            self.impressions[cells],
            self.clicks[cells],
            number[self.query[kept]],
            entry,
            self.documents[kept],
            len(queries),
            None if self.score is None else self.score[used],
        )


def join_places(position: Ints | Floats, context: Ints, cells: Ints) -> tuple[Places, Ints]:
    """The model's places for places (position, context) with this many cells each, and which one each becomes.

    A context with too few cells counts as the largest one. From the last position up, a place with too few joins the
    one above. On a page with very many positions, those close together are one place.
    """
    sizes = np.bincount(context, cells)
    context = np.where(sizes[context] < SMALLEST_PLACE, int(sizes.argmax()), context)
    keys, inverse = np.unique(np.stack([context, position]), axis=1, return_inverse=True)
    context, position = keys[0].astype(np.int64), keys[1]
    sizes = np.bincount(inverse.ravel(), cells).astype(np.int64)
    width = 0.0
    block = _blocks(context, position, sizes, SMALLEST_PLACE, width)
    first = np.flatnonzero(np.diff(block, prepend=-1))
    while np.bincount(context[first]).max() > MOST_POSITIONS:
        width = max(2 * width, WIDTH)
        block = _blocks(context, position, sizes, SMALLEST_PLACE, width)
        first = np.flatnonzero(np.diff(block, prepend=-1))
    mean = np.add.reduceat(np.log(position) * sizes, first) / np.add.reduceat(sizes, first)
    return Places(np.exp(mean), np.unique(context[first], return_inverse=True)[1]), block[inverse.ravel()]


def _blocks(context: Ints, position: Ints | Floats, sizes: Ints, smallest: int, width: float) -> Ints:
    """The number of each place's block; places come in order of context and position."""
    starts: list[int] = []  # first places of blocks, the last block first
    for first, last in itertools.pairwise([*np.flatnonzero(np.diff(context, prepend=-1)), len(context)]):
        held, below = 0, float(position[last - 1])
        for i in range(last - 1, first - 1, -1):
            held += int(sizes[i])
            if (held >= smallest and np.log(below / position[max(i - 1, first)]) > width) or i == first:
                starts.append(i)
                held, below = 0, float(position[max(i - 1, first)])
        # If what is left at the top of a context is too small, it joins the block below it.
        if len(starts) > 1 and starts[-2] > first and sizes[first : starts[-2]].sum() < smallest:
            starts[-2:] = [first]
    return np.searchsorted(np.sort(starts), np.arange(len(context)), side="right") - 1


def _mixed(*columns: Ints) -> Ints:
    """A well mixed 64-bit code of some columns (splitmix64)."""
    code = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        code = (code ^ column) + np.uint64(0x9E3779B97F4A7C15)
        code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        code = (code ^ (code >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        code = code ^ (code >> np.uint64(31))
    return code
