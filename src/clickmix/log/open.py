"""A click log in any layout -> the parts to count.   sources -> open -> counts

A log is one or many sources. Text formats (CSV, NDJSON) are read as text and judged in SQL, so that a bad value can be
shown as it is in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from clickmix.engines.engine import Engine
from clickmix.errors import InputError, SettingError
from clickmix.log.columns import all_roles, checked_columns, checked_context, same_but_case
from clickmix.log.layout import LAYOUTS, Layout, Lists, Part, Roles
from clickmix.log.layouts.counted import COUNTED
from clickmix.log.paths import are_paths, passed_over
from clickmix.log.refused import Note
from clickmix.log.source import Source
from clickmix.log.sources import unreadable

MOST_NAMED = 5  # of the files in a folder that are not read


@dataclass(frozen=True)
class OpenedLog:
    """A log that can be counted: the sources it was read from, its parts, and what was odd when it was opened."""

    sources: tuple[Source, ...]
    parts: tuple[Part, ...]
    roles: Roles
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.sources))


def choose_layout(format: str | Layout = "auto", **options: Any) -> Layout:
    """The layout of that name with its options; a layout is taken as it is. Options of one layout alone name it."""
    if not isinstance(format, Layout):
        given = {key for key, value in options.items() if value is not None}
        takers = [member.name for member in LAYOUTS if given <= {option.name for option in member.options}]
        if format == "auto" and given and len(takers) > 1:
            raise SettingError(
                f"{min(given)} is for {', '.join(takers)}, and the format is auto. Say which it is with --format "
                f"{' or '.join(takers)}."
            )
        return LAYOUTS.make(takers[0] if format == "auto" and given and takers else format, **options)
    if options:
        raise SettingError(f"{next(iter(options))}: the format is an object that has its settings. Leave it out.")
    return format


def split_options(format: str | Layout, options: Mapping[str, Any]) -> tuple[Layout, dict[str, Any]]:
    """The layout with the options that belong to layouts, and the other options."""
    names = {option.name for option in LAYOUTS.options()}
    layout = choose_layout(format, **{name: value for name, value in options.items() if name in names})
    return layout, {name: value for name, value in options.items() if name not in names}


def open_log(
    log: object,
    *,
    engine: Engine,
    layout: Layout | None = None,
    columns: Mapping[str, str] | None = None,
    context: str | Sequence[str] = (),
    lists: Lists = False,
) -> OpenedLog:
    """Find the files, tables or the frame of a log, look at their columns, and say what is missing."""
    columns, context = checked_columns(columns or {}), checked_context(context)
    if lists and context:
        raise SettingError(f"context {context[0]!r}: result lists are kept without context columns. Leave one out.")
    layout = layout or choose_layout()
    sources = tuple(_named_alike(source, columns, engine) for source in layout.find(log, engine))
    roles = Roles(columns | _in_capitals(sources, columns), context, lists)
    try:
        parts, notes = layout.open(sources, roles, engine)
    except duckdb.Error as error:
        raise unreadable(", ".join(map(str, sources)), error) from None
    others = passed_over(log) if engine.embedded is not None and are_paths(log) else []
    if others:
        named = ", ".join(map(str, others[:MOST_NAMED])) + (", and others" if len(others) > MOST_NAMED else "")
        what = "file or folder was" if len(others) == 1 else "files or folders were"
        notes = (Note(f"{what} passed over: {named}", len(others)), *notes)
    return OpenedLog(sources, parts, roles, notes)


def _named_alike(source: Source, columns: Mapping[str, str], engine: Engine) -> Source:
    """A counts file that clickmix wrote has the standard names, whatever the raw log calls its columns."""
    duck = engine.embedded
    if not (columns and duck is not None and len(source.notes(duck)) == len(source.files) > 0):
        return source
    renamed = {role: column for role, column in columns.items() if role in source.types and role != column}
    types = {renamed.get(column, column): type for column, type in source.types.items()}
    twice = [role for role, column in renamed.items() if column in source.types and column not in renamed]
    if twice:
        raise InputError(
            f"{source}: the columns {twice[0]} and {columns[twice[0]]!r} would both be called {columns[twice[0]]!r}. "
            "Count the raw log again, or leave one of the two out."
        )
    return source.rename(renamed, types)


def _in_capitals(sources: Sequence[Source], columns: Mapping[str, str]) -> dict[str, str]:
    """Columns that all sources write in another case than expected, as Snowflake does: QUERY_ID."""
    counted = any(columns.get(role, role) in source.types for role in COUNTED for source in sources)
    found = {}
    for role in all_roles():
        wanted = columns.get(role, role)
        names = {same_but_case(wanted, source.types) for source in sources}
        if len(names) == 1 and names not in ({None}, {wanted}) and not (counted and role == "clicked"):
            found[role] = str(names.pop())
    return found
