"""Lines of an events file that are not JSON objects -> parts of bad rows.   layout -> counts

A layout that makes impressions from events reads all objects together; lines that are none would get lost on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clickmix.engines.sql import listed, name
from clickmix.log.json_lines import LINE_FLAGS
from clickmix.log.layout import Layout, Part, Roles
from clickmix.log.layouts.rows import Rows
from clickmix.log.refused import Problem
from clickmix.log.source import Frame, Source

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB


class _Lines(Rows):
    """The lines of a file, which can be no object; what is in the objects does not matter."""

    def problems(self, part: Part) -> list[Problem]:
        return [Problem("", name(flag), reason) for flag, reason in LINE_FLAGS.items() if flag == "no object"]


def broken_lines(sources: Sequence[Source], layout: Layout, roles: Roles, engine: DuckDB) -> tuple[Part, ...]:
    """A part for each source with lines that are no objects: so many rows without a query, which nobody can count."""
    parts = []
    columns = {"query_id": "VARCHAR", "doc_id": "VARCHAR", "position": "BIGINT", "clicked": "INTEGER"}
    columns |= {"session_id": "VARCHAR"} | dict.fromkeys(roles.context, "VARCHAR")
    nothing = listed(f"CAST(NULL AS {type}) AS {name(column)}" for column, type in columns.items())
    for source in sources:
        bad = f"SELECT {nothing} FROM {source.objects()} WHERE coalesce(json_type(json), '') <> 'OBJECT'"
        table = engine.keep(bad)
        if engine.rows(f"SELECT 1 FROM {table} LIMIT 1"):
            judged = Part(source, _Lines(), Roles({"query_id": source.own_columns[0]}))
            frame = Frame(columns, registered=table, shown_as=str(source))
            parts.append(Part(frame, layout, Roles({}, roles.context, roles.lists), judged=judged))
    return tuple(parts)
