"""Trees that estimate position bias while they grow: LightGBM with `position`, XGBoost with `lambdarank_unbiased`.

Both libraries learn from single sessions, which would be tens of millions of rows, and hours. Their gradients are sums
over sessions, so `pairs.py` computes them for all sessions of a list together, and the library grows its trees on
documents. Up to rounding, these are the trees that the library grows on single sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.errors import optional_module
from clickmix.lab.self_debiasing.clicked import FeatureLists
from clickmix.lab.self_debiasing.pairs import Pairs
from clickmix.rankers.lambdamart import REPEATABLE, LambdaMART, lightgbm_module
from clickmix.types import Floats, Ints

LEAST_HESSIAN = 0.001  # lower bound in LightGBM's step for a position's bias
LEAST_RATIO = 1e-16  # XGBoost leaves pairs unchanged if a position's ratio is smaller
REGULARIZER = 0.5  # XGBoost's 1 / (1 + lambdarank_bias_norm)

Gradients = Callable[[Floats], tuple[Floats, Floats]]  # scores (lists, positions) -> gradients, second derivatives


@dataclass(frozen=True, eq=False)
class Boosted:
    """Trees of LightGBM or XGBoost."""

    booster: Any
    of_features: Any = np.asarray

    def score(self, features: Floats) -> Floats:
        """One score per document."""
        return np.asarray(self.booster.predict(self.of_features(features)), dtype=np.float64)


def lightgbm_position(train: FeatureLists, *, seed: int) -> Boosted:
    """LambdaMART of LightGBM with `position`, with as many trees as the other rankers."""
    lightgbm, settings = lightgbm_module(), LambdaMART()
    pairs = Pairs(train, train.sessions(rng=np.random.default_rng(seed)))
    shown, code = _shown(train)
    parameters = {
        "objective": _of_rows(_position_gradients(pairs, rate=settings.rate), pairs, code),
        "num_leaves": settings.leaves,
        "learning_rate": settings.rate,
        "min_data_in_leaf": 0,  # a document represents many rows
        "min_data_in_bin": 1,
        "seed": seed,
        **REPEATABLE,
        "num_threads": settings.threads,
    }
    data = lightgbm.Dataset(train.features[shown])
    return Boosted(lightgbm.train(parameters, data, num_boost_round=settings.trees))


def _position_gradients(pairs: Pairs, *, rate: float) -> Gradients:
    """LightGBM's gradients: scores plus a bias of each position, which takes a Newton step with every tree."""
    bias = np.zeros(pairs.shown.shape[1])

    def gradients(scores: Floats) -> tuple[Floats, Floats]:
        gap, apart = pairs.ranks(scores + bias)
        p = 1 / (1 + np.exp(apart))
        forces = p * gap
        W = pairs.weights(forces)
        g, h = _both_ends(W * forces, W * forces * (1 - p))
        bias[:] -= rate * g.sum(axis=0) / (h.sum(axis=0) + LEAST_HESSIAN)
        return g, h

    return gradients


def xgboost_unbiased(train: FeatureLists, *, seed: int) -> Boosted:
    """rank:ndcg of XGBoost with unbiased LambdaMART, on the same sessions."""
    xgboost = optional_module("xgboost", use="xgboost-unbiased needs XGBoost", extra="xgboost")
    settings = LambdaMART()
    pairs = Pairs(train, train.sessions(rng=np.random.default_rng(seed)))
    shown, code = _shown(train)
    parameters = {
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_depth": 0,
        "max_leaves": settings.leaves,
        "eta": settings.rate,
        "base_score": 0.0,
        "seed": seed,
        "nthread": settings.threads,
    }
    data = xgboost.QuantileDMatrix(train.features[shown], np.zeros(len(shown)))
    objective = _of_rows(_unbiased_gradients(pairs), pairs, code)
    return Boosted(xgboost.train(parameters, data, num_boost_round=settings.trees, obj=objective), xgboost.DMatrix)


def _unbiased_gradients(pairs: Pairs) -> Gradients:
    """XGBoost's gradients: pairs are divided by a ratio of the clicked position and one of the skipped position."""
    clicked, skipped = np.ones(pairs.shown.shape[1]), np.ones(pairs.shown.shape[1])

    def gradients(scores: Floats) -> tuple[Floats, Floats]:
        gap, apart = pairs.ranks(scores)
        p = 1 / (1 + np.exp(apart))
        by_clicked, by_skipped = (np.where(t >= LEAST_RATIO, t, 1.0) for t in (clicked, skipped))
        forces = p * gap / (by_clicked[:, None] * by_skipped)
        W = pairs.weights(forces)
        cost = -np.einsum("lij,lij,lij->ij", pairs.plain_weights, np.log(p), gap)
        for ratio, lost in (
            (clicked, (cost / by_skipped).sum(axis=1)),
            (skipped, (cost / by_clicked[:, None]).sum(axis=0)),
        ):
            if lost[0] >= LEAST_RATIO:
                ratio[:] = (lost / lost[0]) ** REGULARIZER
        return _both_ends(W * forces, 2 * W * forces * (1 - p))

    return gradients


def _both_ends(force: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Gradients and second derivatives by result: a pair pulls its clicked result up and pushes the other down."""
    return force.sum(axis=1) - force.sum(axis=2), second.sum(axis=1) + second.sum(axis=2)


def _shown(train: FeatureLists) -> tuple[Ints, Ints]:
    """The rows of features that were shown, and their codes, result by result of all lists."""
    return np.unique(train.rows[train.rows >= 0], return_inverse=True)


def _of_rows(gradients: Gradients, pairs: Pairs, code: Ints) -> Callable[[Floats, Any], tuple[Floats, Floats]]:
    """The objective that the libraries expect: gradients by row of the features."""

    def objective(scores: Floats, _: Any) -> tuple[Floats, Floats]:
        by_list = np.zeros(pairs.shown.shape)
        by_list[pairs.shown] = scores[code]
        g, h = (np.bincount(code, part[pairs.shown], len(scores)) for part in gradients(by_list))
        return g, h

    return objective
