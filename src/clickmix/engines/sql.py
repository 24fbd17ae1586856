"""SQL that is the same in every engine: texts, names, columns; and the protocol of what differs: lists in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from clickmix.errors import InputError


def literal(text: str) -> str:
    """A text as SQL writes it.

    >>> print(literal("it's"))
    'it''s'
    """
    return "'" + checked_text(text).replace("'", "''") + "'"


def name(text: str) -> str:
    """A column's or table's name as SQL writes it.

    >>> print(name("query id"))
    "query id"
    """
    return '"' + checked_text(text).replace('"', '""') + '"'


def checked_text(text: str) -> str:
    """The text itself; refuse a name that is not UTF-8, which a file can have but SQL cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r}: this name is not UTF-8 text, which engines need. Rename the file.") from None
    return text


def listed(parts: Iterable[str]) -> str:
    """Expressions, separated by commas.

    >>> print(listed(["a", "b"]))
    a, b
    """
    return ", ".join(parts)


def aliases(keys: Sequence[str]) -> list[str]:
    """Safe names for columns: a context column may be called documents, n or prior_1.

    >>> aliases(["position", "device"])
    ['k0', 'k1']
    """
    return [f"k{i}" for i in range(len(keys))]


def aliased(keys: Sequence[str]) -> str:
    """Columns, selected under their safe names.

    >>> print(aliased(["position", "device"]))
    "position" AS k0, "device" AS k1
    """
    return listed(f"{name(key)} AS {alias}" for key, alias in zip(keys, aliases(keys), strict=True))


# SQL for an element of a list and for its place, from 1 -> SQL made of them.
OfElement = Callable[[str, str], str]


class ListSql(Protocol):
    """SQL expressions over lists, in the engine's dialect; of NULL, every expression is NULL.

    Engines repeat these docstrings only to add something.
    """

    @property
    def nothing(self) -> str:
        """A list of one NULL."""

    def name(self, column: str) -> str:
        """A column's name."""

    def at_path(self, column: str, kind: str, inside: Sequence[str], after: Sequence[str]) -> str | None:
        """The list that a path names: fields `inside` the column, and those `after` each element.

        `kind` is text (the list is JSON), list, or other. None if the engine cannot reach it.
        """

    def length(self, values: str) -> str:
        """How many elements a list has."""

    def known(self, values: str) -> str:
        """How many of them are not NULL."""

    def different(self, values: str) -> str:
        """How many different ones there are, without NULL."""

    def least(self, values: str) -> str:
        """The least element."""

    def most(self, values: str) -> str:
        """The largest element."""

    def contains(self, values: str, value: str) -> str:
        """Whether a value is an element."""

    def place(self, values: str, value: str) -> str:
        """The first place of a value, from 1."""

    def at(self, values: str, place: str) -> str:
        """The element at a place, from 1; NULL if there is none."""

    def each(self, values: str, made: OfElement) -> str:
        """A list with `made` of each element."""

    def whole(self, text: str) -> str:
        """A text as an integer, NULL if it is not one."""

    def or_empty(self, values: str) -> str:
        """The list, empty if it is missing."""

    def one_more(self, values: str) -> str:
        """The list with a NULL behind it."""

    def unfolded(self, table: str, kept: Sequence[str], *, places: bool) -> str:
        """A SELECT with a row per element: the `kept` columns, d of docs, c of flags, p of places or its own place."""
