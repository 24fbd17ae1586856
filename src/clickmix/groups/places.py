"""Groups: which cells share one chance of being examined.   counts -> groups -> mixtures

A place is a position, crossed with the context columns. Under the position-based model every place is a group of its
own, unless it holds too few documents to be fitted: then it is joined to a neighbour.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from clickmix.counts.counts import Counts
from clickmix.engines.sql import aliased, aliases, listed
from clickmix.log.sources import kind_of
from clickmix.types import Ints

SMALLEST_GROUP = 30  # documents
LOOK_CELLS = 50_000  # what tells whether documents move
SAMPLE_CELLS = 400_000  # what fixes a few hundred parameters well; all labels are still computed from all cells

HASHED_TO = 2**31 - 1  # a prime
# A prime times the golden ratio, and times the root of two less one: what differs by one ends up far apart.
SPREAD = (1_327_217_885, 889_516_852)


class Place(NamedTuple):
    """A position within a context."""

    position: int
    context: tuple[str, ...] = ()

    def describe(self, context_names: Sequence[str]) -> str:
        """In words.

        >>> Place(3, ("mobile",)).describe(["device"])
        'position 3, device mobile'
        """
        parts = [f"{key} {value or '(none)'}" for key, value in zip(context_names, self.context, strict=True)]
        return ", ".join([f"position {self.position}", *parts])


@dataclass(frozen=True)
class Histogram:
    """How many documents had how many impressions and clicks at each place: all that separate fits need of a log."""

    places: tuple[Place, ...]
    place: Ints
    impressions: Ints
    clicks: Ints
    documents: Ints
    context: tuple[str, ...] = ()

    def total(self, column: Ints) -> Ints:
        """Sums per place, each row as often as it has documents."""
        sums = np.zeros(len(self.places), dtype=np.int64)
        np.add.at(sums, self.place, column * self.documents)  # whole numbers, exact beyond 2^53
        return sums


@dataclass(frozen=True)
class Sample:
    """All cells of some documents, document by document."""

    document: Ints
    place: Ints
    impressions: Ints
    clicks: Ints


def read_histogram(counts: Counts) -> Histogram:
    """Ask the engine for the histogram: a few thousand rows, however long the log."""
    keys = listed([*aliases(counts.keys), "impressions", "clicks"])
    columns = counts.engine.fetch(f"SELECT {keys}, documents FROM {counts.patterns} ORDER BY {keys}")
    return make_histogram(columns, counts.context)


def make_histogram(columns: dict[str, Ints], context: Sequence[str]) -> Histogram:
    """From columns impressions, clicks, documents and k0, k1, ...: position and those of the context, in order."""
    places, place = places_of(columns, context)
    return Histogram(
        places, place, columns["impressions"], columns["clicks"], columns["documents"], context=tuple(context)
    )


def cells_query(counts: Counts, where: str = "") -> str:
    """SQL for the cells, their keys under names of ours: k0 is the position, k1 the first column of the context."""
    return (
        f"(SELECT query_id, doc_id, {aliased(counts.keys)}, impressions, clicks FROM {counts.table} {where}) AS cells"
    )


def read_moving(counts: Counts, histogram: Histogram) -> float:
    """The share of documents seen at more than one place, of a sample."""
    ((moving,),) = counts.engine.rows(
        "SELECT avg(CASE WHEN cells > 1 THEN 1.0 ELSE 0.0 END) FROM (SELECT count(*) AS cells "
        f"FROM {counts.table} {_sampled(counts, histogram, LOOK_CELLS)} GROUP BY query_id, doc_id)"
    )
    return float(moving)


def _sampled(counts: Counts, histogram: Histogram, cells: int) -> str:
    """SQL that keeps a sample of documents with about so many cells, the same ones every time."""
    share = min(1.0, cells / int(histogram.documents.sum()))
    return "" if share == 1.0 else f"WHERE {_chosen(counts, share, 'query_id', 'doc_id')}"


def _chosen(counts: Counts, share: float, *keys: str) -> str:
    """SQL that is true for about this share of what the keys name, the same ones on every engine.

    Whole numbers are spread by multiplication; texts by MD5, which every engine knows.
    """
    types = counts.engine.types(counts.table)
    if all(kind_of(types[key]) == "integer" for key in keys):
        spread = " + ".join(f"{_small(key, types[key])} * {by}" for key, by in zip(keys, SPREAD, strict=False))
        return f"abs({spread}) % {HASHED_TO} < {round(share * HASHED_TO)}"
    texts = ", '/', ".join(f"CAST({key} AS VARCHAR)" for key in keys)
    return f"left(md5(concat({texts})), 8) < '{min(round(share * 2**32), 2**32 - 1):08x}'"


def _small(key: str, type: str) -> str:
    """A whole number as one that can be multiplied; to divide those that can be already would only take time."""
    return f"CAST({key} AS BIGINT)" if type in ("SMALLINT", "INTEGER") else f"CAST({key} % {HASHED_TO} AS BIGINT)"


def sample_queries(counts: Counts, share: float) -> Counts:
    """The counts of about this share of the queries, each with all its cells."""
    if share >= 1:
        return counts
    chosen = _chosen(counts, share, "query_id")
    return replace(counts, table=counts.engine.keep(f"SELECT * FROM {counts.table} WHERE {chosen}"))


def read_sample(counts: Counts, histogram: Histogram) -> Sample:
    """Ask the engine for a sample of documents, each with all its cells."""
    keys = listed(aliases(counts.keys))
    columns = counts.engine.fetch(
        f"SELECT dense_rank() OVER (ORDER BY query_id, doc_id) - 1 AS document, {keys}, impressions, clicks "
        f"FROM {cells_query(counts, _sampled(counts, histogram, SAMPLE_CELLS))} ORDER BY document, {keys}"
    )
    places, place = places_of(columns, counts.context)
    index = {key: i for i, key in enumerate(histogram.places)}
    known = np.array([index[key] for key in places], dtype=np.int64)
    return Sample(columns["document"], known[place], columns["impressions"], columns["clicks"])


def read_places(counts: Counts) -> tuple[Place, ...]:
    """The places of a log, in order."""
    keys = listed(aliases(counts.keys))
    columns = counts.engine.fetch(f"SELECT DISTINCT {keys} FROM {counts.patterns} ORDER BY {keys}")
    return places_of(columns, counts.context)[0]


def join_small(places: Sequence[Place], documents: Sequence[int], *, smallest: int = SMALLEST_GROUP) -> list[int]:
    """The group of each place. A place with fewer than `smallest` documents joins a neighbour:

    1. a context with too few documents in all its positions together is read as the context with the most;
    2. from the last position up, a place too small joins the one above it in its context;
    3. a first position still too small joins the one below.

    >>> join_small([Place(1), Place(2), Place(3)], [90, 40, 3], smallest=10)
    [0, 1, 1]
    >>> join_small([Place(1), Place(2), Place(3)], [3, 40, 90], smallest=10)
    [0, 0, 1]
    >>> contexts = ["desktop", "mobile", "tablet"]
    >>> join_small([Place(1, (c,)) for c in contexts], [40, 90, 3], smallest=10)
    [0, 1, 1]
    """
    contexts = _readable_contexts(places, documents, smallest)
    sizes: dict[tuple[tuple[str, ...], int], int] = {}
    for place, count in zip(places, documents, strict=True):
        key = (contexts[place.context], place.position)
        sizes[key] = sizes.get(key, 0) + int(count)
    joined: dict[tuple[tuple[str, ...], int], int] = {}
    groups = 0
    for context in sorted(set(contexts.values())):
        positions = sorted(position for c, position in sizes if c == context)
        blocks = _blocks([sizes[context, position] for position in positions], smallest)
        joined |= {(context, position): groups + block for position, block in zip(positions, blocks, strict=True)}
        groups += max(blocks) + 1
    return [joined[contexts[place.context], place.position] for place in places]


def _readable_contexts(
    places: Sequence[Place], documents: Sequence[int], smallest: int
) -> dict[tuple[str, ...], tuple[str, ...]]:
    totals: dict[tuple[str, ...], int] = {}
    for place, count in zip(places, documents, strict=True):
        totals[place.context] = totals.get(place.context, 0) + int(count)
    largest = max(sorted(totals), key=lambda context: totals[context])
    return {context: context if total >= smallest else largest for context, total in totals.items()}


def _blocks(sizes: Sequence[int], smallest: int) -> list[int]:
    """Number of the block of each position: from the last one up, positions wait until they are enough together."""
    merged: list[list[int]] = []
    waiting: list[int] = []
    for i in reversed(range(len(sizes))):
        waiting.insert(0, i)
        if sum(sizes[j] for j in waiting) >= smallest:
            merged.insert(0, waiting)
            waiting = []
    if waiting:
        merged[:1] = [waiting + (merged[0] if merged else [])]
    return [block for block, members in enumerate(merged) for _ in members]


def nearest(place: Place, among: Sequence[Place]) -> int:
    """Which of some places stands for another one: in the same context, if it is there, the nearest position.

    >>> nearest(Place(9), [Place(1), Place(5), Place(20)])
    1
    """

    def distance(i: int) -> tuple[bool, int, int, tuple[str, ...]]:
        other = among[i]
        off = abs(other.position - place.position)
        return other.context != place.context, off, other.position, other.context

    return min(range(len(among)), key=distance)


def nearest_changes(places: Iterable[Place]) -> list[int]:
    """The positions from which on another one is the nearest, in any of the contexts; the first of them is 1.

    >>> nearest_changes([Place(1), Place(2), Place(9)])
    [1, 2, 6]
    """
    positions: dict[tuple[str, ...], set[int]] = {}
    for place in places:
        positions.setdefault(place.context, set()).add(place.position)
    pairs = (pair for known in positions.values() for pair in itertools.pairwise(sorted(known)))
    return sorted({1, *((above + below) // 2 + 1 for above, below in pairs)})  # halfway, the upper one is taken


def places_of(columns: dict[str, Ints], context: Sequence[str]) -> tuple[tuple[Place, ...], Ints]:
    """The distinct places of some rows (k0, k1, ...), in order, and which of them each row belongs to."""
    position, *keys = (columns[alias] for alias in aliases(["position", *context]))
    codes = np.unique(position, return_inverse=True)[1]
    for key in keys:  # as objects: numpy's own texts forget a NUL at the end
        values, code = np.unique(key.astype(object), return_inverse=True)
        codes = np.unique(codes * len(values) + code, return_inverse=True)[1]
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    contexts = zip(*(key[first] for key in keys), strict=True) if keys else ((),) * len(first)
    return tuple(
        Place(int(at), tuple(map(str, values))) for at, values in zip(position[first], contexts, strict=True)
    ), place.ravel()
