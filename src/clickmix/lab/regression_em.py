"""Regression-based EM by name, with a regression of the lab.   --correction regression-em"""

from __future__ import annotations

from typing import Any, get_args

from clickmix.corrections.affine_em import TRUST
from clickmix.corrections.clipping import CLIP
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.mixture import FEATURES
from clickmix.corrections.regression_em import RegressionEM
from clickmix.errors import SettingError
from clickmix.lab.regression_names import RegressionName
from clickmix.registry import Option

OPTIONS = (
    FEATURES,
    Option("regression", "The regression that predicts relevance from features.", choices=get_args(RegressionName)),
    Option("iterations", "How many regressions to fit at most, one per iteration.", type=int),
    Option("seed", "Seed of random draws; the same seed gives the same bytes.", type=int),
    TRUST,
    CLIP,
)


@CORRECTIONS.register(
    "regression-em", help="Affine, with alpha and beta estimated by EM with a regression on features.", options=OPTIONS
)
def regression_em(
    *, features: Any = None, regression: RegressionName = "dnn-sigmoid", seed: int = 0, **settings: Any
) -> RegressionEM:
    """Regression-based EM; by default with the paper's regression, a neural network with sigmoid probabilities."""
    from clickmix.lab.regressions import choose_regression  # here, because torch and LightGBM are slow to load

    if features is None:
        raise SettingError(
            "regression-em needs the features of every document of the log: pass --features FILE (in Python "
            "features=...)."
        )
    if seed < 0:
        raise SettingError(f"seed={seed}: expected a whole number from 0.")
    return RegressionEM(choose_regression(regression, features, seed=seed), **settings)
