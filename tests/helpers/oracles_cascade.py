"""The slow way to lists and patterns: one session, one list, one position at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def pages_of(table: Mapping[str, list[Any]]) -> dict[tuple[Any, Any], list[tuple[int, Any, int]]]:
    """(query, session) -> its rows (position, document, clicked)."""
    pages: dict[tuple[Any, Any], list[tuple[int, Any, int]]] = defaultdict(list)
    columns = (table[key] for key in ("query_id", "session_id", "position", "doc_id", "clicked"))
    for query, session, position, document, clicked in zip(*columns, strict=True):
        pages[query, session].append((position, document, clicked))
    return pages


def list_counts_slowly(table: Mapping[str, list[Any]]) -> list[tuple[Any, ...]]:
    """Sorted (query, the list's sorted contents, position, document, impressions, clicks)."""
    impressions, clicks = Counter[Any](), Counter[Any]()
    for (query, _), rows in pages_of(table).items():
        page = tuple(sorted({(position, document) for position, document, _ in rows}))
        for position, document, clicked in rows:
            impressions[query, page, position, document] += 1
            clicks[query, page, position, document] += clicked
    return sorted((*cell, impressions[cell], clicks[cell]) for cell in impressions)


def cells_slowly(
    table: Mapping[str, list[Any]], digit: Callable[[Any, int], int], groups: Mapping[int, Callable[[str], str]]
) -> list[tuple[Any, ...]]:
    """Sorted (query, document, position walked, group above, impressions, clicks).

    `groups` has the rule of each position walked, pattern -> group; positions in between belong to the one before.
    `digit` is that of a document when its position was walked.
    """
    walked = sorted(groups)
    impressions, clicks = Counter[Any](), Counter[Any]()
    for (query, _), rows in pages_of(table).items():
        for position, document, clicked in rows:
            here = _walked(position, walked)
            above = [[digit(d, w) for p, d, _ in rows if _walked(p, walked) == w] for w in walked[: walked.index(here)]]
            pattern = "".join(str(max(digits, default=0)) for digits in above)
            cell = (query, document, here, groups[here](pattern))
            impressions[cell] += 1
            clicks[cell] += clicked
    return sorted((*cell, impressions[cell], clicks[cell]) for cell in impressions)


def _walked(position: int, walked: Sequence[int]) -> int:
    return max((w for w in walked if w <= position), default=walked[0])
