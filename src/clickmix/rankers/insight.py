"""Insight into a ranker: which features it uses, and how scores depend on one of them.   ranker, features -> rows"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import SettingError
from clickmix.types import Floats

MOST_POINTS = 20  # points of a curve
MOST_DOCUMENTS = 500  # documents that each point averages over


@dataclass(frozen=True)
class Importance:
    """How much a feature helped in training: its gain, and its share of all gains.

    >>> Importance("bm25", gain=12.0, share=0.6).share
    0.6
    """

    name: str
    gain: float
    share: float


@dataclass(frozen=True)
class DependencePoint:
    """The mean score if a feature had this value in every document; NaN means that the feature is missing.

    >>> DependencePoint("bm25", value=float("nan"), score=0.2).missing
    True
    """

    name: str
    value: float
    score: float

    @property
    def missing(self) -> bool:
        """Whether this is the score without the feature."""
        return math.isnan(self.value)


def partial_dependence(
    score: Callable[[NDArray[np.float32]], Floats], features: NDArray[np.float32], *, names: Sequence[str], name: str
) -> tuple[DependencePoint, ...]:
    """How the mean score changes with one feature if all others stay.

    The values are quantiles of those in `features`, in rising order, and NaN at the end if some are missing. The mean
    is over up to MOST_DOCUMENTS documents, evenly spread over the rows.
    """
    if name not in names:
        raise SettingError(f"feature {name!r}: the ranker does not have it. Expected one of {', '.join(names[:8])}.")
    column = list(names).index(name)
    found = np.asarray(features)[:, column]
    present = found[~np.isnan(found)]
    points = [np.nan] if len(present) < len(found) else []
    if len(present):
        points = [*np.unique(np.quantile(present, np.linspace(0, 1, MOST_POINTS), method="nearest")), *points]
    rows = np.unique(np.linspace(0, len(found) - 1, min(MOST_DOCUMENTS, len(found))).astype(np.int64))
    varied = np.array(np.asarray(features)[rows], dtype=np.float32)
    scores = []
    for value in points:
        varied[:, column] = value
        scores.append(float(np.mean(score(varied))))
    return tuple(DependencePoint(name, float(value), mean) for value, mean in zip(points, scores, strict=True))
