"""Rankers that debias themselves: they learn from clicks and positions, not from labels.   lists, clicks -> scores

They are baselines for experiments, with the same features, trees or layers as the rankers on labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from clickmix.lab.self_debiasing.dla import dual_learning
from clickmix.lab.self_debiasing.trees import lightgbm_position, xgboost_unbiased
from clickmix.types import Floats


class Scorer(Protocol):
    """A trained ranker."""

    def score(self, features: Floats) -> Floats:
        """One score per document, higher is better."""


Learn = Callable[..., Scorer]
TITLES = {
    "lightgbm-position": "LightGBM, position",
    "xgboost-unbiased": "XGBoost, unbiased",
    "dla": "DLA, on our DNN",
}

# By name, what trains the ranker on clicks, given a seed.
SELF_DEBIASING: dict[str, Learn] = {
    "lightgbm-position": lightgbm_position,
    "xgboost-unbiased": xgboost_unbiased,
    "dla": dual_learning,
}
