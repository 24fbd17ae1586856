"""Texts, names and lists as SQL writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    """The text itself. A name that is not UTF-8 is refused: file names can be so, SQL cannot."""
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
