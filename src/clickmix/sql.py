"""How texts, names and numbers are written in SQL."""

from __future__ import annotations

from collections.abc import Iterable


def literal(text: str) -> str:
    """A text as SQL writes it.

    >>> print(literal("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def name(text: str) -> str:
    """A column's or table's name as SQL writes it.

    >>> print(name("query id"))
    "query id"
    """
    return '"' + text.replace('"', '""') + '"'


def listed(parts: Iterable[str]) -> str:
    """Expressions one after the other.

    >>> print(listed(["a", "b"]))
    a, b
    """
    return ", ".join(parts)
