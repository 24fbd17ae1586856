"""Layouts: how a click log is written. A layout recognises its sources and turns them into parts to count.

sources -> layout -> counts. To add a layout, write one file: a class with `LAYOUTS.register` that says its name, a line
of help, how it recognises a source, and the impressions or counts in it. Most subclass `Rows` and override `open`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from clickmix.log.refused import Note, Problem
from clickmix.log.source import Source
from clickmix.registry import Family

if TYPE_CHECKING:
    from clickmix.engines.engine import Engine


# Whether result lists are kept apart: not at all, by what was shown, or also by what was clicked.
Lists = Literal[False, True, "clicks"]


@dataclass(frozen=True)
class Roles:
    """Which column means what, which are the context, and whether result lists are kept apart."""

    columns: Mapping[str, str] = field(default_factory=dict)
    context: tuple[str, ...] = ()
    lists: Lists = False

    def column(self, role: str) -> str:
        """The log's own name for a column."""
        return self.columns.get(role, role)


@dataclass(frozen=True)
class Part:
    """A table that one scan counts, the layout it is in, and what its columns mean.

    `judged` is the part in which bad rows are looked for, where the table to count was made from another one.
    """

    source: Source
    layout: Layout
    roles: Roles
    judged: Part | None = None

    def column(self, role: str) -> str:
        """The part's own name for a column."""
        return self.roles.column(role)

    def has(self, role: str) -> bool:
        """Whether the part has a column."""
        return self.column(role) in self.source.types


@dataclass(frozen=True)
class Measures:
    """SQL of a scan: whether a row is good, the values it needs, and the aggregates impressions and clicks of them."""

    good: str
    values: str
    aggregates: str


class Layout(ABC):
    """How a log is written."""

    # The columns that mean something in this layout.
    roles: ClassVar[tuple[str, ...]] = ("query_id", "doc_id", "position", "clicked", "session_id")
    # What a log may have instead of clicked, for the message that it is missing.
    instead: ClassVar[str] = " (or 'impressions' and 'clicks', if it is counted already)"
    # Whether a row is one impression, so that the clicks of one session can be told apart.
    row_is_impression: ClassVar[bool] = True
    # The column that tells which rows belong to one result list.
    list_role: ClassVar[str] = "session_id"

    def find(self, log: object, engine: Engine) -> tuple[Source, ...]:
        """The sources that a log names."""
        from clickmix.log.sources import find_sources

        return find_sources(log, engine)

    @abstractmethod
    def recognises(self, source: Source, roles: Roles) -> bool:
        """Whether a source looks as if it were in this layout, by its columns and their types."""

    @abstractmethod
    def open(
        self, sources: Sequence[Source], roles: Roles, engine: Engine
    ) -> tuple[tuple[Part, ...], tuple[Note, ...]]:
        """The parts to count, and what was odd on the way; raises if a column is missing or cannot be right."""

    @abstractmethod
    def measures(self, part: Part) -> Measures:
        """How a part's rows become impressions and clicks."""

    @abstractmethod
    def problems(self, part: Part) -> list[Problem]:
        """What can be wrong with a row, in the order in which it is looked for: one row, one reason."""


LAYOUTS: Family[Layout] = Family("format", "clickmix.log.layouts", first="auto")
