"""Rankers: what every kind of ranker can do, and the family of kinds.   examples -> ranker -> scores

To add a ranker, write one file: a class of settings with `fit` and `restore`, registered in `RANKERS` under its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import FormatError
from clickmix.features.examples import Examples
from clickmix.rankers.folder import DOCUMENT, SavedRanker, read_folder
from clickmix.rankers.insight import DependencePoint, Importance
from clickmix.registry import Family
from clickmix.types import Progress


class Ranker(Protocol):
    """A trained ranker of any kind.

    >>> def best(ranker: Ranker, features: Floats) -> int:
    ...     return int(ranker.score(features).argmax())
    """

    @property
    def features(self) -> int:
        """How many features a document has."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features of the ranker, in its order."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The features that were missing for some documents in training, and can be missing again."""

    def score(self, features: NDArray[np.floating]) -> NDArray[np.float64]:
        """One score per document (a row of the matrix), higher is better."""

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load_ranker` reads."""

    def remarks(self) -> tuple[str, ...]:
        """What is worth knowing about the training, in sentences."""

    def partial_dependence(self, features: NDArray[np.float32], name: str) -> tuple[DependencePoint, ...]:
        """How the mean score of these documents changes with one feature."""

    def importance(self) -> tuple[Importance, ...]:
        """How much the ranker uses each feature, strongest first; empty if this kind of ranker cannot say."""


class RankerSettings(Protocol):
    """The settings of a kind of ranker, from which it is trained.

    >>> def trained(settings: RankerSettings, examples: Examples) -> Ranker:
    ...     return settings.fit(examples, seed=0)
    """

    def fit(
        self, examples: Examples, *, vali: Examples | None = None, seed: int = 0, progress: Progress | None = None
    ) -> Ranker:
        """Train; `vali` decides when to stop, `progress` is called with the share done."""

    def restore(self, saved: SavedRanker) -> Ranker:
        """The trained ranker of a folder, with the settings it was trained with."""


RANKERS: Family[RankerSettings] = Family("ranker", "clickmix.rankers", first="lambdamart")


def load_ranker(folder: str | Path) -> Ranker:
    """The ranker in a folder, of any kind.

    >>> import tempfile
    >>> import numpy as np
    >>> from clickmix.features import make_examples
    >>> from clickmix.rankers import LambdaMART
    >>> ids = [f"q{i // 5}" for i in range(100)], [f"d{i}" for i in range(100)]
    >>> relevance = np.tile([0.0, 0.2, 0.5, 0.7, 1.0], 20)
    >>> examples = make_examples((*ids, relevance[:, None]), (*ids, relevance))
    >>> folder = tempfile.TemporaryDirectory()
    >>> LambdaMART(trees=5, leaves=4).fit(examples).save(f"{folder.name}/ranker")
    >>> load_ranker(f"{folder.name}/ranker").feature_names
    ('feature_1',)
    >>> folder.cleanup()
    """
    saved = read_folder(folder)
    if saved.ranker not in RANKERS.names():
        raise FormatError(
            f"{Path(folder) / DOCUMENT}: found a ranker {saved.ranker!r}, expected one of {', '.join(RANKERS.names())}."
        )
    return RANKERS.make(saved.ranker).restore(saved)
