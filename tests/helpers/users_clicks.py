"""Users and result lists that the tests of clicks share."""

from __future__ import annotations

import numpy as np

from clickmix.lab.users import (
    Cascade,
    DependentClick,
    DynamicBayesian,
    PositionBased,
    SimplifiedDynamicBayesian,
    Trust,
    User,
    UserBrowsing,
)
from clickmix.types import Floats

MODELS = ("pbm", "dcm", "ubm", "cascade", "sdbn", "dbn")
PRESETS = ("pbm-eta1", "pbm-eta2", "dcm", "ubm", "cascade", "sdbn", "dbn", "dbn-continuation0.5")


def random_user(model: str, positions: int, seed: int) -> User:
    """A user of this model with every parameter drawn."""
    rng = np.random.default_rng(seed)
    trust = Trust(rng.uniform(0.5, 1.0, positions), rng.uniform(0.0, 0.5, positions))
    return user_of(model, rng.uniform(0.1, 1.0, positions * positions), trust)


def user_of(model: str, parameters: Floats, trust: Trust) -> User:
    """A user of this model from as many numbers as it needs, in the order of positions (and last clicks)."""
    K = trust.positions
    if model == "pbm":
        return PositionBased(examination=parameters[:K], trust=trust)
    if model == "dcm":
        return DependentClick(going_on=parameters[: K - 1], trust=trust)
    if model == "cascade":
        return Cascade(trust=trust)
    if model in ("sdbn", "dbn"):
        relevant, irrelevant, continuation = np.resize(parameters, 3).tolist()
        if model == "sdbn":
            return SimplifiedDynamicBayesian(satisfied_relevant=relevant, satisfied_irrelevant=irrelevant, trust=trust)
        return DynamicBayesian(
            continuation=continuation, satisfied_relevant=relevant, satisfied_irrelevant=irrelevant, trust=trust
        )
    square = np.zeros((K, K))
    square[np.tril_indices(K)] = parameters[: K * (K + 1) // 2]
    return UserBrowsing(examination=square, trust=trust)


def lists_of(kind: str, longest: int) -> Floats:
    """Relevance of six lists, binarized or graded; the last two are shorter where there is room."""
    rng = np.random.default_rng(longest)
    values = np.array([0.0, 1.0]) if kind == "binarized" else np.arange(5) / 4
    relevance = rng.choice(values, size=(6, longest))
    relevance[4, (longest + 1) // 2 :] = np.nan
    relevance[5, 1:] = np.nan
    return relevance
