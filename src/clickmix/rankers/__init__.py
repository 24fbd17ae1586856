"""Rankers: labels and features in, scores out.

`make_examples(features, labels)` joins them by query and document. Settings (`LambdaMART`, `DNN`) have
`fit(examples, *, vali=None, seed=0, progress=None)`, which gives a trained ranker; that has `score(features)`, one
number per row of a matrix, and `save(folder)`; `load_ranker(folder)` brings it back.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clickmix.rankers.folder import check_folder, ranker_kind
from clickmix.rankers.lambdamart import FittedLambdaMART, LambdaMART

__all__ = [
    "FittedLambdaMART",
    "LambdaMART",
    "Ranker",
    "check_folder",
    "load_ranker",
]


class Ranker(Protocol):
    """A trained ranker, of whatever kind."""

    @property
    def features(self) -> int:
        """How many features a document has."""

    def score(self, features: NDArray[np.floating]) -> NDArray[np.float64]:
        """One score per document (a row of the matrix), higher is better."""

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load_ranker` reads."""


def load_ranker(folder: str | Path) -> Ranker:
    """The ranker in a folder, of whatever kind it is."""
    if ranker_kind(folder) == "lambdamart":
        return FittedLambdaMART.load(folder)
    dnn = importlib.import_module("clickmix.rankers.dnn")  # late: torch takes its time
    ranker: Ranker = dnn.FittedDNN.load(folder)
    return ranker
