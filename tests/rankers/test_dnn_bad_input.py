"""What the DNN ranker refuses, and what it says: where, what was found, and what to do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clickmix.errors import InputError, SettingError
from clickmix.rankers.dnn import DNN
from examples_rankers_dnn import made, nonlinear

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'clickmix[dnn]'")

SMALL = DNN(layers=(8, 4), dropout=(0.0, 0.2), epochs=3, batch=8)
GOOD = made([[1, 2], [3, 4], [5, 6]], [0.2, 0.5, 1.0], [2, 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"features": np.array([[1, 2], [3, 4], [-np.inf, 6]])},
            "examples, row 3, column 1: the feature is -inf (rows and columns count from 1). "
            "Expected a finite number of single precision; fill gaps first.",
        ),
        (
            {"features": np.array([[1, 1e300], [3, 4], [5, 6]])},
            "examples, row 1, column 2: the feature is 1e+300 (rows and columns count from 1). "
            "Expected a finite number of single precision; fill gaps first.",
        ),
        (
            {"features": np.array([1.0, 2.0, 3.0])},
            "examples: the features are an array of shape (3,) and type float64. "
            "Pass a matrix of numbers, one row per document.",
        ),
        (
            {"features": np.array([["a"], ["b"], ["c"]])},
            "examples: the features are an array of shape (3, 1) and type <U1. "
            "Pass a matrix of numbers, one row per document.",
        ),
        ({"features": np.empty((3, 0))}, "examples: no features. Expected at least one per document."),
        (
            {"relevance": np.array([0.2, 1.5, 1.0])},
            "examples, row 2: the relevance 1.5 is outside 0 to 1 (rows count from 1). "
            "Clip the labels, or divide grades by the largest.",
        ),
        (
            {"relevance": np.array([0.2, 0.5, np.nan])},
            "examples, row 3: the relevance nan is outside 0 to 1 (rows count from 1). "
            "Clip the labels, or divide grades by the largest.",
        ),
        (
            {"relevance": np.array([0.2, 0.5])},
            "examples: 3 documents have features, but the labels have shape (2,). Give one label per document.",
        ),
        (
            {"offsets": np.array([0, 2])},
            "examples: the offsets do not cut 3 documents into queries. "
            "Expected whole numbers that rise from 0 to 3: where each query begins, and the end.",
        ),
        (
            {"features": np.empty((0, 2)), "relevance": np.empty(0), "offsets": np.array([0])},
            "examples: no documents. Expected at least one query with one document.",
        ),
    ],
)
def test_bad_examples_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        SMALL.fit(replace(GOOD, **changes))


def test_validation_examples_are_checked_too() -> None:
    message = "vali, row 1: the relevance 2 is outside 0 to 1 (rows count from 1). "
    with pytest.raises(InputError, match=re.escape(message)):
        SMALL.fit(GOOD, vali=replace(GOOD, relevance=np.array([2, 0, 0])))
    message = "vali: 1 features, but the ranker was trained on 2. Use the same features."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        SMALL.fit(GOOD, vali=replace(GOOD, features=GOOD.features[:, :1]))


def test_validation_features_in_another_order_are_refused() -> None:
    message = (
        "vali: feature 1 is 'ctr', but in the training examples it is 'bm25'. Use the same features in the same "
        "order, as make_examples(..., names=examples.feature_names) does."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        SMALL.fit(replace(GOOD, feature_names=("bm25", "ctr")), vali=replace(GOOD, feature_names=("ctr", "bm25")))


def test_features_to_score_are_checked() -> None:
    fit = SMALL.fit(GOOD)
    message = "features: 3 features, but the ranker was trained on 2. Use the same features."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        fit.score(np.ones((4, 3)))
    message = (
        "features, row 4, column 1: the value is missing, but this feature was never missing in training (rows and "
        "columns count from 1). Fill the gap, or train with gaps in this feature."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        fit.score(np.array([[0, 0], [0, 0], [0, 0], [np.nan, 0]]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "loss='hinge': expected one of sigmoid, softmax, lambda."),
        ({"layers": (8, 0), "dropout": (0, 0)}, "layers=0: expected a whole number from 1."),
        ({"dropout": (0.1, 0.1)}, "dropout=(0.1, 0.1): expected one share for each of the 3 layers."),
        ({"dropout": (0, 0, 1)}, "dropout=1: expected a number at least 0 and below 1."),
        ({"learning_rate": 0}, "learning_rate=0: expected a number above 0."),
        ({"learning_rate": "fast"}, "learning_rate='fast': expected a number above 0."),
        ({"largest_gradient": float("inf")}, "largest_gradient=inf: expected a number above 0."),
        ({"batch": 2.5}, "batch=2.5: expected a whole number from 1."),
        ({"epochs": True}, "epochs=True: expected a whole number from 1."),
        ({"patience": 0}, "patience=0: expected a whole number from 1."),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        DNN(**settings)


def test_a_bad_seed_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^seed=-1: expected a whole number from 0\.$"):
        SMALL.fit(GOOD, seed=-1)


def test_a_loss_that_is_no_number_is_said() -> None:
    message = "learning_rate=1e+30: the loss stopped being a number in epoch "
    with pytest.raises(SettingError, match=re.escape(message)):
        replace(SMALL, learning_rate=1e30).fit(nonlinear(0))
