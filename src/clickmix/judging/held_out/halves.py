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
    shown = [cells.by_document(cells.impressions) for cells in (first, second)]
    weight = np.minimum(*shown)
    if not weight.any():
        return None
    sums = sum(cells.by_document(cells.impressions * cells.position) for cells in (first, second))
    both = weight > 0
    place = np.unique(np.rint(sums[both] / (shown[0] + shown[1])[both]), return_inverse=True)[1]
    one, other, weight = one[both], other[both], weight[both]
    of_place = np.bincount(place, weight)
    beyond = [values - (np.bincount(place, weight * values) / of_place)[place] for values in (one, other)]
    return Agreement(
        len(one),
        _correlation(one, other, weight),
        _correlation(*beyond, weight),
        float(weight @ np.abs(one - other) / weight.sum()),
    )


def _correlation(a: Floats, b: Floats, weight: Floats) -> float | None:
    w = weight / weight.sum()
    a, b = a - w @ a, b - w @ b
    spread = float(np.sqrt((w @ a**2) * (w @ b**2)))
    return float(w @ (a * b)) / spread if spread > 1e-12 else None
