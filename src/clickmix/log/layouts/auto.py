"""Auto: each source is in the layout that recognises it.   sources -> parts"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clickmix.log.layout import LAYOUTS, Part, Roles
from clickmix.log.layouts.rows import Rows
from clickmix.log.refused import Note
from clickmix.log.source import Source

if TYPE_CHECKING:
    from clickmix.engines.engine import Engine


def recognised(source: Source, roles: Roles) -> str | None:
    """The name of the layout that a source is in, or None."""
    for member in LAYOUTS:
        if member.make().recognises(source, roles):
            return member.name
    return None


@LAYOUTS.register("auto", help="Recognise the layout of each file by its columns.")
class Auto(Rows):
    """Sources in any mix of layouts; one that no layout recognises is taken for rows, which says what is missing."""

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
