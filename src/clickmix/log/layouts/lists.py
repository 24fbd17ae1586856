"""Result lists: one row per list shown, its documents in a list column.   sources -> parts

| column | meaning |
|---|---|
| query_id | as in rows |
| doc_ids | the documents from top to bottom; a missing one keeps its place |
| clicked, clicked_ids or clicked_positions | 0 or 1 per document, or the documents, or the positions clicked |
| positions | optional: the position of each document; without it, the first is at 1 |

A row is one list, so `session_id` is not needed. Contradictions make the whole list a bad row: lists of unequal length,
clicks on documents that are not in it, and clicked_ids on a document that is in it twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import duckdb

from clickmix.engines.sql import listed, name
from clickmix.errors import InputError
from clickmix.log.columns import SYNONYMS, check_context, check_present, plain_name
from clickmix.log.layout import LAYOUTS, Part, Roles
from clickmix.log.layouts.rows import Rows
from clickmix.log.paths_in_columns import ListColumn, list_column
from clickmix.log.refused import Note, Problem
from clickmix.log.source import Source, kind_of

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB
    from clickmix.engines.engine import Engine

CLICKS = ("clicked", "clicked_ids", "clicked_positions")


@dataclass(frozen=True)
class Unfolded(Source):
    """Result lists of another source as rows: query_id, doc_id, position, clicked, session_id and the context."""

    base: Source = field(kw_only=True)
    select: tuple[str, str] = field(kw_only=True)  # SQL before and after the table of the lists
    held: Mapping[str, str] = field(kw_only=True)  # types as they are read; `types` are those of the file

    def __str__(self) -> str:
        return str(self.base)

    @property
    def untyped(self) -> bool:
        """As the source of the lists."""
        return self.base.untyped

    def kind(self, column: str) -> str:
        """What a column holds as it is read."""
        return kind_of(self.held[column])

    def table(self, *, skip: bool = False) -> str:
        """SQL that unfolds the lists."""
        return self.select[0] + self.base.table(skip=skip) + self.select[1]

    def line_by_line(self, engine: DuckDB, view: str, *, used: Sequence[str], ids: Mapping[str, str]) -> Source:
        """The same lists, their lines read one by one."""
        columns = self.base.own_columns
        kept = {role: column for role, column in ids.items() if column in columns}
        return replace(self, base=self.base.line_by_line(engine, view, used=list(self.base.types), ids=kept))


@LAYOUTS.register("lists", help="One row per result list: doc_ids, and clicked, clicked_ids or clicked_positions.")
class ResultLists(Rows):
    """One row per result list."""

    roles: ClassVar[tuple[str, ...]] = ("query_id", "doc_ids", "positions", *CLICKS, "session_id")
    instead: ClassVar[str] = " (or 'clicked_ids', or 'clicked_positions')"

    def recognises(self, source: Source, roles: Roles) -> bool:
        """Whether there is a column doc_ids, or a list where a document is expected."""
        document = roles.column("doc_id")
        if list_column(source, roles.column("doc_ids")) or kind_of(source.types.get(document, "")) == "list":
            return True
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
        if source.foreign:
            raise InputError(
                f"{source}: holds result lists, which only DuckDB unfolds. Make a view with one row per document "
                "there, or give files."
            )
        lists, problems = _lists(raw), self._list_problems(raw)
        bad = " OR ".join(f"coalesce({problem.bad}, TRUE)" for problem in problems)
        others = [name(raw.column("query_id")), *map(name, roles.context)]
        inner = (
            f"SELECT {listed(f'{other} AS o{i}' for i, other in enumerate(others))}, row_number() OVER () AS list, "
            f"{bad} AS bad, coalesce({lists['doc_ids'].sql}, [NULL]) AS docs, {self._places(raw)} AS places, "
            f"{self._flags(raw)} AS flags FROM "
        )
        kept = listed(f"o{i}" for i in range(len(others)))
        rows = f"SELECT {kept}, list, bad, unnest(docs) AS d, unnest(places) AS p, unnest(flags) AS c FROM ({inner}"
        names = ["query_id", *map(name, roles.context)]
        before = (
            f"(SELECT {listed(f'o{i} AS {new}' for i, new in enumerate(names))}, list AS session_id, d AS doc_id, "
            f"CASE WHEN NOT bad THEN p END AS position, c AS clicked FROM ({rows}"
        )
        select = (before, ")) WHERE d IS NOT NULL OR bad)")
        try:
            held = engine.types(select[0] + source.table() + select[1])
        except duckdb.Error as error:
            columns = ", ".join(f"column {column.column!r}" for column in lists.values())
            reason = str(error).splitlines()[0]
            raise InputError(f"{source}, {columns}: cannot be read as result lists: {reason}") from None
        if kind_of(held["doc_id"]) not in ("text", "integer"):
            raise InputError(
                f"{source}, column {lists['doc_ids'].column!r}: found lists of {held['doc_id']}, expected lists of "
                "text or whole numbers for doc_ids."
            )
        types = held | self._file_types(raw)
        unfolded = Unfolded(types, source.files, source.origin, base=source, select=select, held=held)
        return Part(unfolded, self, Roles({}, roles.context, roles.lists), judged=raw)

    def _file_types(self, raw: Part) -> dict[str, str]:
        """The types that ids have in the file, where they are read as text."""
        types = {"query_id": raw.source.types[raw.column("query_id")]}
        documents = raw.source.types.get(raw.column("doc_ids"), "")
        if raw.source.is_text and documents.endswith("[]"):
            types["doc_id"] = documents.removesuffix("[]")
        return types

    def _check(self, raw: Part) -> None:
        """Raise unless there is a query, a list of documents and one column of clicks."""
        found = _lists(raw)
        clicks = [role for role in CLICKS if role in found]
        if not clicks or "doc_ids" not in found or not raw.has("query_id"):
            paths = {role: column.column for role, column in found.items()}
            known = replace(raw, roles=replace(raw.roles, columns={**raw.roles.columns, **paths}))
            check_present(known, ("query_id", "doc_ids", *(clicks or CLICKS[:1])))
        for role, column in found.items():
            if column.element and kind_of(raw.source.types[column.column]) != "list":
                raise InputError(
                    f"{raw.source}, column {column.column!r}: found {column.element} values, expected a list for "
                    f"{role}, because doc_ids is one."
                )
        if len(clicks) > 1:
            raise InputError(
                f"{raw.source}: has {' and '.join(clicks)}. Expected one of them; rename or drop the others."
            )
        check_context(raw)

    def _places(self, raw: Part) -> str:
        """SQL for the positions of the documents."""
        lists = _lists(raw)
        if "positions" in lists:
            return f"TRY_CAST({lists['positions'].sql} AS BIGINT[])"
        return f"range(1, len({lists['doc_ids'].sql}) + 1)"

    def _flags(self, raw: Part) -> str:
        """SQL for whether each document was clicked."""
        lists = _lists(raw)
        docs = lists["doc_ids"].sql
        if "clicked_ids" in lists:
            return f"list_transform({docs}, lambda d: list_contains({_some(lists['clicked_ids'].sql)}, d))"
        if "clicked_positions" in lists:
            clicked = _some(f"TRY_CAST({lists['clicked_positions'].sql} AS BIGINT[])")
            return f"list_transform({self._places(raw)}, lambda p: list_contains({clicked}, p))"
        return _booleans(lists["clicked"])

    def problems(self, part: Part) -> list[Problem]:
        """Of a list: the line, the query, and contradictions within the list."""
        query = part.column("query_id")
        return [
            *part.source.line_problems({"query_id": query}),
            Problem(query, f"{name(query)} IS NULL", "query_id is missing"),
            *self._list_problems(part),
        ]

    def _list_problems(self, part: Part) -> list[Problem]:
        lists = _lists(part)
        documents = lists["doc_ids"]
        docs, column, places = documents.sql, documents.column, self._places(part)
        problems = [Problem(column, f"{docs} IS NULL", "doc_ids is not a list; in CSV it is a list in JSON")]
        if documents.parsed:
            odd = f"list_transform({docs}, lambda d: regexp_matches(d, '{ODD_ELEMENT}', 's'))"
            reason = "doc_ids has a document that is neither text nor a whole number"
            problems.append(Problem(column, f"coalesce(list_bool_or({odd}), FALSE)", reason))
        if "positions" in lists:
            at = lists["positions"].column
            differs = f"len({places}) IS DISTINCT FROM len({docs})"
            bad = f"list_count({places}) <> len({places}) OR coalesce(list_min({places}), 1) < 1"
            problems.append(Problem(at, differs, "positions and doc_ids have different lengths"))
            problems.append(Problem(at, bad, "positions has a value that is not a whole number from 1 on"))
        if "clicked" in lists:
            at = lists["clicked"].column
            differs = f"len({lists['clicked'].sql}) IS DISTINCT FROM len({docs})"
            problems.append(Problem(at, differs, "clicked and doc_ids have different lengths"))
            problems.append(Problem(at, _not_flags(lists["clicked"]), "clicked has a value that is neither 0 nor 1"))
            return [*problems, self._click_in_a_hole(part, at)]
        role = "clicked_ids" if "clicked_ids" in lists else "clicked_positions"
        among, of = (docs, "doc_ids") if role == "clicked_ids" else (places, "the list's positions")
        given = lists[role].sql if role == "clicked_ids" else f"TRY_CAST({lists[role].sql} AS BIGINT[])"
        at, clicked = lists[role].column, _some(given)
        unreadable = f"{name(at)} IS NOT NULL AND {lists[role].sql} IS NULL"
        hits = f"len(list_filter({among}, lambda x: list_contains({clicked}, x)))"
        wanted = f"len(list_distinct({clicked}))"
        return [
            *problems,
            Problem(at, unreadable, f"{role} is not a list; in CSV it is a list in JSON"),
            Problem(at, f"{hits} < {wanted}", f"{role} has a value that is not in {of}"),
            Problem(at, f"{hits} > {wanted}", f"a clicked document is in doc_ids twice, so {role} does not say which"),
            self._click_in_a_hole(part, at),
        ]

    def _click_in_a_hole(self, part: Part, column: str) -> Problem:
        docs = _lists(part)["doc_ids"].sql
        clicked = f"({docs})[i] IS NULL AND CAST(({self._flags(part)})[i] AS INTEGER) = 1"
        found = f"list_bool_or(list_transform(range(1, len({docs}) + 1), lambda i: {clicked}))"
        bad = f"CASE WHEN list_count({docs}) <> len({docs}) THEN coalesce({found}, FALSE) ELSE FALSE END"
        return Problem(column, bad, "a place without a document was clicked")


# Elements of JSON that became text although they are no ids.
ODD_ELEMENT = r"^(\{.*\}|\[.*\]|true|false|-?[0-9]+[.eE][-+.eE0-9]*)$"


def _lists(part: Part) -> dict[str, ListColumn]:
    """The list columns of a part, by role."""
    found = {role: list_column(part.source, part.column(role)) for role in ("doc_ids", "positions", *CLICKS)}
    return {role: column for role, column in found.items() if column is not None}


def _some(clicked: str) -> str:
    """SQL for the clicks of a list; none where the value is missing."""
    return f"coalesce({clicked}, [])"


def _booleans(clicked: ListColumn) -> str:
    """SQL for a list of clicks: integers and truth values as they are, others as truth values or NULL."""
    if kind_of(clicked.element) in ("integer", "boolean"):
        return clicked.sql
    yes = "CAST(c AS VARCHAR) IN ('1', 'true', '1.0')"
    no = "CAST(c AS VARCHAR) IN ('0', 'false', '0.0')"
    return f"list_transform({clicked.sql}, lambda c: CASE WHEN {yes} THEN TRUE WHEN {no} THEN FALSE END)"


def _not_flags(clicked: ListColumn) -> str:
    """SQL for whether a list of clicks has a value that is neither 0 nor 1."""
    flags = _booleans(clicked)
    bad = f"list_count({flags}) <> len({flags})"
    if kind_of(clicked.element) == "integer":
        bad += f" OR coalesce(list_min({flags}), 0) < 0 OR coalesce(list_max({flags}), 0) > 1"
    return bad
