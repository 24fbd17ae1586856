"""Boosted trees as a regression, with LightGBM.   targets, features -> predicted relevance

Every iteration grows new trees. Keeping those of the last iteration would be wrong: trees that learned old targets stay
in the sum forever, and new ones must first undo them. Only LightGBM's table of binned features is kept: making it takes
as long as growing some trees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import SettingError, check_whole
from clickmix.lab.regressions.documents import DocumentFeatures, Probability, check_probability, find_features
from clickmix.lab.regressions.soft_min_max import cross_entropy_slope, soft_min_max
from clickmix.rankers.lambdamart import REPEATABLE, lightgbm_module
from clickmix.types import Floats


@dataclass(frozen=True)
class TreeRegression:
    """LambdaMART's trees, fitted to relevance by cross entropy. Defaults: the paper's ranker, with fewer trees."""

    features: Any = field(repr=False)
    probability: Probability = "sigmoid"
    trees: int = 100
    leaves: int = 31
    rate: float = 0.05
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_probability(self.probability)
        for name, least in (("trees", 1), ("leaves", 2), ("threads", 1)):
            check_whole(name, getattr(self, name), least=least)
        if not 0 < self.rate <= 1:
            raise SettingError(f"rate={self.rate!r}: expected a number above 0, up to 1.")

    def start(self, query_id: NDArray[Any], doc_id: NDArray[Any]) -> _Trees:
        """Find and bin the features of these documents."""
        documents = find_features(self.features, query_id, doc_id)
        data = lightgbm_module().Dataset(documents.features, np.zeros(len(documents.features)), free_raw_data=False)
        return _Trees(self, documents, data)


@dataclass(frozen=True)
class _Trees:
    settings: TreeRegression
    documents: DocumentFeatures
    data: Any

    def fit(self, target: Floats, weight: Floats) -> Floats:
        """Grow new trees; return the relevance they predict."""
        weight = weight / weight.mean()
        self.data.set_label(target)
        self.data.set_weight(weight)
        booster = lightgbm_module().train(
            self._parameters(target, weight), self.data, num_boost_round=self.settings.trees
        )
        predicted: Floats = booster.predict(self.documents.features, num_threads=self.settings.threads)
        if self.settings.probability == "sigmoid":
            return predicted
        return soft_min_max(predicted, self.documents.offsets)

    def _parameters(self, target: Floats, weight: Floats) -> dict[str, Any]:
        def slope(scores: Floats, data: Any) -> tuple[Floats, Floats]:
            return cross_entropy_slope(scores, self.documents.offsets, target, weight)

        return {
            "objective": "cross_entropy" if self.settings.probability == "sigmoid" else slope,
            "num_leaves": self.settings.leaves,
            "learning_rate": self.settings.rate,
            "seed": self.settings.seed,
            **REPEATABLE,
            "num_threads": self.settings.threads,
        }
