"""Layouts: how a click log is written. A layout recognises its sources and turns them into parts to count.

sources -> layout -> counts. To add a layout, write one file: a class with `LAYOUTS.register` that says its name, a line
of help, how it recognises a source, and the impressions or counts in it. Most subclass `RowLayout` and override `open`.

SQL counts a part in one scan; bad values are NULL. Types are judged once per source, so that a clean Parquet log costs
no more than its bare GROUP BY.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from clickmix.engines.sql import listed, name
from clickmix.log.refused import BadValue, Note
from clickmix.log.source import Source, is_wide, kind_of
from clickmix.registry import Family

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB
    from clickmix.engines.engine import Engine

# Whether result lists are counted separately: not at all, by what was shown, or also by what was clicked.
Lists = Literal[False, True, "clicks"]
# The columns of a log that is already counted.
COUNTED = ("impressions", "clicks")


@dataclass(frozen=True)
class Roles:
    """Which column means what, which are the context, and whether result lists are counted separately."""

    columns: Mapping[str, str] = field(default_factory=dict)
    context: tuple[str, ...] = ()
    lists: Lists = False

    def column(self, role: str) -> str:
        """The log's own name for a column."""
        return self.columns.get(role, role)


@dataclass(frozen=True)
class Part:
    """A table that one scan counts, the layout it is in, and what its columns mean.

    If the table was made from another one, `judged` is the part in which to look for bad rows.
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
    """SQL of a scan: whether a row is good, the values it needs, and the aggregates impressions and clicks."""

    good: str
    values: str
    aggregates: str


class Layout(ABC):
    """How a log is written."""

    # The columns that mean something in this layout.
    roles: ClassVar[tuple[str, ...]] = ("query_id", "doc_id", "position", "clicked", "session_id")
    # What a log may have instead of clicked, for the message that it is missing.
    instead: ClassVar[str] = " (or 'impressions' and 'clicks', if it is counted already)"
    # Whether a row is one impression, so that rows show the clicks of one session.
    row_is_impression: ClassVar[bool] = True
    # The column that says which rows belong to one result list.
    list_role: ClassVar[str] = "session_id"

    def find(self, log: object, engine: Engine) -> tuple[Source, ...]:
        """The sources that a log names."""
        from clickmix.log.files import find_sources

        return find_sources(log, engine)

    @abstractmethod
    def recognises(self, source: Source, roles: Roles) -> bool:
        """Whether a source seems to be in this layout, by its columns and their types."""

    @abstractmethod
    def open(
        self, sources: Sequence[Source], roles: Roles, engine: Engine
    ) -> tuple[tuple[Part, ...], tuple[Note, ...]]:
        """The parts to count, and notes on what was odd; raises if a column is missing or cannot be right."""

    @abstractmethod
    def measures(self, part: Part) -> Measures:
        """How a part's rows become impressions and clicks."""

    @abstractmethod
    def problems(self, part: Part) -> list[BadValue]:
        """What can be wrong with a row, in the order of checking: each row gets one reason."""


LAYOUTS: Family[Layout] = Family("format", "clickmix.log.layouts", first="auto")


def counting_query(
    part: Part,
    *,
    text_ids: Mapping[str, bool],
    narrow: bool = False,
    good_only: bool = False,
    lists: Mapping[str, str] | None = None,
    table: str | None = None,
) -> str:
    """Impressions and clicks per (query, document, position, context), in one scan.

    `lists` are further keys with their SQL; `table` replaces the source's. A row that cannot be counted gets no
    position, so bad rows become separate cells, and finding them takes no further aggregate. With `narrow`, positions
    of Parquet are grouped in 16 bits, which is faster; the scan fails if one is larger. With `good_only`, bad rows
    are left out, which is also faster; the counts then have fewer impressions than the source has rows.
    """
    lists = lists or {}
    source = part.source
    query, document, position = key_values(part, text_ids)
    names = ["query_id", "doc_id", "position", *(name(column) for column in part.roles.context), *lists]
    measures = part.layout.measures(part)
    if narrow and source.narrow and source.kind(part.column("position")) == "integer":
        position = f"CAST({position} AS SMALLINT)"
    unbroken = "".join(f" AND NOT ({problem.bad})" for problem in source.line_problems({}) if source.foreign)
    good = f"{measures.good}{unbroken}"
    position = position if good_only else f"CASE WHEN {good} THEN {position} END"
    keys = [query, document, position, *(context_value(column) for column in part.roles.context), *lists.values()]
    # The inner query calls the keys k0, k1, ..., because a context column may be called n or c.
    selected = listed(f"{value} AS k{i}" for i, value in enumerate(keys))
    renamed = listed(f"k{i} AS {alias}" for i, alias in enumerate(names))
    ordinals = listed(str(i + 1) for i in range(len(keys)))
    rows = f"SELECT {selected}{measures.values} FROM {table or source.table()}{f' WHERE {good}' if good_only else ''}"
    return f"SELECT {renamed}, {measures.aggregates} FROM ({rows}) GROUP BY {ordinals}"


def key_values(part: Part, text_ids: Mapping[str, bool] | None = None) -> tuple[str, str, str]:
    """SQL for a row's query, document and position."""
    as_text = text_ids or {"query_id": False, "doc_id": False}
    query, document = (_id(part.source, part.column(role), as_text[role]) for role in ("query_id", "doc_id"))
    return query, document, whole(part.source, part.column("position"))


def whole(source: Source, column: str) -> str:
    """SQL for a column as integers, NULL for values that are not integers.

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
    """SQL for a context value as text; a missing value is the same as an empty text."""
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
    """The same part without the lines that cannot be split into columns."""
    judged = without_broken_lines(part.judged) if part.judged else None
    return replace(part, source=part.source.without_broken_lines(), judged=judged)


def line_by_line(part: Part, engine: DuckDB, view: str) -> Part:
    """The same part, read line by line, which finds all bad rows; most sources stay as they are."""
    source = part.source.line_by_line(engine, view, used=used_columns(part), ids=id_columns(part))
    return replace(part, source=source)


def key_problems(part: Part) -> list[BadValue]:
    """Problems of the line, the ids, the position, and the list, if lists are counted separately."""
    ids, position = id_columns(part), part.column("position")
    at = whole(part.source, position)
    problems = [
        *part.source.line_problems(ids),
        *(BadValue(column, f"{name(column)} IS NULL", f"{role} is missing") for role, column in ids.items()),
        BadValue(position, f"coalesce({at}, 0) < 1", "position is not a positive whole number"),
    ]
    if part.roles.lists:
        role = part.layout.list_role
        missing = f"nullif(CAST({name(part.column(role))} AS VARCHAR), '') IS NULL"
        problems.append(BadValue(part.column(role), missing, f"{role} is missing"))
    return problems
