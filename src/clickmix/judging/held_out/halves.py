"""Whether two halves of a log give the same labels.   labels, cells -> Agreement

Documents seen in both halves are compared, each weighted by its impressions in the half where it has fewer: what people
see often matters most, and a document seen once in a half says little there. Labels of both halves follow the position,
so part of the correlation says only that documents stay where they are; `beyond_position` leaves the mean label of each
position out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.corrections.click_rates import PlacedCells
from clickmix.types import Floats


@dataclass(frozen=True)
class Agreement:
    """Labels of two halves: correlation, the same beyond position, mean absolute difference; over `documents`.

    A correlation is None where one half gives every document the same label.
    """

    documents: int
    correlation: float | None
    beyond_position: float | None
    difference: float


def agreement(one: Floats, other: Floats, first: PlacedCells, second: PlacedCells) -> Agreement | None:
    """How far the labels of two halves agree, an element per document; None where no document is in both."""
    seen, also = (cells.by_document(cells.impressions) for cells in (first, second))
    both = np.minimum(seen, also) > 0
    if not both.any():
        return None
    at, also_at = (cells.by_document(cells.impressions * cells.position) for cells in (first, second))
    place = np.unique(np.rint((at + also_at)[both] / (seen + also)[both]), return_inverse=True)[1]
    one, other, weight = one[both], other[both], np.minimum(seen, also)[both]
    shown = np.bincount(place, weight)
    one_beyond, other_beyond = (
        values - (np.bincount(place, weight * values) / shown)[place] for values in (one, other)
    )
    return Agreement(
        len(one),
        _correlation(one, other, weight),
        _correlation(one_beyond, other_beyond, weight),
        float(weight @ np.abs(one - other) / weight.sum()),
    )


def _correlation(a: Floats, b: Floats, weight: Floats) -> float | None:
    w = weight / weight.sum()
    a, b = a - w @ a, b - w @ b
    spread = float(np.sqrt((w @ a**2) * (w @ b**2)))
    return float(w @ (a * b)) / spread if spread > 1e-12 else None
