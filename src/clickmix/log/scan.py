"""One scan of a part as SQL: values that are NULL where they are bad, counted per cell.   layout -> counts

Types are judged once per source, so that a clean Parquet log costs no more than its bare GROUP BY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import listed, name
from clickmix.log.layout import Part
from clickmix.log.source import Source, is_wide, kind_of


def counting_query(
    part: Part,
    *,
    text_ids: Mapping[str, bool],
    narrow: bool = False,
    lists: Mapping[str, str] | None = None,
    table: str | None = None,
) -> str:
    """Impressions and clicks per (query, document, position, context), in one scan.

    `lists` are further keys with their SQL; `table` replaces the source's own. A row that cannot be counted has no
    position, so bad rows come out as cells of their own: noticing them takes no further aggregate. With `narrow`,
    positions of Parquet are grouped in 16 bits, which is faster; the scan fails if one is larger.
    """
    lists = lists or {}
    source = part.source
    query, document, position = key_values(part, text_ids)
    names = ["query_id", "doc_id", "position", *(name(column) for column in part.roles.context), *lists]
    measures = part.layout.measures(part)
    if narrow and source.narrow and source.kind(part.column("position")) == "integer":
        position = f"CAST({position} AS SMALLINT)"
    unbroken = "".join(f" AND NOT ({problem.bad})" for problem in source.line_problems({}) if source.foreign)
    position = f"CASE WHEN {measures.good}{unbroken} THEN {position} END"
    keys = [query, document, position, *(context_value(column) for column in part.roles.context), *lists.values()]
    # Inside, the keys are called k0, k1, ...: a context column may be called n or c.
    selected = listed(f"{value} AS k{i}" for i, value in enumerate(keys))
    renamed = listed(f"k{i} AS {alias}" for i, alias in enumerate(names))
    ordinals = listed(str(i + 1) for i in range(len(keys)))
    rows = f"SELECT {selected}{measures.values} FROM {table or source.table()}"
    return f"SELECT {renamed}, {measures.aggregates} FROM ({rows}) GROUP BY {ordinals}"


def key_values(part: Part, text_ids: Mapping[str, bool] | None = None) -> tuple[str, str, str]:
    """SQL for a row's query, document and position."""
    as_text = text_ids or {"query_id": False, "doc_id": False}
    query, document = (_id(part.source, part.column(role), as_text[role]) for role in ("query_id", "doc_id"))
    return query, document, whole(part.source, part.column("position"))


def whole(source: Source, column: str) -> str:
    """SQL for a column as integers, NULL where it holds none.

    In text, 3 and 3.0 are integers (frames write them so when a value is missing); +3, 1e3 and ' 3' are not.
    """
    value, kind = name(column), source.kind(column)
    if kind == "integer":
        return f"TRY_CAST({value} AS BIGINT)" if is_wide(source.types[column]) else value
    if kind == "real":
        return (
            f"CASE WHEN {value} = floor({value}) AND abs({value}) < 9007199254740992 THEN CAST({value} AS BIGINT) END"
        )
    digits = f"regexp_matches({value}, '^[0-9]+([.]0+)?$')"
    return f"CASE WHEN {digits} THEN TRY_CAST(split_part({value}, '.', 1) AS BIGINT) END"


def _id(source: Source, column: str, as_text: bool) -> str:
    type = source.types[column]
    numpy_has_it = type == "UBIGINT" or not is_wide(type)
    plain = (source.kind(column) == "integer" and numpy_has_it) or (type == "VARCHAR" and not source.foreign)
    return name(column) if plain and not as_text else f"CAST({name(column)} AS VARCHAR)"


def context_value(column: str) -> str:
    """SQL for a context value as text; a missing one is a value of its own, the same as an empty text."""
    return f"coalesce(CAST({name(column)} AS VARCHAR), '')"


def could_be_whole(part: Part, role: str) -> bool:
    """Whether ids that are text now may have been integers in the source."""
    return part.source.untyped or kind_of(part.source.types[part.column(role)]) != "text"


def used_columns(part: Part) -> list[str]:
    """The columns of a part that counting reads."""
    roles = (part.column(role) for role in part.layout.roles)
    return [column for column in dict.fromkeys((*roles, *part.roles.context)) if column in part.source.types]


def id_columns(part: Part) -> dict[str, str]:
    """The columns that hold one id per row, by role."""
    return {role: part.column(role) for role in ("query_id", "doc_id") if part.has(role)}


def without_broken_lines(part: Part) -> Part:
    """The same part, lines left out that cannot be split into columns."""
    judged = without_broken_lines(part.judged) if part.judged else None
    return replace(part, source=part.source.without_broken_lines(), judged=judged)


def line_by_line(part: Part, engine: DuckDB, view: str) -> Part:
    """The same part with its lines read one by one, which sees all bad rows; most sources stay as they are."""
    source = part.source.line_by_line(engine, view, used=used_columns(part), ids=id_columns(part))
    return replace(part, source=source)
