"""The queries of a report, computed in SQL where the counts are.   counts, labels -> queries, result lists

    gain = DCG@10 of the query's documents sorted by label - mean DCG@10 of its lists as people saw them
    DCG@10 = sum over positions k up to 10 of label / log2(k + 1)
The number of lists is taken to be the impressions of the position, or of the document, that was seen most. So no
position and no document counts more than once in a list, and the gain is never negative.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clickmix.counts.counts import SUMS, Counts
from clickmix.engines.engine import Engine
from clickmix.engines.sql import literal
from clickmix.report.log_numbers import LabelTable
from clickmix.report.rows import LONGEST_ID

DEPTH = 10  # last position of DCG and of the result lists shown
MOST_POSITIONS = 5  # positions of a document to show: those where it was shown most
MOST_QUERIES = 20_000  # no more fit into a file
MOST_BYTES = 4_000_000  # bytes of embedded queries: the whole file stays below 5 MB
# Roughly the bytes that the numbers of a query, a document and a position take in the file.
QUERY_BYTES, DOCUMENT_BYTES, POSITION_BYTES = 50, 42, 12


@dataclass(frozen=True)
class QueryTable:
    """A row per query in a table of the engine; how many queries there are, how many are too rare to show, mean gain.

    A report shows a query if its documents were shown at least `min_sessions` times on average: rare texts can be
    personal.
    """

    engine: Engine
    name: str
    labels: LabelTable
    counts: Counts
    min_sessions: int
    queries: int
    hidden: int
    mean_gain: float

    @property
    def condition(self) -> str:
        """SQL that is true for a query that may be shown."""
        return f"impressions >= {self.min_sessions} * documents"

    @property
    def among(self) -> str:
        """SQL that is true for a label whose query may be shown."""
        return f"query_id IN (SELECT query_id FROM {self.name} WHERE {self.condition})"

    def may_show(self, queries: Sequence[str]) -> set[str]:
        """Which of these queries may be shown."""
        if not queries:
            return set()
        texts = ", ".join(literal(query) for query in queries)
        rows = self.engine.rows(
            f"SELECT CAST(query_id AS VARCHAR) FROM {self.name} WHERE {self.condition} "
            f"AND CAST(query_id AS VARCHAR) IN ({texts})"
        )
        return {str(query) for (query,) in rows}


@dataclass(frozen=True)
class ShownDocument:
    """A document in the result list of a query; `positions` has (position, impressions, clicks)."""

    doc_id: Any
    label: float
    low: float | None
    high: float | None
    impressions: int
    clicks: int
    mean_position: float
    rank_by_label: int
    positions: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class ShownQuery:
    """A query: its sums, how unsure its labels are, its gain, and its documents in the order shown."""

    query_id: Any
    impressions: int
    clicks: int
    documents: int
    unsure: float | None
    gain: float
    results: tuple[ShownDocument, ...]


@contextlib.contextmanager
def queries_at_hand(counts: Counts, labels: LabelTable, *, min_sessions: int) -> Iterator[QueryTable]:
    """Keep the numbers of all queries in a table of the engine."""
    engine = labels.engine
    table = engine.keep(_numbers_query(counts, labels))
    few = f"CASE WHEN impressions >= {min_sessions} * documents THEN 0 ELSE 1 END"
    ((queries, hidden, gain),) = engine.rows(
        f"SELECT count(*), sum({few}), CAST(sum(CAST(gain * lists AS DECIMAL(38, 12))) AS DOUBLE) / sum(lists) "
        f"FROM {table}"
    )
    try:
        yield QueryTable(engine, table, labels, counts, min_sessions, int(queries), int(hidden), float(gain))
    finally:
        engine.forget(table)


def read_queries(table: QueryTable, *, most_bytes: int = MOST_BYTES) -> list[ShownQuery]:
    """The queries that gain most, with their result lists: as many as take at most about `most_bytes` in a file."""
    engine = table.engine
    chosen = engine.keep(_chosen_query(table, most_bytes))
    listed = engine.keep(_results_query(table, chosen))
    try:
        queries = engine.rows(
            f"SELECT number, query_id, impressions, clicks, documents, unsure, gain FROM {chosen} ORDER BY number"
        )
        documents = engine.rows(
            "SELECT number, doc_id, relevance, low, high, impressions, clicks, mean_position, by_label, shown_at "
            f"FROM {listed} ORDER BY number, shown_at"
        )
        positions = engine.rows(_positions_query(table, listed))
    finally:
        engine.forget(listed)
        engine.forget(chosen)
    at: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for number, shown_at, position, n, c in positions:
        at.setdefault((int(number), int(shown_at)), []).append((int(position), int(n), int(c)))
    results: dict[int, list[ShownDocument]] = {}
    for number, doc, label, low, high, n, c, mean, by_label, shown_at in documents:
        evidence = tuple(at.get((int(number), int(shown_at)), ()))
        ends = (None if low is None else float(low), None if high is None else float(high))
        found = ShownDocument(doc, float(label), *ends, int(n), int(c), float(mean), int(by_label), evidence)
        results.setdefault(int(number), []).append(found)
    return [
        ShownQuery(query, int(n), int(c), int(d), unsure, float(gain), tuple(results[int(number)]))
        for number, query, n, c, d, unsure, gain in queries
    ]


def _discount(position: str) -> str:
    """SQL for 1 / log2(position + 1), with the numbers written out: engines' logarithms differ in the last digit."""
    whens = " ".join(f"WHEN {k} THEN CAST({1 / math.log2(k + 1)!r} AS DOUBLE)" for k in range(1, DEPTH + 1))
    return f"CASE {position} {whens} ELSE CAST(0 AS DOUBLE) END"


def _exact_sum(expression: str) -> str:
    """SQL for a sum of decimals: a sum of floats would depend on the order of rows."""
    return f"CAST(sum(CAST({expression} AS DECIMAL(38, 12))) AS DOUBLE)"


def _numbers_query(counts: Counts, labels: LabelTable) -> str:
    unsure = f"{_exact_sum('high - low')} / count(*)" if labels.intervals else "CAST(NULL AS DOUBLE)"
    longest = f"max(least(length(CAST(doc_id AS VARCHAR)), {LONGEST_ID}))"
    by_label = _exact_sum(f"relevance * {_discount('place')}")
    dcg = _exact_sum(f"cells.impressions * relevance * {_discount('position')}")
    gain = "by_label - coalesce(dcg, 0) / greatest(most_at_position, most_of_document)"
    return (
        f"WITH sums AS (SELECT query_id, count(*) AS documents, {SUMS}, max(impressions) AS most_of_document, "
        f"{longest} AS longest, {unsure} AS unsure FROM {labels.name} GROUP BY query_id), "
        "sorted AS (SELECT query_id, relevance, row_number() OVER (PARTITION BY query_id ORDER BY relevance DESC) "
        f"AS place FROM {labels.name}), "
        f"best AS (SELECT query_id, {by_label} AS by_label FROM sorted WHERE place <= {DEPTH} GROUP BY query_id), "
        "by_position AS (SELECT query_id, CAST(sum(impressions) AS BIGINT) AS impressions, count(*) AS cells "
        f"FROM {counts.table} GROUP BY query_id, position), "
        "widest AS (SELECT query_id, max(impressions) AS most_at_position, CAST(sum(cells) AS BIGINT) AS cells "
        "FROM by_position GROUP BY query_id), "
        f"as_shown AS (SELECT query_id, {dcg} AS dcg FROM (SELECT query_id, doc_id, position, impressions "
        f"FROM {counts.table} WHERE position <= {DEPTH}) AS cells "
        f"JOIN (SELECT query_id, doc_id, relevance FROM {labels.name}) AS labels "
        "USING (query_id, doc_id) GROUP BY query_id) "
        "SELECT query_id, documents, impressions, clicks, longest, cells, unsure, "
        "greatest(most_at_position, most_of_document) AS lists, "
        f"greatest(CAST(round(CAST({gain} AS DECIMAL(38, 12)), 6) AS DOUBLE), 0) AS gain "
        "FROM sums JOIN best USING (query_id) JOIN widest USING (query_id) LEFT JOIN as_shown USING (query_id)"
    )


def _chosen_query(table: QueryTable, most_bytes: int) -> str:
    """The queries that gain most, numbered, up to about `most_bytes`: letters beyond ASCII can take more."""
    documents = f"least(documents, {2 * DEPTH})"
    size = (
        f"{QUERY_BYTES} + least(length(CAST(query_id AS VARCHAR)), {LONGEST_ID}) "
        f"+ {documents} * ({DOCUMENT_BYTES} + longest) "
        f"+ {POSITION_BYTES} * least(cells, {MOST_POSITIONS} * {documents})"
    )
    order = "gain DESC, impressions DESC, query_id"
    return (
        f"SELECT * FROM (SELECT *, sum({size}) OVER (ORDER BY number) AS upto FROM "
        f"(SELECT *, row_number() OVER (ORDER BY {order}) AS number FROM (SELECT * FROM {table.name} "
        f"WHERE {table.condition} ORDER BY {order} LIMIT {MOST_QUERIES}) AS most) AS numbered) AS sized "
        f"WHERE upto <= {most_bytes}"
    )


def _results_query(table: QueryTable, chosen: str) -> str:
    """The documents of the chosen queries that were shown most near the top, or are among the first by label.

    By mean position alone, a document shown once at the top would come before one shown there a thousand times.
    """
    label = "round(CAST(relevance AS DECIMAL(38, 12)), 9)"
    ends = "low, high" if table.labels.intervals else "CAST(NULL AS DOUBLE) AS low, CAST(NULL AS DOUBLE) AS high"
    mean = f"{_exact_sum('CAST(position AS DOUBLE) * impressions')} / sum(impressions)"
    mean = f"CAST(round(CAST({mean} AS DECIMAL(38, 12)), 6) AS DOUBLE)"
    seen = _exact_sum(f"impressions * {_discount('position')}")
    return (
        f"WITH means AS (SELECT query_id, doc_id, {mean} AS mean_position, {seen} AS seen FROM {table.counts.table} "
        f"WHERE query_id IN (SELECT query_id FROM {chosen}) GROUP BY query_id, doc_id), "
        f"documents AS (SELECT query_id, doc_id, relevance, {ends}, impressions, clicks FROM {table.labels.name}), "
        "ranked AS (SELECT number, query_id, doc_id, relevance, low, high, documents.impressions, documents.clicks, "
        "mean_position, row_number() OVER (PARTITION BY query_id ORDER BY mean_position, doc_id) AS shown_at, "
        "row_number() OVER (PARTITION BY query_id ORDER BY seen DESC, mean_position, doc_id) AS by_seen, "
        f"row_number() OVER (PARTITION BY query_id ORDER BY {label} DESC, doc_id) AS by_label "
        f"FROM means JOIN documents USING (query_id, doc_id) JOIN (SELECT query_id, number FROM {chosen}) AS numbers "
        f"USING (query_id)) SELECT * FROM ranked WHERE by_seen <= {DEPTH} OR by_label <= {DEPTH}"
    )


def _positions_query(table: QueryTable, listed: str) -> str:
    """Where each of the listed documents was shown most."""
    return (
        f"WITH places AS (SELECT number, shown_at, position, CAST(sum(cells.impressions) AS BIGINT) AS impressions, "
        f"CAST(sum(cells.clicks) AS BIGINT) AS clicks FROM {table.counts.table} AS cells "
        f"JOIN (SELECT query_id, doc_id, number, shown_at FROM {listed}) AS listed USING (query_id, doc_id) "
        "GROUP BY number, shown_at, position), "
        "ranked AS (SELECT *, row_number() OVER (PARTITION BY number, shown_at ORDER BY impressions DESC, position) "
        "AS place FROM places) SELECT number, shown_at, position, impressions, clicks FROM ranked "
        f"WHERE place <= {MOST_POSITIONS} ORDER BY number, shown_at, position"
    )
