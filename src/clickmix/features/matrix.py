"""Features, as a matrix that came from anywhere -> the same, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickmix.errors import InputError
from clickmix.features.normalisation import chunks


def check_features(features: Any, *, name: str, width: int | None = None) -> tuple[int, int]:
    """Documents and features of a matrix of finite numbers, `width` wide where that is given."""
    features = np.asarray(features)
    if features.ndim != 2 or features.dtype.kind not in "fiub":
        raise InputError(
            f"{name}: the features are an array of shape {features.shape} and type {features.dtype}. "
            "Give a matrix of numbers, one row per document."
        )
    if width is not None and features.shape[1] != width:
        raise InputError(
            f"{name}: {features.shape[1]} features, but the ranker was trained on {width}. Give the same features."
        )
    if features.shape[1] == 0:
        raise InputError(f"{name}: no features. Give at least one per document.")
    for rows in chunks(len(features)):
        wrong = ~(np.abs(features[rows]) <= np.finfo(np.float32).max)  # NaN is not smaller than anything
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InputError(
                f"{name}, row {rows.start + row + 1}, column {column + 1}: the feature is {features[rows][row, column]}"
                " (rows and columns count from 1). Expected a finite number of single precision; fill gaps first."
            )
    return features.shape[0], features.shape[1]
