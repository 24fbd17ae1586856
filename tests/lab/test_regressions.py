"""Regressions for regression EM: what they learn, warm starts, soft-min-max, features missing or constant."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from clickmix.corrections.regression_em import RegressionEM
from clickmix.counts.counts import Counts
from clickmix.errors import InputError, SettingError
from clickmix.lab.regressions import REGRESSIONS, NetworkRegression, TreeRegression, choose_regression
from clickmix.lab.regressions.documents import find_features
from clickmix.lab.regressions.network import soft_min_max_of_tensors
from clickmix.lab.regressions.soft_min_max import MARGIN, cross_entropy_slope, soft_min_max
from clickmix.lab.users import PositionBased
from clickmix.rankers.dnn import DNN

Floats = NDArray[np.float64]
QUERIES, EACH, WIDTH = 60, 10, 4


class Log:
    """Documents with features, and a relevance that follows from these."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        documents = QUERIES * EACH
        self.query_id, self.doc_id = np.repeat(np.arange(QUERIES), EACH), np.arange(documents)
        self.matrix = rng.standard_normal((documents, WIDTH)).astype(np.float32)
        self.relevance: Floats = 1 / (1 + np.exp(-3 * self.matrix[:, 0].astype(float)))
        shuffled = rng.permutation(documents)
        self.features = (self.query_id[shuffled], self.doc_id[shuffled], self.matrix[shuffled])
        self.weight = np.full(documents, 5.0)

    def regression(self, name: str, seed: int = 0) -> Any:
        """Small and quick."""
        probability: Any = name.partition("-")[2]
        if name.startswith("dnn"):
            settings = DNN(layers=(16,), dropout=(0.0,), epochs=5, batch=8, learning_rate=0.05)
            return NetworkRegression(self.features, probability, settings, seed)
        return TreeRegression(self.features, probability, trees=40, leaves=8, rate=0.1, seed=seed)

    def start(self, name: str, seed: int = 0) -> Any:
        return self.regression(name, seed).start(self.query_id, self.doc_id)


@pytest.mark.parametrize("name", REGRESSIONS)
class TestContract:
    def test_predictions_are_probabilities_in_the_order_of_the_documents(self, name: str) -> None:
        log = Log()
        predicted = log.start(name).fit(log.relevance, log.weight)
        assert predicted.shape == log.relevance.shape
        assert ((predicted >= 0) & (predicted <= 1)).all()
        assert np.corrcoef(predicted, log.relevance)[0, 1] > 0.8

    def test_the_same_seed_gives_the_same_predictions(self, name: str) -> None:
        log = Log()
        one, other = (log.start(name).fit(log.relevance, log.weight) for _ in range(2))
        assert (one == other).all()

    def test_documents_with_more_impressions_weigh_more(self, name: str) -> None:
        """Half of the documents teach the contrary of the others; who has the weight is believed."""
        log, half = Log(), np.arange(QUERIES * EACH) % 2 == 0
        target = np.where(half, log.relevance, 1 - log.relevance)
        predicted = log.start(name).fit(target, np.where(half, 100.0, 1.0))
        assert np.corrcoef(predicted, log.relevance)[0, 1] > 0.7

    def test_regression_em_takes_it(self, name: str) -> None:
        log = Log()
        person = PositionBased.with_eta(1, positions=EACH)
        position = np.tile(np.arange(EACH), QUERIES)
        p = person.alpha[position] * log.relevance + person.beta[position]
        clicks = np.random.default_rng(1).binomial(100, p)
        counts = Counts.from_arrays(log.query_id, log.doc_id, position + 1, np.full(len(p), 100), clicks)
        fit = RegressionEM(log.regression(name), iterations=3).fit(counts)
        assert len(fit.trace) >= 1
        assert len(fit.label(counts)) == len(p)

    def test_it_is_chosen_by_its_name(self, name: Any) -> None:
        chosen: Any = choose_regression(name, Log().features, seed=3)
        assert (chosen.probability, chosen.seed) == (name.partition("-")[2], 3)
        assert isinstance(chosen, NetworkRegression if name.startswith("dnn") else TreeRegression)


def cross_entropy(target: Floats, predicted: Floats) -> float:
    q = np.clip(predicted, 1e-9, 1 - 1e-9)
    return float(np.mean(-target * np.log(q) - (1 - target) * np.log(1 - q)))


class TestWarmStart:
    @pytest.mark.parametrize("name", ["dnn-sigmoid", "dnn-soft-min-max"])
    def test_a_network_goes_on_from_where_it_was(self, name: str) -> None:
        log = Log()
        learning = log.start(name)
        first, second = (cross_entropy(log.relevance, learning.fit(log.relevance, log.weight)) for _ in range(2))
        assert second < first

    @pytest.mark.parametrize("name", ["lambdamart-sigmoid", "lambdamart-soft-min-max"])
    def test_trees_are_grown_anew(self, name: str) -> None:
        log = Log()
        growing = log.start(name)
        growing.fit(1 - log.relevance, log.weight)
        assert (growing.fit(log.relevance, log.weight) == log.start(name).fit(log.relevance, log.weight)).all()

    def test_sigmoid_predictions_are_calibrated_to_the_targets(self) -> None:
        """Cross entropy is least where predictions are the targets' means: so is the mean of the predictions."""
        log = Log()
        predicted = log.start("lambdamart-sigmoid").fit(log.relevance, log.weight)
        assert predicted.mean() == pytest.approx(log.relevance.mean(), abs=0.005)


class TestSoftMinMax:
    OFFSETS = np.array([0, 3, 4, 6])

    def test_is_its_formula(self) -> None:
        scores = np.array([0.0, 1.0, 2.0, 7.0, 3.0, 3.0])
        e = np.exp(1.0), np.exp(2.0)
        middle = (e[0] - 1) / (e[1] - 1)
        expected = [MARGIN, MARGIN + (1 - 2 * MARGIN) * middle, 1 - MARGIN, 0.5, 0.5, 0.5]
        assert soft_min_max(scores, self.OFFSETS) == pytest.approx(expected)

    def test_large_scores_do_not_overflow_and_a_shift_changes_nothing(self) -> None:
        scores = np.array([0.0, 1.0, 2.0, 7.0, 3.0, 4.0])
        assert soft_min_max(scores + 5000, self.OFFSETS) == pytest.approx(soft_min_max(scores, self.OFFSETS))

    def test_the_networks_own_is_the_same(self) -> None:
        scores = np.random.default_rng(0).standard_normal(9)
        mask = torch.arange(5) < torch.tensor([[4], [5]])
        own = soft_min_max_of_tensors(torch.tensor(scores), mask).numpy()
        assert own == pytest.approx(soft_min_max(scores, np.array([0, 4, 9])), abs=1e-12)

    def test_slope_is_that_of_the_cross_entropy(self) -> None:
        rng = np.random.default_rng(0)
        scores, target, weight = rng.standard_normal(9), rng.random(9), rng.random(9) + 0.5
        offsets = np.array([0, 4, 9])

        def loss(s: Floats) -> float:
            q = soft_min_max(s, offsets)
            return float((weight * (-target * np.log(q) - (1 - target) * np.log(1 - q))).sum())

        steps = np.eye(9) * 1e-6
        numeric = [(loss(scores + step) - loss(scores - step)) / 2e-6 for step in steps]
        slope, curvature = cross_entropy_slope(scores, offsets, target, weight)
        assert slope == pytest.approx(numeric, rel=1e-5, abs=1e-6)
        assert (curvature > 0).all()

    def test_from_equal_scores_the_slope_is_that_of_the_sigmoid(self) -> None:
        slope, curvature = cross_entropy_slope(
            np.zeros(3), np.array([0, 3]), np.array([0, 0.5, 1]), np.array([1, 1, 2.0])
        )
        assert slope.tolist() == [0.5, 0.0, -1.0]
        assert curvature.tolist() == [0.25, 0.25, 0.5]


class TestFeatures:
    def test_are_found_by_query_and_document(self) -> None:
        log = Log()
        found = find_features(log.features, log.query_id, log.doc_id)
        assert (found.features == log.matrix).all()
        assert found.offsets.tolist() == list(range(0, QUERIES * EACH + 1, EACH))

    def test_text_ids(self) -> None:
        matrix = np.array([[1.0], [2.0], [3.0]])
        found = find_features(
            (["b", "a", "a"], ["x", "x", "y"], matrix), np.array(["a", "b"], object), np.array(["y", "x"], object)
        )
        assert found.features.ravel().tolist() == [3.0, 1.0]

    @pytest.mark.parametrize("name", REGRESSIONS)
    def test_no_features_for_a_document(self, name: Any) -> None:
        message = (
            "No features for query 1, document 7 of the log (1 of 2 documents have none; the ids are a whole number "
            "and a whole number). Pass features of every document of the log; ids must be of the same type."
        )
        regression: Any = choose_regression(name, (np.array([1, 2]), np.array([6, 7]), np.array([[1.0], [2.0]])))
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            regression.start(np.array([1, 1]), np.array([6, 7]))

    def test_ids_of_another_type_are_no_ids(self) -> None:
        message = (
            "No features for query 1, document 6 of the log (1 of 1 documents have none; the ids are text and a whole "
            "number). Pass features of every document of the log; ids must be of the same type."
        )
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            find_features((np.array([1]), np.array([6]), np.array([[1.0]])), np.array(["1"], object), np.array([6]))

    @pytest.mark.parametrize("name", REGRESSIONS)
    def test_constant_features(self, name: Any) -> None:
        message = (
            "The features of all 3 documents of the log are equal, so they say nothing. Give "
            "features that differ between documents."
        )
        regression: Any = choose_regression(name, (np.zeros(3, int), np.arange(3), np.ones((3, 2))))
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            regression.start(np.zeros(3, int), np.arange(3))

    def test_features_that_are_no_numbers(self) -> None:
        message = (
            "the features of the log's documents, row 2, column 1: the feature is nan (rows and columns count from 1). "
            "Expected a finite number of single precision; fill gaps first."
        )
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            find_features((np.zeros(2, int), np.arange(2), np.array([[1.0], [np.nan]])), np.zeros(2, int), np.arange(2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"probability": "softmax"}, "probability 'softmax': expected one of sigmoid, soft-min-max."),
        ({"trees": 0}, "trees=0: expected a whole number from 1."),
        ({"rate": 0}, "rate=0: expected a number above 0, up to 1."),
    ],
)
def test_settings(settings: Any, message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        TreeRegression(None, **settings)


def test_an_unknown_regression() -> None:
    name: Any = "forest"
    message = (
        "regression 'forest': expected one of dnn-sigmoid, dnn-soft-min-max, lambdamart-sigmoid, "
        "lambdamart-soft-min-max."
    )
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        choose_regression(name, None)


def test_features_are_found_by_ids_beyond_int64() -> None:
    query = np.array([2**63 + 5, 2**63 + 6, 7, 8], np.uint64)  # the first two are one number as reals
    features = (query, [1] * 4, [[0.5], [1.5], [2.5], [3.5]])
    assert find_features(features, query[1:3], np.array([1, 1])).features.tolist() == [[1.5], [2.5]]
    assert find_features(features, np.array([7, 8]), np.array([1, 1])).features.tolist() == [[2.5], [3.5]]
