"""Lists inside columns, by path: `doc_ids`, `results[].sku`, `search.items[].document.id`.   layouts

A list is a list of the source (Parquet, frames, tables) or JSON text (CSV, NDJSON). Its elements are values, or objects
in which the path names a field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clickmix.log.source import Source, kind_of

PATH = re.compile(r"(?P<before>[^\[\]]+)(?P<each>\[\](?:\.(?P<after>[^\[\]]+))?)?")


@dataclass(frozen=True)
class ListPath:
    """Where a list is: its column, the fields inside it that lead to the list, and those inside each element."""

    column: str
    inside: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def list_path(source: Source, path: str) -> ListPath | None:
    """The list that a path names in a source, or None if the source has no such column."""
    if path in source.types:
        return ListPath(path)
    match = PATH.fullmatch(path)
    before = match["before"].split(".") if match else [path]
    starts = (".".join(before[:n]) for n in range(len(before), 0, -1))
    column = next((start for start in starts if start in source.types), None)
    if column is None:
        return None
    after = match["after"].split(".") if match and match["after"] else []
    return ListPath(column, tuple(before[column.count(".") + 1 :]), tuple(after))


def list_kind(source: Source, column: str) -> str:
    """How a column holds a list: as text (JSON), as a list, or otherwise (inside an object)."""
    kind = "text" if source.is_text else kind_of(source.types[column])
    return kind if kind in ("text", "list") else "other"
