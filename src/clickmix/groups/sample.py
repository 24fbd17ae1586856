"""A sample of a log: some of its documents or queries, the same ones on every engine.   counts -> groups"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from clickmix.counts.counts import Counts
from clickmix.engines.sql import aliased, aliases, listed
from clickmix.groups.histogram import Histogram
from clickmix.groups.places import places_of
from clickmix.log.source import kind_of
from clickmix.types import Ints

MOVING_FROM = 0.1  # share of documents at several places from which a log's documents move
LOOK_CELLS = 50_000  # enough to tell whether documents move
SAMPLE_CELLS = 400_000  # enough to fit a few hundred parameters well; labels are still computed from all cells

HASHED_TO = 2**31 - 1  # a prime
# A prime times the golden ratio, and times the root of two less one: ids that differ by one end up far apart.
SPREAD = (1_327_217_885, 889_516_852)


@dataclass(frozen=True)
class QueryCells:
    """All cells of some queries, in order of document; documents and queries numbered from 0, one query after another.

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


def cells_query(counts: Counts, where: str = "") -> str:
    """SQL for the cells with renamed keys: k0 is the position, k1 the first context column."""
    return (
        f"(SELECT query_id, doc_id, {aliased(counts.keys)}, impressions, clicks FROM {counts.table} {where}) AS cells"
    )


def read_moving(counts: Counts, histogram: Histogram) -> float:
    """The share of documents seen at more than one place, measured on a sample."""
    ((moving,),) = counts.engine.rows(
        "SELECT avg(CASE WHEN cells > 1 THEN 1.0 ELSE 0.0 END) FROM (SELECT count(*) AS cells "
        f"FROM {counts.table} {_sampled(counts, histogram, LOOK_CELLS)} GROUP BY query_id, doc_id)"
    )
    return float(moving)


def _sampled(counts: Counts, histogram: Histogram, cells: int) -> str:
    """SQL that keeps a sample of documents with about this many cells, the same documents every time."""
    share = min(1.0, cells / int(histogram.documents.sum()))
    return "" if share == 1.0 else f"WHERE {_chosen(counts, share, 'query_id', 'doc_id')}"


def part_of_queries(counts: Counts, part: int, parts: int) -> str:
    """SQL that keeps one of so many parts of the queries, of about the same size; `part` counts from 0."""
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

    Integers are spread by multiplication, text by MD5, which every engine has.
    """
    types = counts.engine.types(counts.table)
    if all(kind_of(types[key]) == "integer" for key in keys):
        spread = " + ".join(f"{_small(key, types[key])} * {by}" for key, by in zip(keys, SPREAD, strict=False))
        return HASHED_TO, f"abs({spread}) % {HASHED_TO}"
    texts = ", '/', ".join(f"CAST({key} AS VARCHAR)" for key in keys)
    return 2**32, f"left(md5(concat({texts})), 8)"


def _small(key: str, type: str) -> str:
    """SQL for an integer key that is small enough to multiply; short types already are, and dividing takes time."""
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
    """Fetch queries with about this many cells from the engine, all cells of each; all queries if there are no more."""
    share = min(1.0, (cells or SAMPLE_CELLS) / int(histogram.documents.sum()))
    where = f"WHERE {_chosen(counts, share, 'query_id')}" if share < 1 else ""
    keys = listed(aliases(counts.keys))
    columns = counts.engine.fetch(
        "SELECT dense_rank() OVER (ORDER BY query_id) - 1 AS query, "
        f"dense_rank() OVER (ORDER BY query_id, doc_id) - 1 AS document, {keys}, impressions, clicks "
        f"FROM {cells_query(counts, where)} ORDER BY document, {keys}"
    )
    places, place = places_of(columns, counts.context)
    index = {key: i for i, key in enumerate(histogram.places)}
    known = np.array([index[key] for key in places], dtype=np.int64)
    first = np.flatnonzero(np.diff(columns["document"], prepend=-1))
    impressions, clicks = columns["impressions"], columns["clicks"]
    return QueryCells(columns["query"][first], columns["document"], known[place], impressions, clicks, share)
