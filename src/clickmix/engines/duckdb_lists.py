"""DuckDB's SQL for list columns."""

from __future__ import annotations

from collections.abc import Sequence

from clickmix.engines.sql import OfElement, listed, literal, name


class DuckDBLists:
    """`ListSql` of DuckDB: lists, and JSON text."""

    nothing = "[NULL]"

    def name(self, column: str) -> str:
        return name(column)

    def at_path(self, column: str, kind: str, inside: Sequence[str], after: Sequence[str]) -> str | None:
        """Fields of structs, or pointers into JSON."""
        if kind == "text":
            value = f"TRY_CAST({name(column)} AS JSON)"
            value = f"json_extract({value}, {_pointer(inside)})" if inside else value
            element = f"json_extract_string(e, {_pointer(after) if after else literal('$')})"
            return f"list_transform(TRY_CAST({value} AS JSON[]), lambda e: {element})"
        value = ".".join(name(part) for part in (column, *inside))
        if not after:
            return value
        return f"list_transform({value}, lambda e: {'.'.join(['e', *map(name, after)])})"

    def length(self, values: str) -> str:
        return f"len({values})"

    def known(self, values: str) -> str:
        return f"list_count({values})"

    def different(self, values: str) -> str:
        return f"list_unique({values})"

    def least(self, values: str) -> str:
        return f"list_min({values})"

    def most(self, values: str) -> str:
        return f"list_max({values})"

    def contains(self, values: str, value: str) -> str:
        return f"list_contains({values}, {value})"

    def place(self, values: str, value: str) -> str:
        return f"list_position({values}, {value})"

    def at(self, values: str, place: str) -> str:
        return f"list_extract({values}, {place})"

    def each(self, values: str, made: OfElement) -> str:
        """A list with `made` of each element; places are counted only if `made` uses them."""
        expression = made("e", "i")
        return f"list_transform({values}, lambda {'e, i' if made('e', '') != expression else 'e'}: {expression})"

    def whole(self, text: str) -> str:
        return f"TRY_CAST({text} AS BIGINT)"

    def or_empty(self, values: str) -> str:
        return f"coalesce({values}, [])"

    def one_more(self, values: str) -> str:
        return f"list_append({values}, NULL)"

    def unfolded(self, table: str, kept: Sequence[str], *, places: bool) -> str:
        """Unnest lists in the same SELECT, which go side by side."""
        place = "unnest(places)" if places else "generate_subscripts(docs, 1)"
        return f"SELECT {listed(kept)}, unnest(docs) AS d, {place} AS p, unnest(flags) AS c FROM {table}"


def _pointer(fields: Sequence[str]) -> str:
    return literal("".join(f"/{field.replace('~', '~0').replace('/', '~1')}" for field in fields))
