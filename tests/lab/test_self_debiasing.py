"""Rankers that debias themselves: sessions as they were counted, and what they learn where the truth is known."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from clickmix.errors import InputError
from clickmix.lab.self_debiasing import SELF_DEBIASING
from clickmix.lab.self_debiasing.clicked import FeatureLists
from clickmix.lab.self_debiasing.dla import DualLearner
from clickmix.lab.self_debiasing.trees import Boosted
from clickmix.types import Floats, Ints


def counted(seed: int = 0) -> FeatureLists:
    """Lists of three and of two results, seen up to six times."""
    rng = np.random.default_rng(seed)
    rows = np.array([[0, 1, 2], [3, 4, -1], [5, 6, 7]])
    impressions = np.array([6, 4, 0])
    clicks = np.where(rows >= 0, rng.binomial(impressions[:, None], 0.4), 0)
    return FeatureLists(np.zeros((8, 1), np.float32), rows, impressions, clicks)


def biased(*, lists: int = 250, seed: int = 0) -> tuple[FeatureLists, Floats]:
    """Position-based users; the first feature is attraction, the second the position that a bad ranker gives."""
    rng = np.random.default_rng(seed)
    attraction = rng.uniform(0.05, 0.9, (lists, 5))
    order = np.argsort(rng.normal(0, 1, (lists, 5)) + 2 * attraction, axis=1)  # good results come last
    features = np.stack([attraction, rng.normal(0, 1, (lists, 5))], axis=-1).reshape(-1, 2).astype(np.float32)
    rows = np.arange(lists)[:, None] * 5 + order
    examination = 1 / np.arange(1, 6)
    impressions = np.full(lists, 30)
    clicks = rng.binomial(30, attraction.ravel()[rows] * examination)
    return FeatureLists(features, rows, impressions, clicks), examination


def single_sessions(lists: FeatureLists, *, seed: int = 0) -> tuple[Ints, Ints, Floats, Ints]:
    """As the libraries take them: rows of features, positions from 0, clicked or not; and rows by session."""
    kinds = lists.sessions(rng=np.random.default_rng(seed))
    rows, clicks = (np.repeat(each, kinds.number, axis=0) for each in (lists.rows[kinds.list], kinds.clicks))
    shown = rows >= 0
    position = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    return rows[shown], position[shown], clicks[shown].astype(np.float64), shown.sum(axis=1)


def coarse(lists: FeatureLists) -> FeatureLists:
    """Features of few values, so that the libraries' bins are the same for sessions and documents; a short list."""
    rows, clicks = lists.rows.copy(), lists.clicks.copy()
    rows[0, -1], clicks[0, -1] = -1, 0
    return replace(lists, features=np.round(lists.features * [10, 2]).astype(np.float32), rows=rows, clicks=clicks)


def test_all_sessions_add_up_to_the_counts() -> None:
    lists = counted()
    kinds = lists.sessions(rng=np.random.default_rng(1))
    found = np.zeros_like(lists.clicks)
    np.add.at(found, kinds.list, kinds.clicks * kinds.number[:, None])
    assert found.tolist() == lists.clicks.tolist()
    assert kinds.clicks.any(axis=1).all()


def test_no_kind_of_session_is_there_twice() -> None:
    kinds = biased()[0].sessions(rng=np.random.default_rng(0))
    assert len(np.unique(np.column_stack([kinds.list, kinds.clicks]), axis=0)) == len(kinds.list)
    assert (kinds.number > 1).any()


def test_sessions_of_nobody_are_none() -> None:
    lists = replace(counted(), impressions=np.zeros(3, int), clicks=np.zeros((3, 3), int))
    assert len(lists.sessions(rng=np.random.default_rng(0)).list) == 0


def test_trees_are_those_of_lightgbm_on_single_sessions() -> None:
    """The first trees agree as far as LightGBM's table of the sigmoid does; later a tie can fall otherwise."""
    lightgbm = pytest.importorskip("lightgbm")
    lists = coarse(biased()[0])
    row, position, clicked, sizes = single_sessions(lists)
    parameters = {
        "objective": "lambdarank",
        "learning_rate": 0.05,
        "label_gain": [0, 1],
        "min_data_in_leaf": 1,
        "verbosity": -1,
        "num_threads": 1,
    }
    data = lightgbm.Dataset(lists.features[row], clicked, group=sizes, position=position)
    expected = lightgbm.train(parameters, data, num_boost_round=8).predict(lists.features)
    ranker = SELF_DEBIASING["lightgbm-position"](lists, seed=0)
    assert isinstance(ranker, Boosted)
    found = ranker.booster.predict(lists.features, num_iteration=8)
    assert found == pytest.approx(expected, abs=1e-4 * expected.std())


def test_trees_are_those_of_xgboost_on_single_sessions() -> None:
    """The first trees agree as far as XGBoost's single precision goes."""
    xgboost = pytest.importorskip("xgboost")
    lists = coarse(biased()[0])
    row, _, clicked, sizes = single_sessions(lists)
    parameters = {
        "objective": "rank:ndcg",
        "lambdarank_unbiased": True,
        "lambdarank_num_pair_per_sample": 30,
        "grow_policy": "lossguide",
        "max_depth": 0,
        "max_leaves": 31,
        "eta": 0.05,
        "base_score": 0.0,
        "nthread": 1,
    }
    data = xgboost.QuantileDMatrix(lists.features[row], clicked)
    data.set_group(sizes)
    expected = xgboost.train(parameters, data, num_boost_round=8).predict(xgboost.DMatrix(lists.features))
    ranker = SELF_DEBIASING["xgboost-unbiased"](lists, seed=0)
    assert isinstance(ranker, Boosted)
    found = ranker.booster.predict(xgboost.DMatrix(lists.features), iteration_range=(0, 8))
    assert found == pytest.approx(expected, abs=1e-4 * expected.std())


@pytest.mark.parametrize("name", SELF_DEBIASING)
def test_attraction_wins_over_position(name: str) -> None:
    """Clicks alone prefer what is on top; the rankers must find that the first feature is what attracts."""
    pytest.importorskip({"lightgbm-position": "lightgbm", "xgboost-unbiased": "xgboost", "dla": "torch"}[name])
    lists, _ = biased()
    ranker = SELF_DEBIASING[name](lists, seed=0)
    grid = np.stack([np.linspace(0.1, 0.85, 6), np.zeros(6)], axis=1).astype(np.float32)
    scores = ranker.score(grid)
    assert scores[-1] > scores[0]
    assert np.corrcoef(scores, grid[:, 0])[0, 1] > 0.8
    assert SELF_DEBIASING[name](lists, seed=0).score(grid).tolist() == scores.tolist()


def test_dual_learning_finds_how_examination_falls() -> None:
    pytest.importorskip("torch")
    lists, examination = biased(lists=600)
    ranker = SELF_DEBIASING["dla"](lists, seed=0)
    assert isinstance(ranker, DualLearner)
    assert ranker.examination == pytest.approx(examination, abs=0.15)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(
        InputError, match=r"^xgboost-unbiased needs XGBoost, which is not installed\. Install it with: "
    ):
        SELF_DEBIASING["xgboost-unbiased"](biased(lists=10)[0], seed=0)
