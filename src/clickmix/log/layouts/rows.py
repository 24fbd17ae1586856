"""Rows: one row per impression, with query_id, doc_id, position and clicked. Auto: any layout.   sources -> parts"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from clickmix.engines.sql import name
from clickmix.log.layout import LAYOUTS, Layout, Measures, Part, Roles, key_problems
from clickmix.log.open import check_columns
from clickmix.log.refused import BadValue, Note
from clickmix.log.source import Source, kind_of

if TYPE_CHECKING:
    from clickmix.engines.engine import Engine


@LAYOUTS.register("rows", help="One row per impression: query_id, doc_id, position, clicked.")
class RowLayout(Layout):
    """One row per impression."""

    # The columns, besides the keys, that a source needs.
    measured: ClassVar[tuple[str, ...]] = ("clicked",)

    def recognises(self, source: Source, roles: Roles) -> bool:
        """Whether each row of the source is a document with a position, clicked or not."""
        one = kind_of(source.types.get(roles.column("doc_id"), "")) != "list"
        return one and all(roles.column(role) in source.types for role in ("doc_id", "position", "clicked"))

    def open(
        self, sources: Sequence[Source], roles: Roles, engine: Engine
    ) -> tuple[tuple[Part, ...], tuple[Note, ...]]:
        """Each source is one part, unchanged."""
        parts = tuple(Part(source, self, roles) for source in sources)
        for part in parts:
            check_columns(part, self.measured)
        return parts, ()

    def measures(self, part: Part) -> Measures:
        """Every row is an impression."""
        clicked, readable = flags(part)
        # DuckDB's FILTER touches only the rows it counts; other engines may not have it.
        clicks = "count(CASE WHEN c THEN 1 END)" if part.source.foreign else "count(*) FILTER (WHERE c)"
        return Measures(readable, f", {clicked} AS c", f"count(*) AS impressions, {clicks} AS clicks")

    def problems(self, part: Part) -> list[BadValue]:
        """Bad keys, and clicked that is neither 0 nor 1."""
        _, readable = flags(part)
        bad = f"NOT coalesce({readable}, FALSE)"
        return [*key_problems(part), BadValue(part.column("clicked"), bad, "clicked is neither 0 nor 1")]


def flags(part: Part) -> tuple[str, str]:
    """SQL that is true for a click, and SQL that is true for a readable row; otherwise false or NULL.

    Integers are compared with a range, which a scan evaluates faster than two values.
    """
    column = part.column("clicked")
    value, kind = name(column), part.source.kind(column)
    if kind == "boolean":
        return value, f"{value} IS NOT NULL"
    if kind == "integer":
        return f"{value} = 1", f"{value} BETWEEN 0 AND 1"
    if kind == "real":
        return f"{value} = 1", f"{value} IN (0, 1)"
    if kind == "other":  # SQL for a warehouse, where the column may hold numbers or truth values
        return f"CAST({value} AS INTEGER) = 1", f"CAST({value} AS INTEGER) BETWEEN 0 AND 1"
    yes, no = "'1', 'true', '1.0'", "'0', 'false', '0.0'"
    return f"lower({value}) IN ({yes})", f"lower({value}) IN ({yes}, {no})"


def recognised(source: Source, roles: Roles) -> str | None:
    """The name of the layout that a source is in, or None. Rows come first: they may have other columns, too."""
    for member in sorted(LAYOUTS, key=lambda member: member.name != "rows"):
        if member.make().recognises(source, roles):
            return member.name
    return None


@LAYOUTS.register("auto", help="Recognise the layout of each file by its columns.")
class Auto(RowLayout):
    """Sources in any mix of layouts; one that no layout recognises is read as rows, which says what is missing."""

    def recognises(self, source: Source, roles: Roles) -> bool:
        """Never: it only asks the others."""
        return False

    def open(
        self, sources: Sequence[Source], roles: Roles, engine: Engine
    ) -> tuple[tuple[Part, ...], tuple[Note, ...]]:
        """The parts of all layouts; sources of the same layout are opened together."""
        by_layout: dict[str, list[Source]] = {}
        for source in sources:
            by_layout.setdefault(recognised(source, roles) or "rows", []).append(source)
        opened = [LAYOUTS.make(name).open(mine, roles, engine) for name, mine in by_layout.items()]
        return tuple(part for parts, _ in opened for part in parts), tuple(
            note for _, notes in opened for note in notes
        )
