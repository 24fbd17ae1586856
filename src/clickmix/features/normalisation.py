"""Normalisation: raw features in, features of similar size out; fitted to the training documents only.

z = sign(x) log(1 + |x|), which tames the heavy tails of counts and lengths, then (z - mean) / deviation, cut at ±10. A
feature that is constant in training has deviation 0 and becomes 0 for any value: nothing was learned about it. A
missing value also becomes 0, the mean of those present in training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST = 10.0  # deviations: one outlier must not decide alone
ROWS_AT_ONCE = 65_536  # limits the memory beyond the matrices themselves


@dataclass(frozen=True)
class Normalisation:
    """Mean and standard deviation of z, one of each per feature."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.mean.setflags(write=False)
        self.deviation.setflags(write=False)

    @classmethod
    def fit(cls, features: NDArray[np.float32]) -> Normalisation:
        """Fit to these documents, at least one. Missing values are left out."""
        # Sum differences to a pivot: squares of large numbers would swallow small differences.
        pivot = _tamed(_first_present(features))
        total, squares, present = np.zeros_like(pivot), np.zeros_like(pivot), np.zeros(len(pivot), np.int64)
        for rows in chunks(len(features)):
            z = _tamed(features[rows]) - pivot
            missing = np.isnan(z)
            z[missing] = 0
            total += z.sum(axis=0)
            squares += (z * z).sum(axis=0)
            present += (~missing).sum(axis=0)
        number = np.maximum(present, 1)
        mean = total / number
        # If every document has the pivot's value, both sums are exactly 0, and so is the deviation.
        return cls(pivot + mean, np.sqrt(np.maximum(squares / number - mean * mean, 0)))

    def apply(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """The features, normalised, as a new matrix without missing values."""
        normal = np.empty(features.shape, np.float32)
        scale = np.divide(1, self.deviation, out=np.zeros_like(self.deviation), where=self.deviation > 0)
        for rows in chunks(len(features)):
            normal[rows] = np.clip((_tamed(features[rows]) - self.mean) * scale, -LARGEST, LARGEST)
        normal[np.isnan(normal)] = 0
        return normal


def chunks(rows: int) -> Iterator[slice]:
    """Slices that cover all rows."""
    return (slice(start, start + ROWS_AT_ONCE) for start in range(0, rows, ROWS_AT_ONCE))


def _first_present(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """The first value of each feature that is not missing, 0 if all are."""
    first: NDArray[np.float32] = np.array(features[0])
    for column in np.flatnonzero(np.isnan(first)):
        present = features[:, column][~np.isnan(features[:, column])]
        first[column] = present[0] if len(present) else 0
    return first


def _tamed(features: NDArray[np.float32]) -> NDArray[np.float64]:
    x = features.astype(np.float64)
    z: NDArray[np.float64] = np.copysign(np.log1p(np.abs(x)), x)
    return z
