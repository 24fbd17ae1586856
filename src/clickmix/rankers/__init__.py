"""Rankers: labels and features in, scores out.

Settings (`LambdaMART`) have `fit(features, labels, *, vali=None, rng, progress=None)`, which gives a trained ranker; a
trained ranker has `score(split)`, one number per document, and `save(folder)`; `load_ranker(folder)` brings it back.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clickmix.datasets import Split
from clickmix.rankers.examples import Examples, LeftOut, grade_examples, make_examples
from clickmix.rankers.folder import KINDS, check_folder, read_folder
from clickmix.rankers.lambdamart import LambdaMART, LambdaMARTRanker

__all__ = [
    "KINDS",
    "Examples",
    "LambdaMART",
    "LambdaMARTRanker",
    "LeftOut",
    "Ranker",
    "check_folder",
    "grade_examples",
    "load_ranker",
    "make_examples",
]


class Ranker(Protocol):
    """A trained ranker: how many features it takes, what was left out of its training, scores, and a folder."""

    @property
    def features(self) -> int:
        """How many features a document must have."""

    @property
    def left_out(self) -> LeftOut:
        """What it was not trained on."""

    def score(self, split: Split) -> NDArray[np.float64]:
        """One score per document, higher is better."""

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load_ranker` reads."""


def load_ranker(folder: str | Path) -> Ranker:
    """The ranker in a folder, of whatever kind it is."""
    saved = read_folder(folder)
    if saved.ranker == "lambdamart":
        return LambdaMARTRanker.from_saved(saved)
    dnn = importlib.import_module("clickmix.rankers.dnn")  # late: torch takes its time
    ranker: Ranker = dnn.DNNRanker.from_saved(saved)
    return ranker
