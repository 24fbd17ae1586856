"""Parts of a log: a sample of its documents or queries, the same on every engine; or quarters.   counts -> groups

A log is dealt into four quarters, so that what some of them teach can be tested on the others. If the log names
sessions, these are dealt: a person's clicks stay together. Otherwise impressions are dealt out of the counts. For a
large log, a sample of queries is dealt, with all their cells.

Dealing sessions reads the log again, but only the rows of the sampled queries, and only on request: for 20
million rows of Parquet it takes a quarter of the time of counting. Counting by quarter from the start would take as
long, for every count. Text is slow to read even for few rows, so for large text files impressions are dealt.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np

from clickmix.counts.count import GOOD_KEY, count_opened
from clickmix.counts.counts import SUMS, Counts
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import aliased, aliases, listed, name
from clickmix.groups.places import Histogram
from clickmix.log.layout import Part, Roles, context_value, key_values
from clickmix.log.layouts.counted import Counted
from clickmix.log.layouts.rows import RowLayout, flags
from clickmix.log.open import OpenedLog
from clickmix.log.source import Registered, kind_of
from clickmix.types import Ints

MOVING_FROM = 0.1  # documents of a log move if at least this share of them is at several places
LOOK_CELLS = 50_000  # enough to tell whether documents move
SAMPLE_CELLS = 400_000  # enough to fit a few hundred parameters well; labels are still computed from all cells

HASHED_TO = 2**31 - 1  # a prime
# The prime times the golden ratio less one, and times the root of two less one: neighbouring ids end up far apart.
SPREAD = (1_327_217_885, 889_516_852)


@dataclass(frozen=True)
class QueryCells:
    """All cells of some queries, sorted by document; documents and queries are numbered from 0, query by query.

    `query` has an element per document. `share` is the share of the log's queries.
    """

    query: Ints
    document: Ints
    place: Ints
    impressions: Ints
    clicks: Ints
    share: float

    @property
    def queries(self) -> int:
        """How many queries."""
        return int(self.query[-1]) + 1


def number_kinds(counts: Counts) -> str:
    """A table of the histogram's rows, the kinds of cells, numbered in the order in which they are read."""
    keys = listed([*aliases(counts.keys), "impressions", "clicks"])
    return counts.engine.keep(
        f"SELECT {keys}, CAST(row_number() OVER (ORDER BY {keys}) - 1 AS INTEGER) AS kind FROM {counts.histogram}"
    )


def cells_query(counts: Counts, where: str = "") -> str:
    """SQL for the cells with renamed keys: k0 is the position, k1 the first context column."""
    return (
        f"(SELECT query_id, doc_id, {aliased(counts.keys)}, impressions, clicks FROM {counts.table} {where}) AS cells"
    )


def read_moving(counts: Counts, histogram: Histogram) -> float:
    """The share of documents seen at more than one place, measured on a sample."""
    share = min(1.0, LOOK_CELLS / int(histogram.documents.sum()))
    sampled = "" if share == 1.0 else f"WHERE {_chosen(counts, share, 'query_id', 'doc_id')}"
    ((moving,),) = counts.engine.rows(
        # Of doubles, because Spark rounds a mean of decimals to a few digits.
        "SELECT avg(CAST(CASE WHEN cells > 1 THEN 1 ELSE 0 END AS DOUBLE)) FROM (SELECT count(*) AS cells "
        f"FROM {counts.table} {sampled} GROUP BY query_id, doc_id)"
    )
    return float(moving)


def part_of_queries(counts: Counts, part: int, parts: int) -> str:
    """SQL that keeps one of `parts` parts of the queries, of about the same size; `part` counts from 0."""
    if parts == 1:
        return ""
    most, spread = _spread(counts, "query_id")
    low, high = (most * i // parts for i in (part, part + 1))
    return f"WHERE {spread} >= {_limit(most, low)}" + (f" AND {spread} < {_limit(most, high)}" if high < most else "")


def _chosen(counts: Counts, share: float, *keys: str) -> str:
    """SQL that is true for about this share of the keys, the same keys on every engine."""
    most, spread = _spread(counts, *keys)
    return f"{spread} < {_limit(most, min(round(share * most), 2**32 - 1))}"


def _limit(most: int, value: int) -> str:
    return str(value) if most == HASHED_TO else f"'{value:08x}'"


def _spread(counts: Counts, *keys: str) -> tuple[int, str]:
    """SQL for a number or text that spreads the keys evenly, and how many values it has.

    Integers are spread by multiplication, and text by MD5, which every engine has.
    """
    types = counts.engine.types(counts.table)
    if all(kind_of(types[key]) == "integer" for key in keys):
        spread = " + ".join(f"{_small(key, types[key])} * {by}" for key, by in zip(keys, SPREAD, strict=False))
        return HASHED_TO, f"abs({spread}) % {HASHED_TO}"
    texts = ", '/', ".join(f"CAST({key} AS VARCHAR)" for key in keys)
    return 2**32, f"left(md5(concat({texts})), 8)"


def _small(key: str, type: str) -> str:
    """SQL for an integer key, made small enough to multiply. Short types already are, and dividing takes time."""
    return f"CAST({key} AS BIGINT)" if type in ("SMALLINT", "INTEGER") else f"CAST({key} % {HASHED_TO} AS BIGINT)"


def sample_queries(counts: Counts, share: float) -> Counts:
    """Counts of about this share of the queries, with all cells of each."""
    if share >= 1:
        return counts
    chosen = _chosen(counts, share, "query_id")
    tables = (counts.table, counts.by_list)
    kept = [table and counts.engine.keep(f"SELECT * FROM {table} WHERE {chosen}") for table in tables]
    return replace(counts, table=str(kept[0]), by_list=kept[1])


def read_queries(counts: Counts, histogram: Histogram, *, cells: int | None = None) -> QueryCells:
    """Fetch all cells of a sample of queries with about `cells` cells; of all queries if there are no more."""
    share = min(1.0, (cells or SAMPLE_CELLS) / int(histogram.documents.sum()))
    where = f"WHERE {_chosen(counts, share, 'query_id')}" if share < 1 else ""
    keys = listed(aliases(counts.keys))
    columns = counts.engine.fetch(
        "SELECT dense_rank() OVER (ORDER BY query_id) - 1 AS query, "
        f"dense_rank() OVER (ORDER BY query_id, doc_id) - 1 AS document, kind "
        f"FROM {cells_query(counts, where)} JOIN {number_kinds(counts)} USING ({keys}, impressions, clicks) "
        "ORDER BY document, kind"
    )
    document, kind = columns["document"], columns["kind"]
    first = np.flatnonzero(np.diff(document, prepend=-1))
    seen = histogram.place[kind], histogram.impressions[kind], histogram.clicks[kind]
    return QueryCells(columns["query"][first], document, *seen, share)


Dealt = Literal["sessions", "impressions"]
QUARTERS = 4
QUARTER = "quarter of the log"  # no context column has this name
MOST_CELLS = 200_000
MOST_IMPRESSIONS = 1_000_000
FEWEST_QUERIES = 100  # queries of a sample; if these have too many rows to read again, impressions are dealt
MOST_TEXT = 100_000_000  # bytes of text files that are quick to read again
MOST_DEALT = 10**8  # a cell with more impressions counts as this many, with the same click rate
DEALT_BY = 2**20


@dataclass(frozen=True)
class Quarters:
    """The four quarters of a log: sessions or impressions, of a `share` of its queries."""

    dealt: Dealt
    share: float
    engine: DuckDB = field(repr=False)
    table: str = field(repr=False)
    layout: RowLayout = field(repr=False)
    roles: Roles = field(repr=False)

    @property
    def without_lists(self) -> Quarters:
        """The same quarters, counted without result lists."""
        return replace(self, roles=replace(self.roles, lists=False))

    def counts(self, *quarters: int) -> Counts:
        """The counts of some quarters together."""
        view = self.engine.new_name("quarters")
        chosen = f"{name(QUARTER)} IN ({listed(map(str, quarters))})"
        self.engine.run(f"CREATE TEMP VIEW {view} AS SELECT * EXCLUDE {name(QUARTER)} FROM {self.table} WHERE {chosen}")
        source = Registered(self.engine.types(view), registered=view)
        return count_opened(OpenedLog((source,), (Part(source, self.layout, self.roles),), self.roles), self.engine)

    def cells_query(self) -> str:
        """SQL for the cells of all quarters, lists added up: `part` is the quarter, k0 the position, then contexts."""
        keys = ("position", *self.roles.context)
        counted = "count(*) AS impressions, count(*) FILTER (WHERE clicked) AS clicks"
        sums = SUMS if self.dealt == "impressions" else counted
        return (
            f"SELECT {name(QUARTER)} AS part, query_id, doc_id, {aliased(keys)}, {sums} "
            f"FROM {self.table} GROUP BY {listed(map(str, range(1, 4 + len(keys))))}"
        )


def share_dealt(counts: Counts, *, most_cells: int = MOST_CELLS) -> float:
    """The share of queries with about `most_cells` cells, which are those of result lists if these were counted."""
    cells, queries, _ = _sizes(counts)
    return min(1.0, max(most_cells / cells, FEWEST_QUERIES / queries))


def _sizes(counts: Counts) -> tuple[int, int, int]:
    """Cells (of result lists if these were counted), queries and impressions."""
    ((cells, queries, shown),) = counts.engine.rows(
        "SELECT count(*), count(DISTINCT query_id), CAST(sum(impressions) AS BIGINT) "
        f"FROM {counts.by_list or counts.table}"
    )
    return int(cells), int(queries), int(shown)


def deal(
    counts: Counts,
    *,
    most_cells: int = MOST_CELLS,
    most_impressions: int = MOST_IMPRESSIONS,
    most_read: float = math.inf,
    share: float = 1.0,
    seed: int = 0,
) -> Quarters:
    """Deal a log, or a sample of its queries with about that many cells and impressions, into quarters.

    `share` is the largest share of queries to deal. With the same share, counts of one log with and without result
    lists have the same sessions in each quarter. A log of more than `most_read` impressions is not read again.
    """
    cells, queries, shown = _sizes(counts)
    share = min(share, 1.0, max(most_cells / cells, FEWEST_QUERIES / queries))
    of_rows = min(share, most_impressions / shown)
    engine = counts.engine.embedded
    enough = shown <= most_read and (of_rows == 1 or of_rows * queries >= FEWEST_QUERIES)
    if engine is not None and enough and counts.parts and all(map(names_sessions, counts.parts)):
        with contextlib.suppress(duckdb.Error):  # lines that only the slow reader can read, or a file that is gone
            types, lists = engine.types(counts.table), counts.parts[0].roles.lists
            rows = (_rows(part, counts.context, types, of_rows, seed) for part in counts.parts)
            table = engine.keep(" UNION ALL ".join(rows))
            return Quarters("sessions", of_rows, engine, table, RowLayout(), Roles({}, counts.context, lists))
    return _deal_impressions(counts, share, seed)


def names_sessions(part: Part) -> bool:
    """Whether a part has one row per impression, with its session, and is quick to read again."""
    if not (part.layout.row_is_impression and part.has("session_id")):
        return False
    text = [Path(file) for file in part.source.files if not file.lower().endswith((".parquet", ".pq"))]
    return sum(file.stat().st_size if file.is_file() else MOST_TEXT for file in text) < MOST_TEXT


def _rows(part: Part, context: tuple[str, ...], types: Mapping[str, str], share: float, seed: int) -> str:
    """SQL for the good rows of sampled queries, each with the quarter of its session."""
    query, document, position = key_values(part)
    clicked, readable = flags(part)
    session = f"CAST({name(part.column('session_id'))} AS VARCHAR)"
    chosen = f" AND hash({query}) % {DEALT_BY} < {share * DEALT_BY}" if share < 1 else ""
    contexts = "".join(f", {context_value(column)} AS {name(column)}" for column in context)
    rows = (
        f"SELECT TRY_CAST({query} AS {types['query_id']}) AS query_id, "
        f"TRY_CAST({document} AS {types['doc_id']}) AS doc_id, {position} AS position, {clicked} AS clicked, "
        f"{session} AS session_id{contexts}, hash(concat({session}, ' {seed}')) % {QUARTERS} AS {name(QUARTER)} "
        f"FROM {part.source.table()} WHERE {readable}{chosen}"
    )
    return f"SELECT * FROM ({rows}) WHERE {GOOD_KEY} AND session_id <> ''"


def _deal_impressions(counts: Counts, share: float, seed: int) -> Quarters:
    """Every impression goes to one of the quarters with equal chance; those of a result list stay together."""
    chosen = sample_queries(counts, share)
    columns = chosen.engine.fetch(chosen.query() if chosen.by_list is None else chosen.list_query())
    exact = columns["impressions"]
    shown = np.minimum(exact, MOST_DEALT)
    clicks = columns["clicks"] * shown // exact
    rng = np.random.default_rng(seed)
    sizes = rng.multinomial(shown, [1 / QUARTERS] * QUARTERS)
    if chosen.by_list is not None:
        new = np.ones(len(shown), dtype=np.bool_)
        new[1:] = (columns["list"][1:] != columns["list"][:-1]) | (columns["query_id"][1:] != columns["query_id"][:-1])
        first = np.flatnonzero(new)[np.cumsum(new) - 1]
        sizes = np.where((shown == shown[first])[:, None], sizes[first], sizes)
    dealt, clicks_left, left = np.zeros_like(sizes), clicks.copy(), shown.copy()
    for i in range(QUARTERS):
        dealt[:, i] = rng.hypergeometric(clicks_left, left - clicks_left, sizes[:, i])
        clicks_left, left = clicks_left - dealt[:, i], left - sizes[:, i]
    row, quarter = np.nonzero(sizes)
    table = {key: values[row] for key, values in columns.items() if key not in ("impressions", "clicks")}
    table |= {"impressions": sizes[row, quarter], "clicks": dealt[row, quarter], QUARTER: quarter}
    engine = counts.engine.embedded or DuckDB()
    given = engine.new_name("dealt")
    engine.register(given, table)
    return Quarters(
        "impressions", share, engine, given, Counted(), Roles({}, counts.context, counts.by_list is not None)
    )
