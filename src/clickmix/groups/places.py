"""Places, which are positions in a context, and their histogram.   counts -> groups -> mixtures

Under the position-based model each place is its own group. A place with too few documents to fit joins a neighbour.

The histogram says how many documents have how many impressions and clicks at each place. Separate fits need nothing
else: a few thousand rows, however long the log. `read_histogram` computes it from counts. `read_downloaded` reads one
that a warehouse computed with the statement of `clickmix sql histogram`. Its columns are position, the context columns,
impressions, clicks, documents, moving and again. `documents` counts every document seen at the place, `again` those
already seen at an earlier place, `moving` those seen here first and again at a later one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import numpy as np

from clickmix.counts import MOST_CONTEXTS
from clickmix.counts.count import LARGEST_TOTAL, count_contexts
from clickmix.counts.counts import Counts
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import aliased, aliases, listed, name
from clickmix.errors import InputError, SettingError, check_whole
from clickmix.groups.observations import Observations
from clickmix.log.files import find_sources, unreadable
from clickmix.log.layout import whole
from clickmix.log.open import checked_context, same_but_case
from clickmix.log.source import Source, kind_of
from clickmix.types import Ints

SMALLEST_GROUP = 30  # documents
MOST_PLACES = 50_000  # each takes some kilobytes


class Place(NamedTuple):
    """A position within a context."""

    position: int
    context: tuple[str, ...] = ()

    def describe(self, context_names: Sequence[str]) -> str:
        """The place in words.

        >>> Place(3, ("mobile",)).describe(["device"])
        'position 3, device mobile'
        """
        parts = [f"{key} {value or '(none)'}" for key, value in zip(context_names, self.context, strict=True)]
        return ", ".join([f"position {self.position}", *parts])


def checked_place(given: Place) -> Place:
    """The place as given; raises on anything else, such as a position: its context matters, too."""
    if not isinstance(given, Place):
        raise SettingError(f"place {given!r}: expected a Place, such as those of a fit: fit.groups[0].places[0].place.")
    return given


def read_places(counts: Counts) -> tuple[Place, ...]:
    """All places of a log, in order."""
    keys = listed(aliases(counts.keys))
    columns = counts.engine.fetch(f"SELECT DISTINCT {keys} FROM {counts.histogram} ORDER BY {keys}")
    return places_of(columns, counts.context)[0]


def join_small(places: Sequence[Place], documents: Sequence[int], *, smallest: int = SMALLEST_GROUP) -> list[int]:
    """The group of each place. A place with fewer than `smallest` documents joins a neighbour:

    1. a context whose positions together have too few documents is treated as the context with the most;
    2. from the last position up, a small place joins the one above it in the same context;
    3. a first position that is still too small joins the one below.

    >>> join_small([Place(1), Place(2), Place(3)], [90, 40, 3], smallest=10)
    [0, 1, 1]
    >>> join_small([Place(1), Place(2), Place(3)], [3, 40, 90], smallest=10)
    [0, 0, 1]
    >>> contexts = ["desktop", "mobile", "tablet"]
    >>> join_small([Place(1, (c,)) for c in contexts], [40, 90, 3], smallest=10)
    [0, 1, 1]
    """
    contexts = _readable_contexts(places, documents, smallest)
    sizes: dict[tuple[str, ...], Counter[int]] = {context: Counter() for context in sorted(set(contexts.values()))}
    for place, count in zip(places, documents, strict=True):
        sizes[contexts[place.context]][place.position] += int(count)
    joined: dict[tuple[tuple[str, ...], int], int] = {}
    groups = 0
    for context, of_context in sizes.items():
        positions = sorted(of_context)
        blocks = _blocks([of_context[position] for position in positions], smallest)
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
    """The block of each position: from the last one up, positions are joined until they have enough documents."""
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
    """The index of the place to use instead of another: in the same context if possible, then the nearest position.

    >>> nearest(Place(9), [Place(1), Place(5), Place(20)])
    1
    """

    def distance(i: int) -> tuple[bool, int, int, tuple[str, ...]]:
        other = among[i]
        off = abs(other.position - place.position)
        return other.context != place.context, off, other.position, other.context

    return min(range(len(among)), key=distance)


def nearest_changes(places: Iterable[Place]) -> list[int]:
    """Positions at which the nearest known position changes, in any context; the first is 1.

    >>> nearest_changes([Place(1), Place(2), Place(9)])
    [1, 2, 6]
    """
    positions: dict[tuple[str, ...], set[int]] = {}
    for place in places:
        positions.setdefault(place.context, set()).add(place.position)
    pairs = (pair for known in positions.values() for pair in itertools.pairwise(sorted(known)))
    return sorted({1, *((above + below) // 2 + 1 for above, below in pairs)})  # a tie goes to the upper position


def places_of(columns: dict[str, Ints], context: Sequence[str]) -> tuple[tuple[Place, ...], Ints]:
    """The distinct places in columns k0, k1, ..., in order, and the place of each row."""
    given = [columns[alias] for alias in aliases(["position", *context])]
    new = np.ones(len(given[0]), dtype=np.bool_)  # where a run of rows of the same place begins: most logs are sorted
    new[1:] = np.any([values[1:] != values[:-1] for values in given], axis=0)
    position, *keys = (values[new] for values in given)
    codes = np.unique(position, return_inverse=True)[1]
    for key in keys:  # as objects, because numpy's text type drops a trailing NUL
        values, code = np.unique(key.astype(object), return_inverse=True)
        codes = np.unique(codes * len(values) + code, return_inverse=True)[1]
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    if len(first) > MOST_PLACES:
        raise InputError(_too_many(len(first), len(np.unique(position)), context))
    contexts = zip(*(key[first] for key in keys), strict=True) if keys else ((),) * len(first)
    return tuple(
        Place(int(at), tuple(map(str, values))) for at, values in zip(position[first], contexts, strict=True)
    ), place.ravel()[np.cumsum(new) - 1]


def _too_many(places: int, positions: int, context: Sequence[str]) -> str:
    by_context = f" in {', '.join(context)}" if context else ""
    return (
        f"the log has {places:,} places ({positions:,} positions{by_context}), more than {MOST_PLACES:,}. "
        f"{'Leave the context out, or' if context else 'Check the position column, or'} use only the first positions."
    )


NUMBERS = ("position", "impressions", "clicks", "documents", "moving", "again")
GOOD = (
    "k0 >= 1 AND impressions >= 1 AND clicks BETWEEN 0 AND impressions AND documents >= 1 "
    "AND moving >= 0 AND again >= 0 AND moving + again <= documents"
)


@dataclass(frozen=True)
class Histogram:
    """How many documents have how many impressions and clicks at each place; one row per distinct combination."""

    places: tuple[Place, ...]
    place: Ints
    impressions: Ints
    clicks: Ints
    documents: Ints
    context: tuple[str, ...] = ()

    def total(self, column: Ints) -> Ints:
        """Sum a column per place, counting each row once per document."""
        sums = np.zeros(len(self.places), dtype=np.int64)
        np.add.at(sums, self.place, column * self.documents)  # integers stay exact beyond 2^53
        return sums


def read_histogram(counts: Counts) -> Histogram:
    """Fetch the histogram of counts from the engine."""
    keys = listed([*aliases(counts.keys), "impressions", "clicks"])
    columns = counts.engine.fetch(f"SELECT {keys}, documents FROM {counts.histogram} ORDER BY {keys}")
    return make_histogram(columns, counts.context)


def make_histogram(columns: dict[str, Ints], context: Sequence[str]) -> Histogram:
    """Build a histogram from columns impressions, clicks, documents, k0 (position) and k1, ... (the context)."""
    places, place = places_of(columns, context)
    return Histogram(
        places, place, columns["impressions"], columns["clicks"], columns["documents"], context=tuple(context)
    )


def observations_of(histogram: Histogram, group: Ints) -> list[Observations]:
    """The rows of each group as observations; `group` has the number of each place's group."""
    columns = (histogram.impressions, histogram.clicks, histogram.documents)
    return [
        Observations.histogram(*(column[rows] for column in columns))
        for rows in rows_of_groups(group[histogram.place], groups=int(group.max()) + 1)
    ]


def rows_of_groups(group: Ints, *, groups: int) -> list[Ints]:
    """The rows of each group, in order; `group` has the number of each row's group.

    >>> [rows.tolist() for rows in rows_of_groups(np.array([1, 0, 1]), groups=3)]
    [[1], [0, 2], []]
    """
    ends = np.cumsum(np.bincount(group, minlength=groups))
    return np.split(np.argsort(group, kind="stable"), ends[:-1])


def histogram_query(table: str, context: Sequence[str]) -> str:
    """SQL that computes the histogram of a table of counts."""
    keys = ("position", *_checked(context))
    cells, nth = f"k{len(keys)}", f"k{len(keys) + 1}"
    document = "PARTITION BY query_id, doc_id"
    renamed = listed(f"{alias} AS {name(key)}" for key, alias in zip(keys, aliases(keys), strict=True))
    ordinals = listed(str(i + 1) for i in range(len(keys) + 2))
    return (
        f"SELECT {renamed}, impressions, clicks, count(*) AS documents, "
        f"sum(CASE WHEN {cells} > 1 AND {nth} = 1 THEN 1 ELSE 0 END) AS moving, "
        f"sum(CASE WHEN {nth} > 1 THEN 1 ELSE 0 END) AS again FROM (SELECT {aliased(keys)}, impressions, clicks, "
        f"count(*) OVER ({document}) AS {cells}, "
        f"row_number() OVER ({document} ORDER BY {listed(map(name, keys))}) AS {nth} FROM {table}) "
        f"GROUP BY {ordinals} ORDER BY {ordinals}"
    )


def is_histogram(log: object) -> bool:
    """Whether files hold a histogram, which counts documents instead of naming them."""
    columns = [{column.lower() for column in source.types} for source in find_sources(log, DuckDB())]
    return all("documents" in each and "query_id" not in each for each in columns)


def read_downloaded(
    log: object, *, context: Sequence[str] = (), max_contexts: int = MOST_CONTEXTS
) -> tuple[Histogram, float]:
    """Read a histogram from files; also returns the share of its documents that were seen at several places."""
    engine, context = DuckDB(), _checked(context)
    sources = find_sources(log, engine)
    where = ", ".join(map(str, sources))
    try:
        table = engine.keep(" UNION ALL ".join(_part(source, context) for source in sources))
    except duckdb.Error as error:
        raise unreadable(where, error) from None
    _check_rows(engine, table, where)
    places = aliases(["position", *context])
    check_whole("max_contexts", max_contexts, least=1)
    count_contexts(engine, table, dict(zip(context, places[1:], strict=True)), most=max_contexts)
    keys = listed([*places, "impressions", "clicks"])
    columns = engine.fetch(
        f"SELECT {keys}, CAST(sum(documents) AS BIGINT) AS documents, CAST(sum(moving) AS BIGINT) AS moving, "
        f"CAST(sum(again) AS BIGINT) AS again FROM {table} GROUP BY {keys} ORDER BY {keys}"
    )
    documents = np.sum(columns["documents"]) - np.sum(columns["again"])
    moving = float(np.sum(columns["moving"]) / documents) if documents > 0 else 0.0
    return make_histogram(columns, context), moving


def _checked(context: Sequence[str]) -> tuple[str, ...]:
    """The context columns; raises if one has the name of a histogram column."""
    for column in checked_context(context):
        if column.lower() in NUMBERS:
            raise SettingError(
                f"context {column!r}: a histogram already has a column of that name. Make a view of the counts that "
                "gives it another name."
            )
    return tuple(context)


def _check_rows(engine: DuckDB, table: str, where: str) -> None:
    ((bad, rows),) = engine.rows(f"SELECT count(CASE WHEN {GOOD} THEN NULL ELSE 1 END), count(*) FROM {table}")
    if bad or not rows:
        raise InputError(
            f"{where}: {bad:,} of {rows:,} rows do not belong in a histogram. Expected whole numbers: position, "
            "impressions and documents of at least 1, clicks up to impressions, moving and again together up to "
            "documents."
        )
    # Cap each row just above the limit: even a HUGEINT cannot hold the sum of all products.
    shown = f"least(CAST(impressions AS HUGEINT) * documents, {LARGEST_TOTAL + 1})"
    ((total,),) = engine.rows(f"SELECT sum({shown}) FROM {table}")
    if total > LARGEST_TOTAL:
        raise InputError(
            f"{where}: the impressions of all documents add up to more than {LARGEST_TOTAL}. Check the columns "
            "impressions and documents, or use a part of the log."
        )


def _part(source: Source, context: Sequence[str]) -> str:
    """SQL for a file's rows, with keys renamed k0, k1, ... Snowflake writes column names in capitals."""
    found = {wanted: same_but_case(wanted, source.types) for wanted in (*NUMBERS, *context)}
    missing = [wanted for wanted, column in found.items() if column is None]
    if missing:
        raise InputError(
            f"{source}: no column {missing[0]!r}. Found {', '.join(source.types)}. Expected the result of the "
            "statement that `clickmix sql histogram` prints."
        )
    columns = {wanted: str(column) for wanted, column in found.items()}
    for wanted in NUMBERS:
        type = source.types[columns[wanted]]
        if kind_of(type) not in ("text", "integer", "real"):
            raise InputError(f"{source}, column {columns[wanted]!r}: found {type} values, expected whole numbers.")
    position, *numbers = (whole(source, columns[wanted]) for wanted in NUMBERS)
    keys = [position, *(f"coalesce(CAST({name(columns[key])} AS VARCHAR), '')" for key in context)]
    values = zip((*keys, *numbers), (*aliases(keys), *NUMBERS[1:]), strict=True)
    return f"SELECT {listed(f'{value} AS {alias}' for value, alias in values)} FROM {source.table()}"
