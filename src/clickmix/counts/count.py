"""Count a log in one scan of the engine; report or skip bad rows, join spellings of a query.   log -> counts

Contexts are fitted in Python. A session id given as a context would make a million of them, so the engine counts
contexts first. A query in several spellings becomes one query, under its most frequent spelling.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import duckdb

from clickmix.counts import BAD_ROWS, MOST_CONTEXTS
from clickmix.counts.counts import SUMS, Counts, record_of
from clickmix.counts.lists import list_counting_query
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import Engine, choose_engine, embedded
from clickmix.engines.sql import listed, literal, name
from clickmix.errors import InputError, SettingError, check_whole
from clickmix.log.bad_rows import find_refused
from clickmix.log.files import unreadable
from clickmix.log.json_lines import odd_ids_query
from clickmix.log.layout import (
    LAYOUTS,
    Layout,
    Lists,
    could_be_whole,
    counting_query,
    line_by_line,
    without_broken_lines,
)
from clickmix.log.open import OpenedLog, choose_layout, open_log
from clickmix.log.refused import Note, nothing_left, refusal
from clickmix.log.source import disagree
from clickmix.registry import check_known
from clickmix.types import Frame, LayoutName, Paths, Progress, Spelling

BadRows = Literal["fail", "skip"]
LARGEST_TOTAL = 2**63 - 1
CANONICAL_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"
GOOD_KEY = "query_id IS NOT NULL AND doc_id IS NOT NULL AND position >= 1"  # NULL is not 1 or more
MANY_CONTEXTS = 300
# Every blank in Unicode, because \\s differs between engines.
BLANKS = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
# What may be ignored, and how SQL does it.
IGNORED = {
    "case": "lower({})",
    "space": f"trim(regexp_replace({{}}, '[{BLANKS}]+', ' ', 'g'))",
    "unicode": "nfc_normalize({})",
}


def count(
    log: Paths | Frame,
    *,
    format: LayoutName | str | Layout = "auto",
    columns: Mapping[str, str] | None = None,
    context: str | Sequence[str] = (),
    max_contexts: int = MOST_CONTEXTS,
    bad_rows: BadRows = "fail",
    memory: str | None = None,
    lists: Lists = False,
    normalise: str | Sequence[Spelling] = (),
    engine: object = None,
    progress: Progress | None = None,
    **options: Any,
) -> Counts:
    """Count a click log: files, globs, folders, or a frame of pandas, polars, arrow, DuckDB or Spark.

    `format` names the layout, which has its own `options`; by default it is recognised. `lists` counts result lists
    separately, which needs session_id, or counts made that way; `lists="clicks"` also separates them by what was
    clicked, as click models need. `normalise` joins spellings of a query that differ only in case, space or unicode.
    `engine` runs the SQL: DuckDB by default, "spark", a SparkSession, or "postgresql://...", whose tables are logs.

    >>> from clickmix import count
    >>> count("clicks.parquet", context="device").totals()  # doctest: +SKIP
    (1200000, 84000)
    """
    check_known(options, count, LAYOUTS)
    if bad_rows not in BAD_ROWS:
        raise SettingError(f"bad_rows {bad_rows!r}: expected 'fail' or 'skip'.")
    check_whole("max_contexts", max_contexts, least=1)
    ignored = checked_normalise(normalise)
    layout = choose_layout(format, **options)
    chosen = choose_engine(engine, log=log, memory=memory)
    if lists:
        embedded(chosen, of="counting result lists separately")
    opened = open_log(log, engine=chosen, layout=layout, columns=columns, context=context, lists=lists)
    if chosen.embedded is not None:  # raises on copies and overlaps
        record_of([source for source in opened.sources if source.files], chosen.embedded)
    return count_opened(opened, chosen, bad_rows=bad_rows, most=max_contexts, progress=progress, normalise=ignored)


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
        # If rows were refused or decided on, read the log again to name them.
        found = find_refused(log.parts, engine) if seen.bad or broken else []
    except duckdb.Error as error:
        raise _unscannable(log, engine, error) from None
    refused = tuple(kind for kind in found if not kind.decided)
    if refused and not skip:
        raise refusal(refused)
    notes = (*log.notes, *(Note("row", kind.reason, kind.rows) for kind in found if kind.decided))
    if not seen.impressions:
        raise nothing_left(str(log), refused, notes)
    if seen.impressions > LARGEST_TOTAL:  # no later sum can overflow: clicks are never more
        raise InputError(
            f"{log}: the impressions add up to {seen.impressions}, more than "
            f"{LARGEST_TOTAL}. Check the impressions column, or use a part of the log."
        )
    cleaned = _cleaned(log, engine, table, seen)
    if normalise and engine.types(cleaned)["query_id"] == "VARCHAR":
        keys = ["doc_id", "position", *(["list"] if log.roles.lists else map(name, log.roles.context))]
        cleaned = engine.keep(joined_query(cleaned, normalise, keys))
    joined = tuple(normalise)
    parts = () if joined else log.parts
    if log.roles.lists:
        table = engine.keep(
            f"SELECT query_id, doc_id, position, {SUMS} FROM {cleaned} GROUP BY query_id, doc_id, position"
        )
        return Counts(engine, table, (), refused, notes, cleaned, log.sources, parts=parts, normalise=joined)
    contexts = count_contexts(engine, cleaned, {column: name(column) for column in log.roles.context}, most=most)
    return Counts(engine, cleaned, log.roles.context, refused, notes, None, log.sources, contexts, parts, joined)


def _counted(log: OpenedLog, engine: Engine, *, skip: bool, progress: Progress | None) -> tuple[OpenedLog, str, bool]:
    """Count all parts. Return the log as it was read, the counts, and whether lines were left out.

    Lines are read one by one if the fast reader stopped, or may have accepted something that is not an id.
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
    """Count all parts quickly; if a position is too wide for that, or rows were left out, count them again."""
    with contextlib.suppress(duckdb.ConversionException):
        table = engine.keep(_scan(log, quick=True), progress=progress)
        counted = f"SELECT coalesce(sum(impressions), 0) FROM {table}"
        if not _leaves_out(log) or engine.rows(counted) == engine.rows(_rows_query(log)):
            return table
        engine.forget(table)
    return engine.keep(_scan(log), progress=progress)


def _leaves_out(log: OpenedLog) -> bool:
    """Whether a quick scan leaves out bad rows: only where their number is known without reading them."""
    known = all(part.source.knows_rows and part.layout.row_is_impression for part in log.parts)
    return known and not log.roles.lists


def _rows_query(log: OpenedLog) -> str:
    """SQL for the number of rows, good and bad."""
    every = " UNION ALL ".join(f"SELECT count(*) AS n FROM {part.source.table()}" for part in log.parts)
    return f"SELECT sum(n) FROM ({every})"


def _unscannable(log: OpenedLog, engine: Engine, error: duckdb.Error) -> InputError:
    """Why a log could not be read: lines that cannot be split into columns, or the reader's message."""
    try:
        parts = tuple(map(without_broken_lines, log.parts))
        found = find_refused(parts, engine) if isinstance(error, duckdb.InvalidInputException) else []
    except duckdb.Error as again:
        return unreadable(str(log), again)
    refused = [kind for kind in found if not kind.decided]
    return refusal(refused) if refused else unreadable(str(log), error)


@dataclass(frozen=True)
class _Seen:
    """The counted table at a glance: all impressions, and whether there are empty or bad cells."""

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
    """The table as later stages need it: no bad or empty cells, plain integers. Most logs already are like that."""
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


def _scan(log: OpenedLog, *, quick: bool = False) -> str:
    """The query that counts all parts together; ids become text if the parts' types disagree."""
    good_only = quick and _leaves_out(log)
    text_ids = {
        role: disagree({part.source.types[part.column(role)] for part in log.parts}) for role in ("query_id", "doc_id")
    }
    if log.roles.lists:
        queries = [list_counting_query(part, text_ids=text_ids) for part in log.parts]
    else:
        queries = [counting_query(part, text_ids=text_ids, narrow=quick, good_only=good_only) for part in log.parts]
    more = ["list"] if log.roles.lists else [name(column) for column in log.roles.context]
    keys = listed(["query_id", "doc_id", "position", *more])
    sums = listed(f"sum({column}) AS {column}" for column in ("impressions", "clicks"))
    alone = len(queries) == 1 and not log.roles.lists  # a list with a repeated row comes out twice
    union = " UNION ALL ".join(f"({query})" for query in queries)
    united = queries[0] if alone else f"SELECT {keys}, {sums} FROM ({union}) GROUP BY {keys}"
    values = listed(["query_id", "doc_id", "CAST(position AS BIGINT) AS position", *more])
    return f"SELECT {values}, impressions, clicks FROM ({united})"


def _was_whole(log: OpenedLog, engine: Engine, table: str, role: str, stored: str) -> bool:
    """Whether ids from text formats become integers again: only if every one is written as a plain integer.

    As integers, 007 and +7 would be written back differently.
    """
    if stored != "VARCHAR" or not all(could_be_whole(part, role) for part in log.parts):
        return False
    query = f"SELECT 1 FROM {table} WHERE {GOOD_KEY} AND NOT regexp_matches({role}, '{CANONICAL_INTEGER}') LIMIT 1"
    return not engine.rows(query)


def count_contexts(engine: Engine, table: str, columns: Mapping[str, str], *, most: int | None) -> int:
    """How many contexts a table has; raises above `most`. `columns` are their names and their SQL."""
    if not columns:
        return 1
    ((found,),) = engine.rows(f"SELECT count(*) FROM (SELECT DISTINCT {listed(columns.values())} FROM {table})")
    if most is None or found <= most:
        return int(found)
    values = engine.rows(f"SELECT {listed(f'count(DISTINCT {column})' for column in columns.values())} FROM {table}")[0]
    each = ", ".join(f"{name} has {number:,} values" for name, number in zip(columns, values, strict=True))
    several = f"{','.join(columns)} has {found:,} combinations, more than {most:,}; {each}"
    raise InputError(
        f"context: {several if len(columns) > 1 else f'{each}, more than {most:,}'}. A context is something like "
        f"device: each of its values is fitted separately. Leave it out, or allow this many with --max-contexts "
        f"{found} (in Python max_contexts={found})."
    )


def many_contexts(context: str, number: int) -> str:
    """A warning about hundreds of contexts; empty if there are fewer."""
    if number < MANY_CONTEXTS:
        return ""
    what = "combinations" if "," in context else "values"
    return (
        f"{context} has {number:,} {what}; a context is something like device. Few documents are left for each, so "
        "small contexts that are clicked alike are fitted together."
    )


def checked_normalise(normalise: str | Sequence[str]) -> tuple[str, ...]:
    """What to ignore in queries, in the order of applying it; `case,space` can be given as one text."""
    given = [word.strip() for word in normalise.split(",")] if isinstance(normalise, str) else list(normalise)
    for word in filter(None, given):
        if word not in IGNORED:
            raise SettingError(f"normalise {word!r}: expected {', '.join(IGNORED)}, or several of them.")
    return tuple(word for word in ("unicode", "case", "space") if word in given)


def joined_query(table: str, normalise: Sequence[str], keys: Sequence[str]) -> str:
    """SQL for a table of counts that joins spellings of a query if they differ only in what is ignored."""
    by_query = f"SELECT query_id, sum(impressions) AS shown FROM {table} GROUP BY query_id"
    spellings = (
        f"SELECT query_id, first_value(query_id) OVER (PARTITION BY {_form(normalise)} ORDER BY shown DESC, query_id) "
        f"AS spelling FROM ({by_query})"
    )
    rest = listed(keys)
    return (
        f"SELECT spelling AS query_id, {rest}, {SUMS} FROM {table} JOIN ({spellings}) USING (query_id) "
        f"GROUP BY spelling, {rest}"
    )


def spelled_alike(engine: Engine, table: str) -> str:
    """A sentence on how many queries would remain if all differences were ignored; empty if all would remain."""
    if engine.types(table)["query_id"] != "VARCHAR":
        return ""
    ((queries, forms),) = engine.rows(
        f"SELECT count(*), count(DISTINCT form) FROM (SELECT {_form(checked_normalise(tuple(IGNORED)))} AS form "
        f"FROM (SELECT DISTINCT query_id FROM {table}))"
    )
    if queries == forms:
        return ""
    return (
        f"{queries:,} queries become {forms:,} if case, blanks and Unicode forms are ignored "
        f"(--normalise {','.join(IGNORED)})."
    )


def spelling_of(query_id: object, table: str, engine: Engine, normalise: Sequence[str]) -> str:
    """How a table spells a query, if it differs only in what is ignored; as asked if there is no such query."""
    asked, found = literal(str(query_id)), "CAST(query_id AS VARCHAR)"
    if not normalise:
        return str(query_id)
    rows = engine.rows(
        f"SELECT found FROM (SELECT DISTINCT {found} AS found FROM {table} "
        f"WHERE {_form(normalise, found)} = {_form(normalise, asked)}) AS alike "
        f"ORDER BY CASE WHEN found = {asked} THEN 0 ELSE 1 END, found LIMIT 1"
    )
    return str(rows[0][0]) if rows else str(query_id)


def _form(normalise: Sequence[str], form: str = "query_id") -> str:
    """SQL for a query without the ignored differences."""
    for word in normalise:
        form = IGNORED[word].format(form)
    return form
