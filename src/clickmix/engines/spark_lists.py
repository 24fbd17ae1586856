"""Spark's SQL for list columns."""

from __future__ import annotations

from collections.abc import Sequence

from clickmix.engines.sql import OfElement, checked_text, listed


class SparkLists:
    """`ListSql` of Spark: arrays, arrays of structs, and arrays in JSON text."""

    nothing = "array(NULL)"

    def name(self, column: str) -> str:
        return "`" + checked_text(column).replace("`", "``") + "`"

    def at_path(self, column: str, kind: str, inside: Sequence[str], after: Sequence[str]) -> str | None:
        """A field of an array of structs is an array of the field."""
        if kind == "text":
            return None if inside or after else f"from_json({self.name(column)}, 'array<string>')"
        return ".".join(map(self.name, (column, *inside, *after)))

    def length(self, values: str) -> str:
        return f"array_size({values})"

    def known(self, values: str) -> str:
        return f"array_size(array_compact({values}))"

    def different(self, values: str) -> str:
        return f"array_size(array_distinct(array_compact({values})))"

    def least(self, values: str) -> str:
        return f"array_min({values})"

    def most(self, values: str) -> str:
        return f"array_max({values})"

    def contains(self, values: str, value: str) -> str:
        return f"array_contains({values}, {value})"

    def place(self, values: str, value: str) -> str:
        return f"array_position({values}, {value})"

    def at(self, values: str, place: str) -> str:
        return f"try_element_at({values}, CAST({place} AS INT))"

    def each(self, values: str, made: OfElement) -> str:
        """An array with `made` of each element; Spark counts places from 0."""
        return f"transform({values}, (e, i) -> {made('e', '(i + 1)')})"

    def whole(self, text: str) -> str:
        return f"try_cast({text} AS BIGINT)"

    def or_empty(self, values: str) -> str:
        return f"coalesce({values}, array())"

    def one_more(self, values: str) -> str:
        return f"concat({values}, array(NULL))"

    def unfolded(self, table: str, kept: Sequence[str], *, places: bool) -> str:
        """Zip arrays and explode them, because Spark explodes only one."""
        zipped = f"arrays_zip(docs, flags{', places' if places else ''})"
        place = "e.places" if places else "CAST(i + 1 AS BIGINT)"
        return (
            f"SELECT {listed(kept)}, e.docs AS d, {place} AS p, e.flags AS c FROM {table} AS lists "
            f"LATERAL VIEW posexplode({zipped}) AS i, e"
        )
