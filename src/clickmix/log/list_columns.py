"""The list columns of a log as SQL of its engine: documents, places, clicks, and what can be wrong with them.   lists

The engine's `ListSql` knows how the engine writes lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import duckdb

from clickmix.engines.sql import ListSql, listed
from clickmix.errors import EngineError, InputError
from clickmix.log.json_lines import ODD_ID
from clickmix.log.layout import Part
from clickmix.log.open import ListPath, list_kind, list_path
from clickmix.log.refused import BadValue
from clickmix.log.source import kind_of

if TYPE_CHECKING:
    from clickmix.engines.engine import Engine

CLICKS = ("clicked", "clicked_ids", "clicked_positions")
ROLES = ("doc_ids", "positions", *CLICKS)
EXPECTED: Mapping[str, tuple[str, ...]] = {
    "doc_ids": ("text", "integer"),
    "positions": ("text", "integer", "real"),
    "clicked": ("text", "integer", "real", "boolean"),
    "clicked_ids": ("text", "integer"),
    "clicked_positions": ("text", "integer", "real"),
}


def list_paths(part: Part) -> dict[str, ListPath]:
    """Where the lists of a part are, by role."""
    found = {role: list_path(part.source, part.column(role)) for role in ROLES}
    return {role: path for role, path in found.items() if path is not None}


@dataclass(frozen=True)
class ListColumns:
    """The lists of a log: the column that holds each, SQL for it, and the type of its elements, by role."""

    sql: ListSql
    columns: Mapping[str, str]
    lists: Mapping[str, str]
    elements: Mapping[str, str]
    parsed: bool  # whether documents are parsed from JSON text
    embedded: bool

    @classmethod
    def of(cls, part: Part, engine: Engine) -> ListColumns:
        """The lists of a part; raises if they are not lists of values."""
        source, sql = part.source, engine.list_sql
        paths, lists = list_paths(part), {}
        for role, path in paths.items():
            found = sql.at_path(path.column, list_kind(source, path.column), path.inside, path.after)
            if found is None:
                raise InputError(
                    f"{source}, column {path.column!r}: found {source.types[path.column]} values, which this engine "
                    f"cannot read as lists for {role}. Create a view with a column of arrays, and use that."
                )
            lists[role] = found
        columns = {role: path.column for role, path in paths.items()}
        select = f"SELECT {listed(f'{value} AS {role}' for role, value in lists.items())} FROM {source.table()}"
        try:
            types = engine.types(f"({select})" if engine.embedded else engine.view(select))
        except (duckdb.Error, EngineError) as error:
            named = ", ".join(f"column {column!r}" for column in columns.values())
            reason = str(error).splitlines()[0]
            raise InputError(f"{source}, {named}: cannot be read as result lists: {reason}") from None
        for role, type in types.items():
            if not type.endswith("[]"):
                raise InputError(
                    f"{source}, column {columns[role]!r}: found {type} values, expected a list for {role}, because "
                    "doc_ids is one."
                )
        elements = {role: type.removesuffix("[]") for role, type in types.items()}
        for role, type in elements.items():
            if kind_of(type) not in EXPECTED[role]:
                raise InputError(
                    f"{source}, column {columns[role]!r}: found lists of {type}, expected lists of "
                    f"{'text or whole numbers' if role.endswith('ids') else 'whole numbers'} for {role}."
                )
        is_json = list_kind(source, columns["doc_ids"]) == "text"
        return cls(sql, columns, lists, elements, is_json, engine.embedded is not None)

    @property
    def own_places(self) -> bool:
        """Whether lists say at which positions their documents were."""
        return "positions" in self.lists

    @property
    def documents(self) -> str:
        """SQL for the documents."""
        return self.lists["doc_ids"]

    @property
    def places(self) -> str:
        """SQL for the positions that lists give."""
        return self._integers("positions")

    @cached_property
    def clicks(self) -> str:
        """The role of the clicks."""
        return next(role for role in CLICKS if role in self.lists)

    @cached_property
    def flags(self) -> str:
        """SQL for whether each document was clicked."""
        sql, documents = self.sql, self.documents
        if self.clicks == "clicked":
            return self._truths()
        if self.clicks == "clicked_positions":
            among = self._clicked
            if self.own_places:
                return sql.each(self.places, lambda e, _: sql.contains(among, e))
            return sql.each(documents, lambda _, i: sql.contains(among, i))
        among = self._clicked
        hits = sql.each(documents, lambda e, _: sql.contains(among, e))
        # If a document is in a list twice, the click counts at its first place.
        first = sql.each(documents, lambda e, i: f"{sql.contains(among, e)} AND {sql.place(documents, e)} = {i}")
        return f"CASE WHEN {self._hits(hits)} > {sql.different(among)} THEN {first} ELSE {hits} END"

    @property
    def _clicked(self) -> str:
        """SQL for the documents or positions that were clicked; an empty list if the value is missing."""
        role = self.clicks
        return self.sql.or_empty(self.lists[role] if role == "clicked_ids" else self._integers(role))

    def _hits(self, flags: str) -> str:
        """SQL for the number of true elements in a list."""
        return self.sql.known(self.sql.each(flags, lambda e, _: f"CASE WHEN {e} THEN 1 END"))

    def _integers(self, role: str) -> str:
        """SQL for a list as integers; other elements are NULL."""
        values, kind = self.lists[role], kind_of(self.elements[role])
        if kind == "integer":
            return values
        if kind == "text":
            return self.sql.each(values, lambda e, _: self.sql.whole(e))
        whole = "CASE WHEN {0} = floor({0}) AND abs({0}) < 9007199254740992 THEN CAST({0} AS BIGINT) END"
        return self.sql.each(values, lambda e, _: whole.format(e))

    def _truths(self) -> str:
        """SQL for a list of clicks: integers and truth values as they are, others as truth values or NULL."""
        kind = kind_of(self.elements["clicked"])
        if kind in ("integer", "boolean"):
            return self.lists["clicked"]
        yes, no = ("lower({0}) IN ('1', 'true', '1.0')", "lower({0}) IN ('0', 'false', '0.0')")
        if kind != "text":
            yes, no = "{0} = 1", "{0} = 0"
        truth = f"CASE WHEN {yes} THEN TRUE WHEN {no} THEN FALSE END"
        return self.sql.each(self.lists["clicked"], lambda e, _: truth.format(e))

    @property
    def bad(self) -> str:
        """SQL for whether a list contradicts itself."""
        return " OR ".join(f"coalesce({problem.bad}, TRUE)" for problem in self.problems() if not problem.decided)

    @property
    def odd(self) -> str:
        """SQL for whether a list has something decided to report."""
        found = [f"coalesce({problem.bad}, FALSE)" for problem in self.problems() if problem.decided]
        return " OR ".join(found) or "FALSE"

    def problems(self) -> list[BadValue]:
        """What can be wrong with a list, in the order of checking."""
        sql, docs, at = self.sql, self.documents, self.columns
        problems = [BadValue(at["doc_ids"], f"{docs} IS NULL", "doc_ids is not a list; in CSV it is a list in JSON")]
        if self.parsed and self.embedded:
            odd = sql.each(docs, lambda e, _: f"regexp_matches({e}, '{ODD_ID}', 's')")
            reason = "doc_ids has a document that is neither text nor a whole number"
            problems.append(BadValue(at["doc_ids"], f"coalesce({sql.contains(odd, 'TRUE')}, FALSE)", reason))
        if self.own_places:
            places = self.places
            differs = f"{sql.length(places)} IS DISTINCT FROM {sql.length(docs)}"
            below = f"{sql.known(places)} <> {sql.length(places)} OR coalesce({sql.least(places)}, 1) < 1"
            problems.append(BadValue(at["positions"], differs, "positions and doc_ids have different lengths"))
            reason = "positions has a value that is not a positive whole number"
            problems.append(BadValue(at["positions"], below, reason))
        clicked = {"clicked": self._flag_problems, "clicked_ids": self._id_problems}
        return [*problems, *clicked.get(self.clicks, self._place_problems)(), self._click_in_a_hole()]

    def _flag_problems(self) -> list[BadValue]:
        sql, at, flags = self.sql, self.columns["clicked"], self._truths()
        values = self.lists["clicked"]
        differs = f"{sql.length(values)} IS DISTINCT FROM {sql.length(self.documents)}"
        bad = f"{sql.known(flags)} <> {sql.length(flags)}"
        if kind_of(self.elements["clicked"]) == "integer":
            bad += f" OR coalesce({sql.least(flags)}, 0) < 0 OR coalesce({sql.most(flags)}, 0) > 1"
        return [
            BadValue(at, differs, "clicked and doc_ids have different lengths"),
            BadValue(at, bad, "clicked has a value that is neither 0 nor 1"),
        ]

    def _id_problems(self) -> list[BadValue]:
        sql, at, clicked = self.sql, self.columns["clicked_ids"], self._clicked
        hits = self._hits(sql.each(self.documents, lambda e, _: sql.contains(clicked, e)))
        wanted = sql.different(clicked)
        return [
            self._unreadable(),
            BadValue(
                at,
                f"{hits} < {wanted}",
                "with clicks on documents that are not in the list: those clicks are left out",
                True,
            ),
            BadValue(
                at, f"{hits} > {wanted}", "with a clicked document twice in the list: its first place counts", True
            ),
        ]

    def _place_problems(self) -> list[BadValue]:
        sql, at, clicked = self.sql, self.columns["clicked_positions"], self._clicked
        if self.own_places:
            hits = self._hits(sql.each(self.places, lambda e, _: sql.contains(clicked, e)))
            outside = f"{hits} < {sql.different(clicked)}"
        else:
            outside = (
                f"coalesce({sql.least(clicked)}, 1) < 1 OR coalesce({sql.most(clicked)}, 0) > "
                f"{sql.length(self.documents)}"
            )
        outside = f"{sql.known(clicked)} <> {sql.length(clicked)} OR {outside}"
        return [
            self._unreadable(),
            BadValue(at, outside, "clicked_positions has a value that is not in the list's positions"),
        ]

    def _unreadable(self) -> BadValue:
        column, role = self.columns[self.clicks], self.clicks
        bad = f"{self.sql.name(column)} IS NOT NULL AND {self.lists[role]} IS NULL"
        return BadValue(column, bad, f"{role} is not a list; in CSV it is a list in JSON")

    def _click_in_a_hole(self) -> BadValue:
        sql, docs = self.sql, self.documents
        is_whole = self.clicks == "clicked" and kind_of(self.elements["clicked"]) == "integer"
        hit = "{} = 1" if is_whole else "{}"
        clicked = sql.each(docs, lambda e, i: f"{e} IS NULL AND {hit.format(sql.at(self.flags, i))}")
        holes = f"{sql.known(docs)} <> {sql.length(docs)}"
        bad = f"CASE WHEN {holes} THEN coalesce({sql.contains(clicked, 'TRUE')}, FALSE) ELSE FALSE END"
        return BadValue(self.columns[self.clicks], bad, "a place without a document was clicked")
