"""Regressions of relevance on features, for regression-based EM: trees or a network, with two kinds of probability.

A regression is settings with `start(query_id, doc_id)`, which finds the features of a log's documents; its result has
`fit(target, weight)`, which predicts the relevance of each. Probabilities from scores s are

    sigmoid        1 / (1 + e^-s)
    soft-min-max   (e^s - min e^s) / (max e^s - min e^s), minimum and maximum over the documents of the query
Both are fitted by cross entropy.
"""

from __future__ import annotations

from typing import Any, get_args

from clickmix.corrections.regression_em import Regression
from clickmix.errors import SettingError
from clickmix.lab.regression_names import RegressionName
from clickmix.lab.regressions.network import NetworkRegression
from clickmix.lab.regressions.trees import TreeRegression

REGRESSIONS: tuple[RegressionName, ...] = get_args(RegressionName)

__all__ = ["REGRESSIONS", "NetworkRegression", "TreeRegression", "choose_regression"]


def choose_regression(name: RegressionName, features: Any, *, seed: int = 0) -> Regression:
    """The regression of that name on features in any layout that `clickmix.features.open_features` reads."""
    if name not in REGRESSIONS:
        raise SettingError(f"regression {name!r}: expected one of {', '.join(REGRESSIONS)}.")
    kind, _, probability = name.partition("-")
    shape: Any = probability
    if kind == "dnn":
        return NetworkRegression(features, shape, seed=seed)
    return TreeRegression(features, shape, seed=seed)
