"""PostgreSQL's SQL for list columns: arrays, and lists in JSON."""

from __future__ import annotations

from collections.abc import Sequence

from clickmix.engines.sql import OfElement, listed, literal, name

# Names that no column of a log has.
ELEMENT, PLACE = "clickmix_element", "clickmix_place"


class PostgresLists:
    """`ListSql` of PostgreSQL, which uses SELECTs over the elements of arrays instead of functions."""

    nothing = "'{NULL}'"

    def name(self, column: str) -> str:
        return name(column)

    def at_path(self, column: str, kind: str, inside: Sequence[str], after: Sequence[str]) -> str | None:
        """An array as it is; a list in json or jsonb as texts. Text that may not be JSON has no safe cast."""
        if kind == "list" and not inside and not after:
            return name(column)
        if kind != "other":
            return None
        value = f"(to_jsonb({name(column)}) #> {_path(inside)})"
        texts = (
            f"ARRAY(SELECT {ELEMENT} #>> {_path(after)} FROM jsonb_array_elements({value}) WITH ORDINALITY "
            f"AS elements ({ELEMENT}, {PLACE}) ORDER BY {PLACE})"
        )
        return f"CASE WHEN jsonb_typeof({value}) = 'array' THEN {texts} END"

    def length(self, values: str) -> str:
        return f"cardinality({values})"

    def known(self, values: str) -> str:
        return _over(f"count({ELEMENT})", values)

    def different(self, values: str) -> str:
        return _over(f"count(DISTINCT {ELEMENT})", values)

    def least(self, values: str) -> str:
        return _over(f"min({ELEMENT})", values)

    def most(self, values: str) -> str:
        return _over(f"max({ELEMENT})", values)

    def contains(self, values: str, value: str) -> str:
        return f"({value} = ANY ({values}))"

    def place(self, values: str, value: str) -> str:
        return f"array_position({values}, {value})"

    def at(self, values: str, place: str) -> str:
        return f"({values})[{place}]"

    def each(self, values: str, made: OfElement) -> str:
        elements = f"unnest({values}) WITH ORDINALITY AS elements ({ELEMENT}, {PLACE})"
        return f"ARRAY(SELECT {made(ELEMENT, PLACE)} FROM {elements} ORDER BY {PLACE})"

    def whole(self, text: str) -> str:
        return f"CASE WHEN {text} ~ '^-?[0-9]{{1,18}}$' THEN CAST({text} AS BIGINT) END"

    def or_empty(self, values: str) -> str:
        return f"coalesce({values}, '{{}}')"

    def one_more(self, values: str) -> str:
        return f"array_append({values}, NULL)"

    def unfolded(self, table: str, kept: Sequence[str], *, places: bool) -> str:
        """Unnest arrays side by side, with ordinality."""
        arrays, names = ("docs, flags, places", "d, c, p") if places else ("docs, flags", "d, c")
        place = "p" if places else PLACE
        return (
            f"SELECT {listed(kept)}, d, {place} AS p, c FROM {table} AS lists "
            f"CROSS JOIN LATERAL unnest({arrays}) WITH ORDINALITY AS elements ({names}, {PLACE})"
        )


def _over(aggregate: str, values: str) -> str:
    return f"(SELECT {aggregate} FROM unnest({values}) AS elements ({ELEMENT}))"


def _path(fields: Sequence[str]) -> str:
    """Fields as a path of PostgreSQL's operators on JSON."""
    return f"CAST(ARRAY[{listed(map(literal, fields))}] AS TEXT[])"
