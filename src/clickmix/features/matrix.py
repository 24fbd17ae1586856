"""Checks of a matrix of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import InputError
from clickmix.features.normalisation import chunks


def check_features(
    features: Any, *, name: str, width: int | None = None, gaps: bool | NDArray[np.bool_] = False
) -> int:
    """How many documents a matrix has; raises unless its numbers are finite, and `width` fits if given.

    NaN, a missing value, is allowed where `gaps` is True: everywhere, or in some columns.
    """
    features = np.asarray(features)
    if features.ndim != 2 or features.dtype.kind not in "fiub":
        raise InputError(
            f"{name}: the features are an array of shape {features.shape} and type {features.dtype}. "
            "Pass a matrix of numbers, one row per document."
        )
    if width is not None and features.shape[1] != width:
        raise InputError(
            f"{name}: {features.shape[1]} features, but the ranker was trained on {width}. Use the same features."
        )
    if features.shape[1] == 0:
        raise InputError(f"{name}: no features. Expected at least one per document.")
    for rows in chunks(len(features)):
        part = features[rows]
        wrong = ~((np.abs(part) <= np.finfo(np.float32).max) | (np.isnan(part) & gaps))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            place = f"{name}, row {rows.start + row + 1}, column {column + 1}"
            if np.isnan(part[row, column]) and gaps is not False:
                raise InputError(
                    f"{place}: the value is missing, but this feature was never missing in training (rows and columns "
                    "count from 1). Fill the gap, or train with gaps in this feature."
                )
            raise InputError(
                f"{place}: the feature is {part[row, column]} (rows and columns count from 1). "
                "Expected a finite number of single precision; fill gaps first."
            )
    return len(features)


def columns_with_gaps(features: NDArray[Any]) -> NDArray[np.bool_]:
    """Which columns have missing values."""
    found = np.zeros(features.shape[1], bool)
    for rows in chunks(len(features)):
        found |= np.isnan(features[rows]).any(axis=0)
    return found
