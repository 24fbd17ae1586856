"""Rankers that debias themselves: sessions as they were counted, and what they learn where the truth is known."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from clickmix.errors import InputError
from clickmix.lab.self_debiasing import SELF_DEBIASING, learn_from_clicks
from clickmix.lab.self_debiasing.clicked import ClickedLists, session_rows
from clickmix.lab.self_debiasing.dla import DualLearner
from clickmix.types import Floats


def counted(seed: int = 0) -> ClickedLists:
    """Lists of three and of two results, seen up to six times."""
    rng = np.random.default_rng(seed)
    rows = np.array([[0, 1, 2], [3, 4, -1], [5, 6, 7]])
    impressions = np.array([6, 4, 0])
    clicks = np.where(rows >= 0, rng.binomial(impressions[:, None], 0.4), 0)
    return ClickedLists(np.zeros((8, 1), np.float32), rows, impressions, clicks)


def biased(*, lists: int = 250, seed: int = 0) -> tuple[ClickedLists, Floats]:
    """Position-based users; the first feature is attraction, the second the position that a bad ranker gives."""
    rng = np.random.default_rng(seed)
    attraction = rng.uniform(0.05, 0.9, (lists, 5))
    order = np.argsort(rng.normal(0, 1, (lists, 5)) + 2 * attraction, axis=1)  # good results come last
    features = np.stack([attraction, rng.normal(0, 1, (lists, 5))], axis=-1).reshape(-1, 2).astype(np.float32)
    rows = np.arange(lists)[:, None] * 5 + order
    examination = 1 / np.arange(1, 6)
    impressions = np.full(lists, 30)
    clicks = rng.binomial(30, attraction.ravel()[rows] * examination)
    return ClickedLists(features, rows, impressions, clicks), examination


def test_all_sessions_add_up_to_the_counts() -> None:
    lists = counted()
    seen, clicks = lists.sessions(10, rng=np.random.default_rng(1))
    found = np.zeros_like(lists.clicks)
    np.add.at(found, seen, clicks)
    assert found.tolist() == lists.clicks.tolist()
    assert clicks.any(axis=1).all()


def test_a_part_of_the_sessions_has_the_share_of_clicks() -> None:
    """Of 4 sessions with 2 clicks each, one session holds half a click in the mean."""
    lists = ClickedLists(
        np.zeros((1, 1), np.float32), np.zeros((5000, 1), int), np.full(5000, 4), np.full((5000, 1), 2)
    )
    seen, _ = lists.sessions(1, rng=np.random.default_rng(0))
    assert abs(len(seen) / 5000 - 0.5) < 5 * (0.25 / 5000) ** 0.5


def test_rows_of_sessions_keep_their_positions() -> None:
    lists = counted()
    row, position, clicked, sizes = session_rows(lists, np.array([1, 0]), np.array([[1, 0, 0], [0, 0, 1]], dtype=bool))
    assert row.tolist() == [3, 4, 0, 1, 2]
    assert position.tolist() == [0, 1, 0, 1, 2]
    assert clicked.tolist() == [1, 0, 0, 0, 1]
    assert sizes.tolist() == [2, 3]


@pytest.mark.parametrize("name", SELF_DEBIASING)
def test_attraction_wins_over_position(name: str) -> None:
    """Clicks alone prefer what is on top; the rankers must find that the first feature is what attracts."""
    pytest.importorskip({"lightgbm-position": "lightgbm", "xgboost-unbiased": "xgboost", "dla": "torch"}[name])
    lists, _ = biased()
    ranker = learn_from_clicks(name, lists, seed=0)
    grid = np.stack([np.linspace(0.1, 0.85, 6), np.zeros(6)], axis=1).astype(np.float32)
    scores = ranker.score(grid)
    assert scores[-1] > scores[0]
    assert np.corrcoef(scores, grid[:, 0])[0, 1] > 0.8
    assert learn_from_clicks(name, lists, seed=0).score(grid).tolist() == scores.tolist()


def test_dual_learning_finds_how_examination_falls() -> None:
    pytest.importorskip("torch")
    lists, examination = biased(lists=600)
    ranker = learn_from_clicks("dla", lists, seed=0)
    assert isinstance(ranker, DualLearner)
    assert ranker.examination == pytest.approx(examination, abs=0.15)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(
        InputError, match=r"^xgboost-unbiased needs XGBoost, which is not installed\. Install it with: "
    ):
        learn_from_clicks("xgboost-unbiased", biased(lists=10)[0], seed=0)
