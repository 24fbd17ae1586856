"""Places: a position, crossed with the context columns. Which of them share a group, and which is nearest.

counts -> groups -> mixtures. Under the position-based model each place is its own group. A place with too few documents
to fit joins a neighbour.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from clickmix.counts.counts import Counts
from clickmix.engines.sql import aliases, listed
from clickmix.errors import InputError
from clickmix.types import Ints

SMALLEST_GROUP = 30  # documents
MOST_PLACES = 50_000  # each takes some kilobytes


class Place(NamedTuple):
    """A position within a context."""

    position: int
    context: tuple[str, ...] = ()

    def describe(self, context_names: Sequence[str]) -> str:
        """The place in words.

        >>> Place(3, ("mobile",)).describe(["device"])
        'position 3, device mobile'
        """
        parts = [f"{key} {value or '(none)'}" for key, value in zip(context_names, self.context, strict=True)]
        return ", ".join([f"position {self.position}", *parts])


def read_places(counts: Counts) -> tuple[Place, ...]:
    """All places of a log, in order."""
    keys = listed(aliases(counts.keys))
    columns = counts.engine.fetch(f"SELECT DISTINCT {keys} FROM {counts.histogram} ORDER BY {keys}")
    return places_of(columns, counts.context)[0]


def join_small(places: Sequence[Place], documents: Sequence[int], *, smallest: int = SMALLEST_GROUP) -> list[int]:
    """The group of each place. A place with fewer than `smallest` documents joins a neighbour:

    1. a context whose positions together have too few documents is treated as the context with the most;
    2. from the last position up, a small place joins the one above it in the same context;
    3. a first position that is still too small joins the one below.

    >>> join_small([Place(1), Place(2), Place(3)], [90, 40, 3], smallest=10)
    [0, 1, 1]
    >>> join_small([Place(1), Place(2), Place(3)], [3, 40, 90], smallest=10)
    [0, 0, 1]
    >>> contexts = ["desktop", "mobile", "tablet"]
    >>> join_small([Place(1, (c,)) for c in contexts], [40, 90, 3], smallest=10)
    [0, 1, 1]
    """
    contexts = _readable_contexts(places, documents, smallest)
    sizes: dict[tuple[str, ...], Counter[int]] = {context: Counter() for context in sorted(set(contexts.values()))}
    for place, count in zip(places, documents, strict=True):
        sizes[contexts[place.context]][place.position] += int(count)
    joined: dict[tuple[tuple[str, ...], int], int] = {}
    groups = 0
    for context, of_context in sizes.items():
        positions = sorted(of_context)
        blocks = _blocks([of_context[position] for position in positions], smallest)
        joined |= {(context, position): groups + block for position, block in zip(positions, blocks, strict=True)}
        groups += max(blocks) + 1
    return [joined[contexts[place.context], place.position] for place in places]


def _readable_contexts(
    places: Sequence[Place], documents: Sequence[int], smallest: int
) -> dict[tuple[str, ...], tuple[str, ...]]:
    totals: dict[tuple[str, ...], int] = {}
    for place, count in zip(places, documents, strict=True):
        totals[place.context] = totals.get(place.context, 0) + int(count)
    largest = max(sorted(totals), key=lambda context: totals[context])
    return {context: context if total >= smallest else largest for context, total in totals.items()}


def _blocks(sizes: Sequence[int], smallest: int) -> list[int]:
    """The block of each position: from the last one up, positions collect until they have enough documents."""
    merged: list[list[int]] = []
    waiting: list[int] = []
    for i in reversed(range(len(sizes))):
        waiting.insert(0, i)
        if sum(sizes[j] for j in waiting) >= smallest:
            merged.insert(0, waiting)
            waiting = []
    if waiting:
        merged[:1] = [waiting + (merged[0] if merged else [])]
    return [block for block, members in enumerate(merged) for _ in members]


def nearest(place: Place, among: Sequence[Place]) -> int:
    """The index of the place that stands in for another: same context if possible, then the nearest position.

    >>> nearest(Place(9), [Place(1), Place(5), Place(20)])
    1
    """

    def distance(i: int) -> tuple[bool, int, int, tuple[str, ...]]:
        other = among[i]
        off = abs(other.position - place.position)
        return other.context != place.context, off, other.position, other.context

    return min(range(len(among)), key=distance)


def nearest_changes(places: Iterable[Place]) -> list[int]:
    """Positions at which the nearest known position changes, in any context; the first is 1.

    >>> nearest_changes([Place(1), Place(2), Place(9)])
    [1, 2, 6]
    """
    positions: dict[tuple[str, ...], set[int]] = {}
    for place in places:
        positions.setdefault(place.context, set()).add(place.position)
    pairs = (pair for known in positions.values() for pair in itertools.pairwise(sorted(known)))
    return sorted({1, *((above + below) // 2 + 1 for above, below in pairs)})  # a tie goes to the upper position


def places_of(columns: dict[str, Ints], context: Sequence[str]) -> tuple[tuple[Place, ...], Ints]:
    """The distinct places in columns k0, k1, ..., in order, and the place of each row."""
    position, *keys = (columns[alias] for alias in aliases(["position", *context]))
    codes = np.unique(position, return_inverse=True)[1]
    for key in keys:  # as objects: numpy's text type drops a trailing NUL
        values, code = np.unique(key.astype(object), return_inverse=True)
        codes = np.unique(codes * len(values) + code, return_inverse=True)[1]
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    if len(first) > MOST_PLACES:
        raise InputError(_too_many(len(first), len(np.unique(position)), context))
    contexts = zip(*(key[first] for key in keys), strict=True) if keys else ((),) * len(first)
    return tuple(
        Place(int(at), tuple(map(str, values))) for at, values in zip(position[first], contexts, strict=True)
    ), place.ravel()


def _too_many(places: int, positions: int, context: Sequence[str]) -> str:
    """What to do about more places than memory is meant for."""
    by_context = f" in {', '.join(context)}" if context else ""
    return (
        f"the log has {places:,} places ({positions:,} positions{by_context}), more than {MOST_PLACES:,}. "
        f"{'Leave the context out, or' if context else 'Check the position column, or'} take only the first positions."
    )
