"""Result lists: one row per list shown, its documents in a list column.   sources -> parts

| column | meaning |
|---|---|
| query_id | as in rows |
| doc_ids | the documents from top to bottom; a missing one keeps its place |
| clicked, clicked_ids or clicked_positions | 0 or 1 per document, or the documents, or the positions clicked |
| positions | optional: the position of each document; without it, the first is at 1 |

A row is one list, so `session_id` is not needed. Contradictions make the whole list a bad row. Clicks on documents that
are not in the list are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from clickmix.engines.engine import StoredTable
from clickmix.engines.sql import listed, name
from clickmix.errors import InputError
from clickmix.log.layout import LAYOUTS, Part, Roles
from clickmix.log.layouts.rows import RowLayout
from clickmix.log.list_columns import CLICKS, ListColumns, list_paths
from clickmix.log.open import (
    SYNONYMS,
    candidate,
    check_context,
    check_present,
    list_kind,
    list_path,
    looks_like_lists,
    plain_name,
)
from clickmix.log.refused import BadValue, Note
from clickmix.log.source import EngineTable, Source, kind_of

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB
    from clickmix.engines.engine import Engine

TABLE = "\0table"  # stands for the table of the lists in SQL that unfolds them
KIND = "clickmix_problem"


@dataclass(frozen=True)
class Unfolded(Source):
    """Result lists of another source as rows: query_id, doc_id, position, clicked, session_id and the context."""

    narrow: ClassVar[bool] = True
    base: Source = field(kw_only=True)
    select: str = field(kw_only=True)  # SQL with TABLE where the table of the lists goes
    held: Mapping[str, str] = field(kw_only=True)  # types as they are read; `types` are those of the file

    def __str__(self) -> str:
        return str(self.base)

    @property
    def untyped(self) -> bool:
        """Whether the source of the lists has no types."""
        return self.base.untyped

    def kind(self, column: str) -> str:
        """What a column holds as it is read."""
        return kind_of(self.held[column])

    def table(self) -> str:
        """SQL that unfolds the lists."""
        return f"({self.select.replace(TABLE, self.base.table())})"

    def without_broken_lines(self) -> Source:
        """The same lists without those in broken lines."""
        return replace(self, base=self.base.without_broken_lines())

    def line_by_line(self, engine: DuckDB, view: str, *, used: Sequence[str], ids: Mapping[str, str]) -> Source:
        """The same lists, read line by line."""
        columns = self.base.own_columns
        kept = {role: column for role, column in ids.items() if column in columns}
        return replace(self, base=self.base.line_by_line(engine, view, used=list(self.base.types), ids=kept))


@LAYOUTS.register("lists", help="One row per result list: doc_ids, and clicked, clicked_ids or clicked_positions.")
class ResultLists(RowLayout):
    """One row per result list."""

    roles: ClassVar[tuple[str, ...]] = ("query_id", "doc_ids", "positions", *CLICKS, "session_id")
    instead: ClassVar[str] = " (or 'clicked_ids', or 'clicked_positions')"

    def recognises(self, source: Source, roles: Roles) -> bool:
        """Whether there is a column doc_ids, or a list where a document is expected."""
        document = roles.column("doc_id")
        if list_path(source, roles.column("doc_ids")) or kind_of(source.types.get(document, "")) == "list":
            return True
        if source.untyped and not source.foreign:  # lists in CSV are text
            return looks_like_lists(source, roles)
        return document not in source.types and any(
            kind_of(type) == "list" and plain_name(column) in SYNONYMS["doc_ids"]
            for column, type in source.types.items()
        )

    def open(
        self, sources: Sequence[Source], roles: Roles, engine: Engine
    ) -> tuple[tuple[Part, ...], tuple[Note, ...]]:
        """Each source unfolded."""
        return tuple(self._unfolded(source, roles, engine) for source in sources), ()

    def _unfolded(self, source: Source, roles: Roles, engine: Engine) -> Part:
        if kind_of(source.types.get(roles.column("doc_id"), "")) == "list":
            roles = replace(roles, columns={**roles.columns, "doc_ids": roles.column("doc_id")})
        raw = Part(source, self, roles)
        self._check(raw)
        lists = ListColumns.of(raw, engine)
        select = _rows(raw, lists)
        if source.foreign:
            return _in_engine(raw, lists, select, engine)
        held = engine.types(f"({select.replace(TABLE, source.table())})")
        # Ids that were read as text may be integers in the file.
        types = held | {"query_id": source.types[raw.column("query_id")]}
        documents = source.types.get(raw.column("doc_ids"), "")
        if source.is_text and documents.endswith("[]"):
            types["doc_id"] = documents.removesuffix("[]")
        unfolded = Unfolded(types, source.files, source.origin, base=source, select=select, held=held)
        return Part(unfolded, self, Roles({}, roles.context, roles.lists), judged=replace(raw, layout=_Judged(lists)))

    def _check(self, raw: Part) -> None:
        """Raise unless there is a query, a list of documents and one column of clicks."""
        found = list_paths(raw)
        clicks = [role for role in CLICKS if role in found]
        if not clicks or "doc_ids" not in found or not raw.has("query_id"):
            columns = {role: path.column for role, path in found.items()}
            known = replace(raw, roles=replace(raw.roles, columns={**raw.roles.columns, **columns}))
            likely = [role for role in CLICKS if not clicks and candidate(role, known, set(columns.values()))]
            check_present(known, ("query_id", "doc_ids", *(clicks or likely[:1] or CLICKS[:1])))
        for role, path in found.items():
            type = raw.source.types[path.column]
            if not path.inside and list_kind(raw.source, path.column) == "other" and "JSON" not in type:
                raise InputError(
                    f"{raw.source}, column {path.column!r}: found {type} values, expected a list for {role}, because "
                    "doc_ids is one."
                )
        if len(clicks) > 1:
            raise InputError(
                f"{raw.source}: has {' and '.join(clicks)}. Expected one of them; rename or drop the others."
            )
        check_context(raw)


def _rows(raw: Part, lists: ListColumns) -> str:
    """SQL that unfolds the lists into impressions. A bad list is one row without a document and without a click."""
    sql = lists.sql
    others = [sql.name(raw.column("query_id")), *map(sql.name, raw.roles.context)]
    columns = {"docs": lists.documents, "flags": lists.flags}
    if lists.own_places:
        columns["places"] = lists.places
    kept = [f"o{i}" for i in range(len(others))]
    numbered = [] if raw.source.foreign else ["list"]
    judged = listed(
        [
            *(f"{other} AS {alias}" for other, alias in zip(others, kept, strict=True)),
            *(["row_number() OVER () AS list"] if numbered else []),
            f"{lists.bad} AS bad",
            f"{lists.odd} AS odd",
            *(f"{value} AS {alias}" for alias, value in columns.items()),
        ]
    )
    # A list with something to report gets one more row that cannot be counted, as a bad list does.
    marked = listed(
        f"CASE WHEN bad THEN {sql.nothing} WHEN odd THEN {sql.one_more(alias)} ELSE {alias} END AS {alias}"
        for alias in columns
    )
    selected = f"(SELECT {listed([*kept, *numbered])}, {marked} FROM (SELECT {judged} FROM {TABLE}) AS judged)"
    rows = sql.unfolded(selected, [*kept, *numbered], places=lists.own_places)
    names = ["query_id", *map(sql.name, raw.roles.context)]
    renamed = [f"{alias} AS {new}" for alias, new in zip(kept, names, strict=True)]
    session = ["list AS session_id"] if numbered else []
    return (
        f"SELECT {listed([*renamed, *session])}, d AS doc_id, p AS position, c AS clicked FROM ({rows}) AS unfolded "
        "WHERE d IS NOT NULL OR c IS NULL"
    )


def _in_engine(raw: Part, lists: ListColumns, select: str, engine: Engine) -> Part:
    """The lists of another engine's table: views of its rows, and of what is wrong with each list."""
    source, judged = raw.source, _Judged(lists)
    rows = engine.view(select.replace(TABLE, source.table()))
    cases = " ".join(f"WHEN {problem.bad} THEN {i}" for i, problem in enumerate(lists.problems()))
    found = engine.view(f"SELECT *, CASE {cases} END AS {KIND} FROM {source.table()} AS lists")
    tables = (
        StoredTable(str(source), rows, engine.types(rows), source.untyped),
        StoredTable(str(source), found, engine.types(found)),
    )
    unfolded, whole = (EngineTable(table.types, of=table) for table in tables)
    broken = replace(whole, of=replace(whole.of, broken=source.of.broken)) if isinstance(source, EngineTable) else whole
    roles = Roles({}, raw.roles.context, raw.roles.lists)
    return Part(unfolded, raw.layout, roles, judged=Part(broken, judged, raw.roles))


@dataclass(frozen=True)
class _Judged(ResultLists):
    """Finds bad lists: problems of the line, the query, and contradictions within the list."""

    lists: ListColumns

    def problems(self, part: Part) -> list[BadValue]:
        """What can be wrong with a list; another engine has already found out."""
        query = part.column("query_id")
        problems = self.lists.problems()
        if part.source.foreign:
            problems = [replace(problem, bad=f"{KIND} = {i}") for i, problem in enumerate(problems)]
        return [
            *part.source.line_problems({"query_id": query}),
            BadValue(query, f"{name(query)} IS NULL", "query_id is missing"),
            *problems,
        ]
