"""Counts: how often each document of each query was shown, and clicked, at each position.   log -> counts -> groups

The cells (query, document, position, context) live in a table of the engine and need not fit in memory. Later stages
take little from them: a histogram of (impressions, clicks), or the documents of a sample of queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb

from clickmix.counts.contexts import MOST_CONTEXTS, checked_bound, count_contexts
from clickmix.counts.counted_files import record_of, record_text
from clickmix.counts.lists import list_counting_query
from clickmix.counts.spelling import checked_normalise, joined_query
from clickmix.engines.choose import choose_engine, embedded
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import Engine
from clickmix.engines.sql import aliased, listed, name
from clickmix.errors import InputError, SettingError
from clickmix.log.bad_rows import find_refused
from clickmix.log.columns import checked_context
from clickmix.log.json_lines import odd_ids_query
from clickmix.log.layout import Layout, Lists, Part, Roles
from clickmix.log.layouts.counted import Counted
from clickmix.log.open import OpenedLog, choose_layout, open_log
from clickmix.log.refused import Note, Refused, refusal
from clickmix.log.scan import could_be_whole, counting_query, line_by_line, without_broken_lines
from clickmix.log.source import Frame, Source, disagree
from clickmix.log.sources import unreadable
from clickmix.types import Columns, Progress

if TYPE_CHECKING:
    import numpy as np

BadRows = Literal["fail", "skip"]
LARGEST_TOTAL = 2**63 - 1
CANONICAL_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"
GOOD_KEY = "query_id IS NOT NULL AND doc_id IS NOT NULL AND position >= 1"  # NULL is not 1 or more


@dataclass(frozen=True)
class Counts:
    """Impressions and clicks per query, document, position and context, exact, in a table of the engine.

    If result lists were kept apart, `by_list` is a second table with the same per query, list, document and position.
    `contexts` counts the combinations of the context columns. `refused` are the bad rows, `notes` what else was odd.
    `parts` are the tables that were counted, if what they call a query is called so here.

    >>> counts = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 2], [100, 100], [60, 20])
    >>> counts.totals()
    (200, 80)
    """

    engine: Engine = field(repr=False)
    table: str
    context: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    notes: tuple[Note, ...] = ()
    by_list: str | None = None
    sources: tuple[Source, ...] = field(default=(), repr=False)
    contexts: int = 1
    parts: tuple[Part, ...] = field(default=(), repr=False)

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
        """Build counts from columns; context columns by name."""
        import numpy as np  # late: reading a log does not need it

        checked_context(tuple(context))
        engine = DuckDB()
        given = (query_id, doc_id, position, impressions, clicks)
        named = zip(("query_id", "doc_id", "position", "impressions", "clicks"), given, strict=True)
        engine.register("given", {key: np.asarray(value) for key, value in (*named, *context.items())})
        source, roles = Frame(engine.types("given"), registered="given"), Roles(context=tuple(context))
        log = OpenedLog((source,), (Part(source, Counted(), roles),), roles)
        return count_opened(log, engine)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that make a place: position, then the context columns."""
        return ("position", *self.context)

    @cached_property
    def histogram(self) -> str:
        """A small table: how many `documents` had how many impressions and clicks at each place (k0, k1, ...)."""
        ordinals = listed(str(i + 1) for i in range(len(self.keys) + 2))
        columns = f"{aliased(self.keys)}, impressions, clicks, count(*) AS documents"
        return self.engine.keep(f"SELECT {columns} FROM {self.table} GROUP BY {ordinals}")

    def cells(self) -> Columns:
        """All cells as numpy columns, in order; they must fit in memory."""
        return self.engine.fetch(self.query())

    def query(self) -> str:
        """The SQL query for all cells, in order."""
        columns = ["query_id", "doc_id", *map(name, self.keys)]
        return f"SELECT {listed(columns)}, impressions, clicks FROM {self.table} ORDER BY {listed(columns)}"

    def one_cell_each(self) -> bool:
        """Whether every document was seen at one place only."""
        several = f"SELECT 1 FROM {self.table} GROUP BY query_id, doc_id HAVING count(*) > 1"
        return not self.engine.rows(f"SELECT 1 FROM ({several}) LIMIT 1")

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
        """Write a counts file, which is itself a log, list by list if lists are kept; returns the number of cells.

        A Parquet file carries the record of the files that were counted, so that none is counted twice.
        """
        files = [source for source in self.sources if source.files]
        note = record_text(record_of(files, self.engine.embedded)) if files and self.engine.embedded else ""
        query = self.query() if self.by_list is None else self.list_query()
        return self.engine.write(query, str(path), note=note)


def count(
    log: object,
    *,
    format: str | Layout = "auto",
    columns: Mapping[str, str] | None = None,
    context: str | Sequence[str] = (),
    max_contexts: int = MOST_CONTEXTS,
    bad_rows: BadRows = "fail",
    memory: str | None = None,
    lists: Lists = False,
    normalise: str | Sequence[str] = (),
    engine: object = None,
    progress: Progress | None = None,
    **options: Any,
) -> Counts:
    """Count a click log: files, globs, folders, or a frame of pandas, polars, arrow, DuckDB or Spark.

    `format` names the layout, which has `options` of its own; it is recognised by default. With `lists`, result lists
    are kept apart, which needs session_id, or counts made that way; with `lists="clicks"` also by what was clicked in
    them, as click models need. `normalise` joins spellings of a query that differ
    only in case, space or unicode. `engine` says who counts: DuckDB by default, "spark", a SparkSession, or
    "postgresql://...", whose tables are logs.

    >>> from clickmix import count
    >>> count("clicks.parquet", context="device").totals()  # doctest: +SKIP
    (1200000, 84000)
    """
    if bad_rows not in ("fail", "skip"):
        raise SettingError(f"bad_rows {bad_rows!r}: expected 'fail' or 'skip'.")
    most, ignored = checked_bound(max_contexts), checked_normalise(normalise)
    layout = choose_layout(format, **options)
    chosen = choose_engine(engine, log=log, memory=memory)
    if lists:
        embedded(chosen, of="keeping result lists apart")
    opened = open_log(log, engine=chosen, layout=layout, columns=columns, context=context, lists=lists)
    if chosen.embedded is not None:  # raises on copies and overlaps
        record_of([source for source in opened.sources if source.files], chosen.embedded)
    return count_opened(opened, chosen, bad_rows=bad_rows, most=most, progress=progress, normalise=ignored)


def count_opened(
    log: OpenedLog,
    engine: Engine,
    *,
    bad_rows: BadRows = "fail",
    most: int | None = None,
    progress: Progress | None = None,
    normalise: Sequence[str] = (),
) -> Counts:
    """Count a log that is open; `most` is how many contexts it may have."""
    skip = bad_rows == "skip"
    try:
        log, table, broken = _counted(log, engine, skip=skip, progress=progress)
        seen = _look(log, engine, table)
        # If rows were refused or decided on, the log is read again to name them.
        found = find_refused(log.parts, engine) if seen.bad or broken else []
    except duckdb.Error as error:
        raise _unscannable(log, engine, error) from None
    refused = tuple(kind for kind in found if not kind.decided)
    if refused and not skip:
        raise refusal(refused)
    notes = (*log.notes, *(Note(kind.reason, kind.rows) for kind in found if kind.decided))
    if not seen.impressions:
        every = f" All {sum(r.rows for r in refused):,} rows were refused: {refused[0].reason}." if refused else ""
        raise InputError(f"{log}: the log is empty.{every} Expected one row per impression.")
    if seen.impressions > LARGEST_TOTAL:  # no later sum can overflow: clicks are never more
        raise InputError(
            f"{log}: the impressions add up to {seen.impressions}, more than "
            f"{LARGEST_TOTAL}. Check the impressions column, or take a part of the log."
        )
    cleaned = _cleaned(log, engine, table, seen)
    if normalise and engine.types(cleaned)["query_id"] == "VARCHAR":
        keys = ["doc_id", "position", *(["list"] if log.roles.lists else map(name, log.roles.context))]
        cleaned = engine.keep(joined_query(cleaned, normalise, keys))
    parts = () if normalise else log.parts
    if log.roles.lists:
        table = _added_up(engine, cleaned)
        return Counts(engine, table, (), refused, notes, cleaned, log.sources, parts=parts)
    contexts = count_contexts(engine, cleaned, {column: name(column) for column in log.roles.context}, most=most)
    return Counts(engine, cleaned, log.roles.context, refused, notes, None, log.sources, contexts, parts)


def _counted(log: OpenedLog, engine: Engine, *, skip: bool, progress: Progress | None) -> tuple[OpenedLog, str, bool]:
    """Count all parts: the log as it was read, the counts, and whether lines were left out.

    Lines are read one by one if the fast reader stopped, or may have taken something else for an id.
    """
    if engine.embedded is None:
        return log, engine.keep(_scan(log), progress=progress), False
    lenient = any((part.judged or part).source.lenient for part in log.parts)
    broken = False
    try:
        table = _kept(log, engine.embedded, progress=progress)
        if not lenient or not engine.rows(odd_ids_query(table)):
            return log, table, False
        engine.forget(table)
    except duckdb.InvalidInputException:
        if not skip:
            raise
        broken, log = True, replace(log, parts=tuple(map(without_broken_lines, log.parts)))
    if not lenient:
        return log, _kept(log, engine.embedded, progress=progress), broken
    slow = tuple(line_by_line(part, engine.embedded, f"lines_{i}") for i, part in enumerate(log.parts))
    return log, engine.keep(_scan(replace(log, parts=slow)), progress=progress), broken


def _kept(log: OpenedLog, engine: DuckDB, *, progress: Progress | None) -> str:
    """Count all parts the fast way, with positions of 16 bits, or with wider ones if one does not fit."""
    try:
        return engine.keep(_scan(log, narrow=True), progress=progress)
    except duckdb.ConversionException:
        return engine.keep(_scan(log), progress=progress)


def _added_up(engine: Engine, by_list: str) -> str:
    """The counts of a table by list, summed over lists."""
    return engine.keep(
        "SELECT query_id, doc_id, position, CAST(sum(impressions) AS BIGINT) AS impressions, "
        f"CAST(sum(clicks) AS BIGINT) AS clicks FROM {by_list} GROUP BY query_id, doc_id, position"
    )


def _unscannable(log: OpenedLog, engine: Engine, error: duckdb.Error) -> InputError:
    """Why a log could not be read: lines that cannot be split into columns, or the reader's own words."""
    try:
        parts = tuple(map(without_broken_lines, log.parts))
        found = find_refused(parts, engine) if isinstance(error, duckdb.InvalidInputException) else []
    except duckdb.Error as again:
        return unreadable(str(log), again)
    refused = [kind for kind in found if not kind.decided]
    return refusal(refused) if refused else unreadable(str(log), error)


@dataclass(frozen=True)
class _Seen:
    """What one look at the counted table shows: impressions in all, and whether there are empty or bad cells."""

    impressions: int
    empty: bool
    bad: bool


def _look(log: OpenedLog, engine: Engine, table: str) -> _Seen:
    ((impressions, fewest, bad),) = engine.rows(
        f"SELECT sum(CASE WHEN {_good_key(log)} THEN impressions END), min(impressions), "
        f"max(CASE WHEN {_good_key(log)} THEN 0 ELSE 1 END) FROM {table}"
    )
    return _Seen(int(impressions or 0), fewest == 0, bad == 1)


def _good_key(log: OpenedLog) -> str:
    return f"{GOOD_KEY} AND list IS NOT NULL" if log.roles.lists else GOOD_KEY


def _cleaned(log: OpenedLog, engine: Engine, table: str, seen: _Seen) -> str:
    """The table as later stages want it: no bad or empty cells, plain integers. Most logs already are."""
    types = engine.types(table)
    whole = [role for role in ("query_id", "doc_id") if _was_whole(log, engine, table, role, types[role])]
    whole += [column for column in ("impressions", "clicks") if types[column] != "BIGINT"]  # sums are wider
    if not (whole or seen.empty or seen.bad):
        return table
    more = ["list"] if log.roles.lists else map(name, log.roles.context)
    columns = ["query_id", "doc_id", "position", *more, "impressions", "clicks"]
    selected = (f"CAST({column} AS BIGINT) AS {column}" if column in whole else column for column in columns)
    cleaned = engine.keep(f"SELECT {listed(selected)} FROM {table} WHERE {_good_key(log)} AND impressions > 0")
    engine.forget(table)
    return cleaned


def _scan(log: OpenedLog, *, narrow: bool = False) -> str:
    """The query that counts all parts together; ids become text where parts disagree."""
    text_ids = {
        role: disagree({part.source.types[part.column(role)] for part in log.parts}) for role in ("query_id", "doc_id")
    }
    if log.roles.lists:
        queries = [list_counting_query(part, text_ids=text_ids) for part in log.parts]
    else:
        queries = [counting_query(part, text_ids=text_ids, narrow=narrow) for part in log.parts]
    more = ["list"] if log.roles.lists else [name(column) for column in log.roles.context]
    keys = listed(["query_id", "doc_id", "position", *more])
    sums = listed(f"sum({column}) AS {column}" for column in ("impressions", "clicks"))
    alone = len(queries) == 1 and not log.roles.lists  # one list can come out twice, if a row of it is repeated
    union = " UNION ALL ".join(f"({query})" for query in queries)
    united = queries[0] if alone else f"SELECT {keys}, {sums} FROM ({union}) GROUP BY {keys}"
    values = listed(["query_id", "doc_id", "CAST(position AS BIGINT) AS position", *more])
    return f"SELECT {values}, impressions, clicks FROM ({united})"


def _was_whole(log: OpenedLog, engine: Engine, table: str, role: str, stored: str) -> bool:
    """Whether ids from text formats become integers again: if every one is written as a plain integer.

    Otherwise something would be lost: 007 and +7 would not come back as they were.
    """
    if stored != "VARCHAR" or not all(could_be_whole(part, role) for part in log.parts):
        return False
    query = f"SELECT 1 FROM {table} WHERE {GOOD_KEY} AND NOT regexp_matches({role}, '{CANONICAL_INTEGER}') LIMIT 1"
    return not engine.rows(query)
