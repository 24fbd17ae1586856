"""A row of a log as SQL: its values, NULL where they are not what they should be, counted in one scan.

log -> counts. Types are judged once per source, so that a clean Parquet log costs no more than its bare GROUP BY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import listed, literal, name
from clickmix.log.open import ROLES, Log, is_counted
from clickmix.log.sources import Source, is_wide, kind_of

# Ids that a reader of NDJSON may have made from what is no id: from an object, a list, a truth value or a real number.
ODD_ID = r"^(\{.*\}|\[.*\]|true|false|-?[0-9]+[.eE][-+.eE0-9]*)$"


def counting_query(
    source: Source,
    log: Log,
    *,
    skip: bool,
    text_ids: dict[str, bool],
    narrow: bool = False,
    lists: Mapping[str, str] | None = None,
    table: str | None = None,
) -> str:
    """One scan: impressions and clicks per (query, document, position, context).

    `lists` are further keys with their SQL, from a `table` made of the source's if one is given. A row that cannot be
    counted has no position, so that bad rows come out as cells of their own: to see them costs no aggregate more.
    With `narrow`, positions of Parquet are grouped in 16 bits, which is faster; the scan fails where one is larger.
    """
    lists = lists or {}
    query, document, position = key_values(source, log, text_ids)
    names = ["query_id", "doc_id", "position", *(name(column) for column in log.context), *lists]
    table = table or source.table(skip=skip)
    if is_counted(source, log):
        n, c = (whole(source, log.column(role)) for role in ("impressions", "clicks"))
        good, values = f"{n} >= 0 AND {c} >= 0 AND {c} <= {n}", f", {n} AS n, {c} AS c"
        counted = "sum(n) AS impressions, sum(c) AS clicks"
    else:
        clicked, good = flags(source, log)
        values, counted = f", {clicked} AS c", f"count(*) AS impressions, {_times('c', source)} AS clicks"
    if narrow and source.format == "parquet" and _kind(source, log.column("position")) == "integer":
        position = f"CAST({position} AS SMALLINT)"
    position = f"CASE WHEN {good}{_unbroken(source)} THEN {position} END"
    keys = [query, document, position, *(_context(column) for column in log.context), *lists.values()]
    # Inside, the keys have names of ours: a context column may be called n or c.
    selected = listed(f"{value} AS k{i}" for i, value in enumerate(keys))
    renamed = listed(f"k{i} AS {alias}" for i, alias in enumerate(names))
    ordinals = listed(str(i + 1) for i in range(len(keys)))
    return f"SELECT {renamed}, {counted} FROM (SELECT {selected}{values} FROM {table}) GROUP BY {ordinals}"


def _times(condition: str, source: Source) -> str:
    """How often a condition holds. DuckDB touches only those rows with FILTER, which other engines may not know."""
    if source.format == "table":
        return f"count(CASE WHEN {condition} THEN 1 END)"
    return f"count(*) FILTER (WHERE {condition})"


def key_values(source: Source, log: Log, text_ids: Mapping[str, bool] | None = None) -> tuple[str, str, str]:
    """A row's query, document and position."""
    as_text = text_ids or {"query_id": False, "doc_id": False}
    query, document = (_id(source, log, role, as_text=as_text[role]) for role in ("query_id", "doc_id"))
    return query, document, whole(source, log.column("position"))


def whole(source: Source, column: str) -> str:
    """A column as whole numbers, NULL where it holds none.

    In text, 3 and 3.0 are whole numbers (frames write them so when a value is missing); +3, 1e3 and ' 3' are not.
    """
    value, kind = name(column), _kind(source, column)
    if kind == "integer":
        return f"TRY_CAST({value} AS BIGINT)" if is_wide(source.types[column]) else value
    if kind == "real":
        return (
            f"CASE WHEN {value} = floor({value}) AND abs({value}) < 9007199254740992 THEN CAST({value} AS BIGINT) END"
        )
    digits = f"regexp_matches({value}, '^[0-9]+([.]0+)?$')"
    return f"CASE WHEN {digits} THEN TRY_CAST(split_part({value}, '.', 1) AS BIGINT) END"


def flags(source: Source, log: Log) -> tuple[str, str]:
    """SQL that is true for a click, and SQL that is true for a row that says whether there was one; else false or NULL.

    Whole numbers are asked for a range, which a scan answers faster than two values.
    """
    value, kind = name(log.column("clicked")), _kind(source, log.column("clicked"))
    if kind == "boolean":
        return value, f"{value} IS NOT NULL"
    if kind == "integer":
        return f"{value} = 1", f"{value} BETWEEN 0 AND 1"
    if kind == "real":
        return f"{value} = 1", f"{value} IN (0, 1)"
    if kind == "other":  # a statement for a warehouse, whose column may hold numbers or truth values
        return f"CAST({value} AS INTEGER) = 1", f"CAST({value} AS INTEGER) BETWEEN 0 AND 1"
    yes, no = "'1', 'true', '1.0'", "'0', 'false', '0.0'"
    return f"lower({value}) IN ({yes})", f"lower({value}) IN ({yes}, {no})"


def _kind(source: Source, column: str) -> str:
    """What a column holds as it is read: text formats hold text whatever was guessed from their first rows."""
    return "text" if source.format in ("csv", "ndjson") else kind_of(source.types[column])


def _id(source: Source, log: Log, role: str, *, as_text: bool) -> str:
    column = log.column(role)
    type = source.types[column]
    numpy_has_it = type == "UBIGINT" or not is_wide(type)
    # Another engine's texts are cast, so that its order of them is ours.
    plain = (_kind(source, column) == "integer" and numpy_has_it) or (type == "VARCHAR" and source.format != "table")
    return name(column) if plain and not as_text else f"CAST({name(column)} AS VARCHAR)"


def _unbroken(source: Source) -> str:
    """Further condition for a row to count: its line could be cut into columns."""
    return f" AND {name(source.of.broken)} IS NULL" if source.of and source.of.broken else ""


def _context(column: str) -> str:
    """A context value as text; a missing one is a value of its own, the same as an empty text."""
    return f"coalesce(CAST({name(column)} AS VARCHAR), '')"


def odd_ids_query(table: str) -> str:
    """SQL for a cell whose ids may be none, if they came from NDJSON: only who reads its lines again can tell."""
    odd = (f"regexp_matches(CAST({role} AS VARCHAR), '{ODD_ID}', 's')" for role in ("query_id", "doc_id"))
    return f"SELECT 1 FROM {table} WHERE {' OR '.join(odd)} LIMIT 1"


def line_by_line(log: Log, engine: DuckDB) -> Log:
    """The same log with its NDJSON files read line by line, which takes twice as long but sees all bad rows.

    The fast reader stops at some of them, and takes whatever it finds for an id.
    """
    sources = []
    for i, source in enumerate(log.sources):
        if source.format == "ndjson":
            position = name(log.column("position"))
            bad = '"no object" OR "key twice" OR "query_id is none" OR "doc_id is none"'
            good = f"SELECT * REPLACE (CASE WHEN {bad} THEN NULL ELSE {position} END AS {position})"
            engine.run(f"CREATE OR REPLACE TEMP VIEW lines_{i} AS {good} FROM {json_lines(source, log)}")
            source = Source("frame", (), engine.types(f"lines_{i}"), frame=f"lines_{i}")
        sources.append(source)
    return replace(log, sources=tuple(sources))


def json_lines(source: Source, log: Log, file: str | None = None) -> str:
    """NDJSON (all files or one) as a table, line by line, with what is wrong with a line or with its ids."""
    roles = (log.column(role) for role in ROLES)
    used = [column for column in dict.fromkeys((*roles, *log.context)) if column in source.types]
    keys = [column for column in used if column not in source.partitions]
    paths = listed(literal(_pointer(key)) for key in keys)
    values = (
        f'"json texts"[{keys.index(column) + 1}] AS {name(column)}' if column in keys else name(column)
        for column in used
    )
    return (
        f'(SELECT "no object", len("json keys") > list_count("json kinds") AS "key twice", {listed(values)}, '
        f"{listed(_is_no_id(log.column(role), role, keys) for role in ('query_id', 'doc_id'))} FROM (SELECT *, "
        f"coalesce(json_type(json), '') <> 'OBJECT' AS \"no object\", "
        f'json_extract_string(json, [{paths}]) AS "json texts", json_type(json, [{paths}]) AS "json kinds", '
        f'list_filter(json_keys(json), lambda key: key IN ({listed(map(literal, keys))})) AS "json keys" '
        f"FROM read_ndjson_objects({source.reader_arguments(file)}, ignore_errors = true)))"
    )


def _is_no_id(column: str, role: str, keys: list[str]) -> str:
    """SQL for whether a value of a JSON object is no id; large whole numbers are kinds of DOUBLE to the reader."""
    flag = name(f"{role} is none")
    if column not in keys:
        return f"FALSE AS {flag}"
    i = keys.index(column) + 1
    kind, text = f'"json kinds"[{i}]', f'"json texts"[{i}]'
    real = f"{kind} = 'DOUBLE' AND NOT regexp_matches({text}, '^-?[0-9]+$')"
    return f"coalesce({kind} IN ('OBJECT', 'ARRAY', 'BOOLEAN') OR ({real}), FALSE) AS {flag}"


def _pointer(column: str) -> str:
    """Where a column stands in a JSON object, as a JSON pointer."""
    return "/" + column.replace("~", "~0").replace("/", "~1")
