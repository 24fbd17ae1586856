"""Lists inside columns, by path: `doc_ids`, `results[].sku`, `search.items[].document.id` -> SQL.   layouts

A list is a SQL list (Parquet, frames) or JSON text (CSV, NDJSON). Its elements are values, or objects in which the path
names a field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clickmix.engines.sql import literal, name
from clickmix.log.source import Source, kind_of

PATH = re.compile(r"(?P<before>[^\[\]]+)(?P<each>\[\](?:\.(?P<after>[^\[\]]+))?)?")


@dataclass(frozen=True)
class ListColumn:
    """A list in each row: the column that holds it, SQL for the list, and whether it is parsed from JSON text."""

    column: str
    sql: str
    parsed: bool
    element: str = ""  # the SQL type of its elements, where the source says so


def list_column(source: Source, path: str) -> ListColumn | None:
    """The list that a path names in a source, or None if the source has no such column."""
    match = PATH.fullmatch(path)
    before = match["before"].split(".") if match and path not in source.types else [path]
    after = match["after"].split(".") if match and match["after"] and path not in source.types else []
    column = next(
        (".".join(before[:n]) for n in range(len(before), 0, -1) if ".".join(before[:n]) in source.types), None
    )
    if column is None:
        return None
    inside = before[column.count(".") + 1 :]
    if source.is_text or kind_of(source.types[column]) == "text":
        value = f"TRY_CAST({name(column)} AS JSON)"
        value = f"json_extract({value}, {_pointer(inside)})" if inside else value
        element = f"json_extract_string(e, {_pointer(after)})" if after else "json_extract_string(e, '$')"
        return ListColumn(column, f"list_transform(TRY_CAST({value} AS JSON[]), lambda e: {element})", True)
    value = ".".join(name(part) for part in (column, *inside))
    element = ".".join(["e", *map(name, after)])
    if after:
        return ListColumn(column, f"list_transform({value}, lambda e: {element})", False)
    return ListColumn(column, value, False, "" if inside else source.types[column].removesuffix("[]"))


def _pointer(fields: list[str]) -> str:
    return literal("".join(f"/{field.replace('~', '~0').replace('/', '~1')}" for field in fields))
