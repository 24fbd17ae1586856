"""SQL for list columns, which every engine writes in its own way: what the layout of result lists asks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

# SQL of an element of a list and of its place, from 1 -> SQL made of them.
OfElement = Callable[[str, str], str]


class ListSql(Protocol):
    """SQL expressions over lists, in the engine's own dialect; whatever is asked of NULL is NULL."""

    @property
    def nothing(self) -> str:
        """A list of one NULL."""
        ...

    def name(self, column: str) -> str:
        """A column's name."""
        ...

    def at_path(self, column: str, kind: str, inside: Sequence[str], after: Sequence[str]) -> str | None:
        """The list that a path names: fields `inside` the column, and those `after` each element.

        `kind` is text (the list is JSON), list, or other. None if the engine has no way to it.
        """
        ...

    def length(self, values: str) -> str:
        """How many elements a list has."""
        ...

    def known(self, values: str) -> str:
        """How many of them are not NULL."""
        ...

    def different(self, values: str) -> str:
        """How many different ones there are, NULL aside."""
        ...

    def least(self, values: str) -> str:
        """The least element."""
        ...

    def most(self, values: str) -> str:
        """The largest element."""
        ...

    def contains(self, values: str, value: str) -> str:
        """Whether a value is an element."""
        ...

    def place(self, values: str, value: str) -> str:
        """The first place of a value, from 1."""
        ...

    def at(self, values: str, place: str) -> str:
        """The element at a place, from 1; NULL if there is none."""
        ...

    def each(self, values: str, made: OfElement) -> str:
        """A list with something made of each element."""
        ...

    def whole(self, text: str) -> str:
        """A text as an integer, NULL where it is none."""
        ...

    def or_empty(self, values: str) -> str:
        """The list, empty if it is missing."""
        ...

    def one_more(self, values: str) -> str:
        """The list with a NULL behind it."""
        ...

    def unfolded(self, table: str, kept: Sequence[str], *, places: bool) -> str:
        """A SELECT with a row per element: the `kept` columns, d of docs, c of flags, p of places or else its place."""
        ...
