"""How texts, names and numbers are written in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


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


def aliases(keys: Sequence[str]) -> list[str]:
    """Names of ours for columns: a context column may be called documents, n or prior_1.

    >>> aliases(["position", "device"])
    ['k0', 'k1']
    """
    return [f"k{i}" for i in range(len(keys))]


def aliased(keys: Sequence[str]) -> str:
    """Columns under names of ours.

    >>> print(aliased(["position", "device"]))
    "position" AS k0, "device" AS k1
    """
    return listed(f"{name(key)} AS {alias}" for key, alias in zip(keys, aliases(keys), strict=True))
