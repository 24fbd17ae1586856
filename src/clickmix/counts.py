"""Counts: how often each document of each query was shown, and clicked, at each position.   log -> counts -> groups

The cells (query, document, position, context) live in the engine's table and never need to fit in memory; what later
stages take from them is small: a histogram of (impressions, clicks), or the documents of a sample of queries.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np

from clickmix.engines.duckdb import Columns, DuckDB, Progress
from clickmix.errors import InputError, SettingError
from clickmix.lists import list_counting_query
from clickmix.log import Log, open_log
from clickmix.refused import Refused, any_rejected_line, find_refused
from clickmix.rows import counting_query
from clickmix.sources import Source, kind_of, unreadable
from clickmix.sql import listed, name

BadRows = Literal["fail", "skip"]
LARGEST_TOTAL = 2**63 - 1
CANONICAL_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"
_table_numbers = itertools.count(1)


@dataclass(frozen=True)
class Counts:
    """Impressions and clicks per query, document, position and context, exact, in a table of the engine.

    If result lists were kept apart, `by_list` is a second table: the same per query, list, document and position.
    """

    engine: DuckDB = field(repr=False)
    table: str
    context: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    by_list: str | None = None

    @classmethod
    def from_arrays(
        cls,
        query_id: Sequence[Any] | np.ndarray[Any, Any],
        doc_id: Sequence[Any] | np.ndarray[Any, Any],
        position: Sequence[int] | np.ndarray[Any, Any],
        impressions: Sequence[int] | np.ndarray[Any, Any],
        clicks: Sequence[int] | np.ndarray[Any, Any],
        **context: Sequence[Any] | np.ndarray[Any, Any],
    ) -> Counts:
        """Counts from columns at hand; context columns by name."""
        engine = DuckDB()
        given = (query_id, doc_id, position, impressions, clicks)
        named = zip(("query_id", "doc_id", "position", "impressions", "clicks"), given, strict=True)
        engine.register("given", {key: np.asarray(value) for key, value in (*named, *context.items())})
        source = Source("frame", (), engine.types("given"), frame="given")
        return _scanned(Log((source,), {}, tuple(context)), engine, bad_rows="fail", progress=None)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that name a cell's place: position, then the context columns."""
        return ("position", *self.context)

    def cells(self) -> Columns:
        """All cells as numpy columns, in order. For logs that fit in memory."""
        return self.engine.fetch(self.query())

    def query(self) -> str:
        """The SQL query for all cells, in order."""
        columns = ["query_id", "doc_id", *map(name, self.keys)]
        return f"SELECT {listed(columns)}, impressions, clicks FROM {self.table} ORDER BY {listed(columns)}"

    def list_query(self) -> str:
        """The SQL query for all cells of all result lists, in order."""
        keys = "query_id, list, position, doc_id"
        return f"SELECT {keys}, impressions, clicks FROM {self.by_list} ORDER BY {keys}"

    def totals(self) -> tuple[int, int]:
        """Impressions and clicks of the whole log."""
        ((impressions, clicks),) = self.engine.rows(
            f"SELECT CAST(sum(impressions) AS BIGINT), CAST(sum(clicks) AS BIGINT) FROM {self.table}"
        )
        return impressions, clicks

    def write(self, path: str | Path) -> int:
        """Write a counts file, which is itself a log, list by list if lists are kept; says how many cells it has."""
        return self.engine.write(self.query() if self.by_list is None else self.list_query(), path)


def count(
    log: object,
    *,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
    bad_rows: BadRows = "fail",
    memory: str | None = None,
    lists: bool = False,
    progress: Progress | None = None,
) -> Counts:
    """Count a click log: files, globs, folders, or a frame of pandas, polars, arrow or DuckDB.

    With `lists`, result lists are kept apart; that needs session_id, or counts that were made so.
    """
    if bad_rows not in ("fail", "skip"):
        raise SettingError(f"bad_rows {bad_rows!r}: expected 'fail' or 'skip'.")
    engine = DuckDB(memory=memory)
    opened = open_log(log, engine=engine, columns=columns, context=context, lists=lists)
    return _scanned(opened, engine, bad_rows=bad_rows, progress=progress)


def _scanned(log: Log, engine: DuckDB, *, bad_rows: BadRows, progress: Progress | None) -> Counts:
    counts = Counts(engine, f"cells_{next(_table_numbers)}", log.context)
    skip = bad_rows == "skip"
    try:
        engine.run(f"CREATE TEMP TABLE {counts.table} AS {_scan(log, skip=skip)}", progress=progress)
        refused = _refuse(counts, log, skip=skip)
    except duckdb.Error as error:
        raise _unscannable(log, engine, error) from None
    engine.run(f"DELETE FROM {counts.table} WHERE impressions = 0")
    if not engine.rows(f"SELECT 1 FROM {counts.table} LIMIT 1"):
        every = f" All {sum(r.rows for r in refused):,} rows were refused: {refused[0].reason}." if refused else ""
        raise InputError(
            f"{', '.join(map(str, log.sources))}: the log is empty.{every} Expected one row per impression."
        )
    _check_total(counts, log)
    _restore_integers(counts, log)
    return _apart(counts, refused) if log.lists else Counts(engine, counts.table, log.context, refused)


def _apart(lists: Counts, refused: tuple[Refused, ...]) -> Counts:
    """Counts with a table by list: what every correction needs is added up from it."""
    table, sums = f"cells_{next(_table_numbers)}", "sum(impressions) AS BIGINT) AS impressions, CAST(sum(clicks)"
    lists.engine.run(
        f"CREATE TEMP TABLE {table} AS SELECT query_id, doc_id, position, CAST({sums} AS BIGINT) AS clicks "
        f"FROM {lists.table} GROUP BY query_id, doc_id, position"
    )
    return Counts(lists.engine, table, (), refused, lists.table)


def _unscannable(log: Log, engine: DuckDB, error: duckdb.Error) -> InputError:
    """Why a log could not be read: lines that cannot be cut into columns, or what the reader said."""
    try:
        refused = find_refused(log, engine) if isinstance(error, duckdb.InvalidInputException) else []
    except duckdb.Error as again:
        return unreadable(", ".join(map(str, log.sources)), again)
    return _refusal(refused) if refused else unreadable(", ".join(map(str, log.sources)), error)


def _check_total(counts: Counts, log: Log) -> None:
    """No sum of a later stage can overflow: clicks are never more than impressions, and these add up to an int64."""
    ((impressions,),) = counts.engine.rows(f"SELECT sum(impressions) FROM {counts.table}")
    if impressions > LARGEST_TOTAL:
        raise InputError(
            f"{', '.join(map(str, log.sources))}: the impressions add up to {int(impressions)}, more than "
            f"{LARGEST_TOTAL}. Check the impressions column, or take a part of the log."
        )
    types = counts.engine.types(counts.table)
    for column in ("impressions", "clicks"):
        if types[column] != "BIGINT":  # sums are wider
            counts.engine.run(f"ALTER TABLE {counts.table} ALTER {column} TYPE BIGINT")


def _scan(log: Log, *, skip: bool) -> str:
    """The query that counts all sources together; ids become text where sources disagree."""
    text_ids = {
        role: len({kind_of(source.types[log.column(role)]) for source in log.sources}) > 1
        for role in ("query_id", "doc_id")
    }
    query = list_counting_query if log.lists else counting_query
    queries = [query(source, log, skip=skip, text_ids=text_ids) for source in log.sources]
    more = ["list"] if log.lists else [name(column) for column in log.context]
    keys = listed(["query_id", "doc_id", "position", *more])
    sums = listed(f"sum({column}) AS {column}" for column in ("impressions", "clicks", "refused"))
    alone = len(queries) == 1 and not log.lists  # one list can come out in two parts: a row of it stood there twice
    united = queries[0] if alone else f"SELECT {keys}, {sums} FROM ({_union(queries)}) GROUP BY {keys}"
    values = listed(["query_id", "doc_id", "CAST(position AS BIGINT) AS position", *more])
    return f"SELECT {values}, impressions, clicks, refused FROM ({united})"


def _union(queries: Sequence[str]) -> str:
    return " UNION ALL ".join(f"({query})" for query in queries)


def _refuse(counts: Counts, log: Log, *, skip: bool) -> tuple[Refused, ...]:
    """Look for refused rows in the counted table; only when there are some, read the log again to name them."""
    bad_key = "query_id IS NULL OR doc_id IS NULL OR position IS NULL OR position < 1"
    bad_key += " OR list IS NULL" if log.lists else ""
    any_bad = counts.engine.rows(f"SELECT 1 FROM {counts.table} WHERE refused > 0 OR {bad_key} LIMIT 1")
    any_cut = skip and any_rejected_line(counts.engine)
    if not any_bad and not any_cut:
        return ()
    refused = find_refused(log, counts.engine)
    if not skip:
        raise _refusal(refused)
    counts.engine.run(f"DELETE FROM {counts.table} WHERE {bad_key}")
    return tuple(refused)


def _refusal(refused: Sequence[Refused]) -> InputError:
    first, rows = refused[0], sum(r.rows for r in refused)
    others = f" {rows:,} rows are bad in all." if rows > 1 else ""
    from_zero = first.reason.startswith("position") and first.examples[0].text == "0"
    hint = " If positions count from 0, add 1 to all of them." if from_zero else ""
    return InputError(
        f"{first.examples[0]}: {first.reason}.{others}{hint} Mend the log, or leave bad rows out with --bad-rows skip "
        "(in Python bad_rows='skip')."
    )


def _restore_integers(counts: Counts, log: Log) -> None:
    """Ids from text formats become integers again when every one of them is written as a plain integer.

    Only then does nothing get lost: 007 or +7 would not come back as they were.
    """
    for role in ("query_id", "doc_id"):
        types = [source.types[log.column(role)] for source in log.sources]
        could_be = all(
            kind_of(type) == "integer" or source.format == "csv"
            for source, type in zip(log.sources, types, strict=True)
        )
        stored = counts.engine.types(counts.table)[role]
        if could_be and stored == "VARCHAR" and _all_match(counts, role):
            counts.engine.run(f"ALTER TABLE {counts.table} ALTER {role} TYPE BIGINT")


def _all_match(counts: Counts, column: str) -> bool:
    query = f"SELECT 1 FROM {counts.table} WHERE NOT regexp_matches({column}, '{CANONICAL_INTEGER}') LIMIT 1"
    return not counts.engine.rows(query)
