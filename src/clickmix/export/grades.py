"""Relevance -> grades of a scale, with the nearest gain.

A document that is relevant with probability p is worth p. For most tools, grade g of G is worth (2^g - 1) / (2^G - 1);
with a linear gain it is worth g / G. A relevance becomes the grade with the nearest worth.
"""

from __future__ import annotations

import itertools
from typing import Literal

from clickmix.errors import SettingError

Gain = Literal["exponential", "linear"]
SCALE = 3
LARGEST_SCALE = 30


def check_scale(scale: int) -> None:
    """Refuse a largest grade out of range."""
    if not 1 <= scale <= LARGEST_SCALE:
        raise SettingError(f"scale {scale}: expected the largest grade, a whole number from 1 to {LARGEST_SCALE}.")


def worths(scale: int, gain: Gain) -> list[float]:
    """The worth of grades 0, 1, ...

    >>> [round(worth, 3) for worth in worths(3, "exponential")]
    [0.0, 0.143, 0.429, 1.0]
    """
    if gain == "linear":
        return [grade / scale for grade in range(scale + 1)]
    return [(2**grade - 1) / (2**scale - 1) for grade in range(scale + 1)]


def cuts(scale: int, gain: Gain) -> list[float]:
    """Where grades 1, 2, ... begin: halfway between two worths.

    >>> [round(cut, 3) for cut in cuts(3, "exponential")]
    [0.071, 0.286, 0.714]
    """
    worth = worths(scale, gain)
    return [(low + high) / 2 for low, high in itertools.pairwise(worth)]


def grade_sql(scale: int, gain: Gain) -> str:
    """SQL for the grade of `relevance`.

    >>> grade_sql(1, "linear")
    'CASE WHEN relevance >= 0.5 THEN 1 ELSE 0 END'
    """
    begins = reversed(list(enumerate(cuts(scale, gain), start=1)))
    return f"CASE {' '.join(f'WHEN relevance >= {cut!r} THEN {grade}' for grade, cut in begins)} ELSE 0 END"
