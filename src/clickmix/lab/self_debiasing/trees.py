"""Trees that estimate position bias while they grow: LightGBM with `position`, XGBoost with `lambdarank_unbiased`.

Both learn from single sessions. With all of them, a forest would take hours, so each list gives at most `SESSIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.errors import InputError
from clickmix.lab.self_debiasing.clicked import ClickedLists, session_rows
from clickmix.rankers.lambdamart import LambdaMART, lightgbm_module
from clickmix.rankers.weighting import TRUNCATION
from clickmix.types import Floats

SESSIONS = 16


@dataclass(frozen=True, eq=False)
class Boosted:
    """Trees of LightGBM or XGBoost."""

    booster: Any
    of_features: Any = np.asarray

    def score(self, features: Floats) -> Floats:
        """One score per document."""
        return np.asarray(self.booster.predict(self.of_features(features)), dtype=np.float64)


def lightgbm_position(train: ClickedLists, *, seed: int) -> Boosted:
    """LambdaMART of LightGBM, which is told the positions; as many trees as the other rankers have."""
    lightgbm, settings = lightgbm_module(), LambdaMART()
    row, position, clicked, sizes = session_rows(train, *train.sessions(SESSIONS, rng=np.random.default_rng(seed)))
    parameters = {
        "objective": "lambdarank",
        "num_leaves": settings.leaves,
        "learning_rate": settings.rate,
        "lambdarank_truncation_level": TRUNCATION,
        "label_gain": [0, 1],
        "seed": seed,
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": settings.threads,
    }
    data = lightgbm.Dataset(train.features[row], clicked, group=sizes, position=position)
    return Boosted(lightgbm.train(parameters, data, num_boost_round=settings.trees))


def xgboost_unbiased(train: ClickedLists, *, seed: int) -> Boosted:
    """rank:ndcg of XGBoost with unbiased LambdaMART; rows are in the order of positions, by which it tells them."""
    xgboost, settings = xgboost_module(), LambdaMART()
    row, _, clicked, sizes = session_rows(train, *train.sessions(SESSIONS, rng=np.random.default_rng(seed)))
    parameters = {
        "objective": "rank:ndcg",
        "lambdarank_unbiased": True,
        "lambdarank_num_pair_per_sample": TRUNCATION,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_depth": 0,
        "max_leaves": settings.leaves,
        "eta": settings.rate,
        "seed": seed,
        "nthread": settings.threads,
    }
    data = xgboost.QuantileDMatrix(train.features[row], clicked)
    data.set_group(sizes)
    return Boosted(xgboost.train(parameters, data, num_boost_round=settings.trees), xgboost.DMatrix)


def xgboost_module() -> Any:
    """XGBoost, or an error that says how to install it."""
    try:
        import xgboost
    except ImportError:
        raise InputError(
            "xgboost-unbiased needs XGBoost, which is not installed. Install it with: pip install 'clickmix[xgboost]'"
        ) from None
    return xgboost
