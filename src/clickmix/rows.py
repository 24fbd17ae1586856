"""A row of a log as SQL: its values, NULL where they are not what they should be, counted in one scan.

log -> counts. Types are judged once per source, so that a clean Parquet log costs no more than its bare GROUP BY.
"""

from __future__ import annotations

from collections.abc import Mapping

from clickmix.log import Log, is_counted
from clickmix.sources import Source, is_wide, kind_of
from clickmix.sql import listed, name


def counting_query(
    source: Source,
    log: Log,
    *,
    skip: bool,
    text_ids: dict[str, bool],
    lists: Mapping[str, str] | None = None,
    table: str | None = None,
) -> str:
    """One scan: impressions, clicks and refused rows per (query, document, position, context).

    `lists` are further keys with their SQL, from a `table` made of the source's if one is given. Bad keys are not
    looked at here: they come out as cells of their own, which costs nothing.
    """
    lists = lists or {}
    keys = [*key_values(source, log, text_ids), *(_context(column) for column in log.context), *lists.values()]
    names = ["query_id", "doc_id", "position", *(name(column) for column in log.context), *lists]
    # Inside, the keys have names of ours: a context column may be called n, c or skips.
    selected = listed(f"{value} AS k{i}" for i, value in enumerate(keys))
    renamed = listed(f"k{i} AS {alias}" for i, alias in enumerate(names))
    ordinals = listed(str(i + 1) for i in range(len(keys)))
    table = table or source.table(skip=skip)
    if is_counted(source, log):
        n, c = (whole(source, log.column(role)) for role in ("impressions", "clicks"))
        good = f"n >= 0 AND c >= 0 AND c <= n{_unbroken(source, 'broken')}"
        broken = f", {name(source.of.broken)} AS broken" if source.of and source.of.broken else ""
        return (
            f"SELECT {renamed}, sum(CASE WHEN {good} THEN n ELSE 0 END) AS impressions, "
            f"sum(CASE WHEN {good} THEN c ELSE 0 END) AS clicks, "
            f"count(CASE WHEN {good} THEN NULL ELSE 1 END) AS refused "
            f"FROM (SELECT {selected}, {n} AS n, {c} AS c{broken} FROM {table}) GROUP BY {ordinals}"
        )
    clicked, skipped = (f"{flag}{_unbroken(source)}" for flag in flags(source, log))
    # Three plain counts are the cheapest way to check and count at once (measured: as fast as count and sum alone).
    return (
        f"SELECT {renamed}, clicks + skips AS impressions, clicks, all_rows - clicks - skips AS refused FROM ("
        f"SELECT {selected}, count(*) AS all_rows, count(CASE WHEN {clicked} THEN 1 END) AS clicks, "
        f"count(CASE WHEN {skipped} THEN 1 END) AS skips FROM {table} GROUP BY {ordinals})"
    )


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
    """SQL that is true for a click, and SQL that is true for an impression without one; else false or NULL."""
    value, kind = name(log.column("clicked")), _kind(source, log.column("clicked"))
    if kind == "boolean":
        return value, f"NOT {value}"
    if kind in ("integer", "real"):
        return f"{value} = 1", f"{value} = 0"
    if kind == "other":  # a statement for a warehouse, whose column may hold numbers or truth values
        return f"CAST({value} AS INTEGER) = 1", f"CAST({value} AS INTEGER) = 0"
    return f"lower({value}) IN ('1', 'true', '1.0')", f"lower({value}) IN ('0', 'false', '0.0')"


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


def _unbroken(source: Source, column: str = "") -> str:
    """Further condition for a row to count: its line could be cut into columns."""
    broken = source.of.broken if source.of else ""
    return f" AND {column or name(broken)} IS NULL" if broken else ""


def _context(column: str) -> str:
    """A context value as text; a missing one is a value of its own."""
    return f"coalesce(CAST({name(column)} AS VARCHAR), '')"
