"""Wording: counts with their nouns, as people write them."""

from __future__ import annotations


def several(count: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun.

    >>> several(1, "query", "queries"), several(2, "label")
    ('1 query', '2 labels')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
