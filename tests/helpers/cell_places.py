"""The model's places of cells that are given one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickmix.mixtures.hierarchical import Places, join_places

Ints = np.ndarray[Any, Any]


def cell_places(position: Ints, context: Ints) -> tuple[Places, Ints]:
    """The places of a log's cells, small ones joined, and the place of each cell."""
    keys, cell, sizes = np.unique(np.stack([context, position]), axis=1, return_inverse=True, return_counts=True)
    places, joined = join_places(keys[1], keys[0], sizes)
    return places, joined[cell.ravel()]
