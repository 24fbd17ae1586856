"""The production ranker: the same lists for the same seed, best first."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickmix.errors import InputError, SettingError
from clickmix.features.split import Split
from clickmix.lab.collections.production import production_ranker, top_rows


def easy_split(queries: int = 30, documents: int = 60, seed: int = 0) -> Split:
    """Queries whose grade can be read off the first of five features."""
    rng = np.random.default_rng(seed)
    features = rng.random((queries * documents, 5), np.float32)
    grade = np.floor(4.99 * features[:, 0]).astype(np.int8)
    rows = len(grade)
    return Split(np.arange(queries) + 100, np.arange(0, rows + 1, documents), np.arange(rows), grade, features)


def split_of(sizes: list[int]) -> Split:
    rows = sum(sizes)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Split(
        np.arange(len(sizes)), offsets, np.arange(rows), np.zeros(rows, np.int8), np.zeros((rows, 1), np.float32)
    )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 99))
def test_lists_are_the_best_of_each_query_in_order(sizes: list[int], length: int, seed: int) -> None:
    split = split_of(sizes)
    scores = np.random.default_rng(seed).integers(4, size=split.documents).astype(float)
    for begin, end, rows in zip(
        split.offsets[:-1], split.offsets[1:], top_rows(split, scores, length=length), strict=True
    ):
        shown = rows[rows >= 0]
        assert len(shown) == min(length, end - begin)
        assert (rows[len(shown) :] == -1).all()
        assert len(set(shown)) == len(shown)
        assert set(shown) <= set(range(begin, end))
        assert scores[shown].tolist() == sorted(scores[begin:end], reverse=True)[:length]


def test_equal_scores_do_not_follow_the_order_of_the_file() -> None:
    rows = top_rows(split_of([100] * 200), np.zeros(20_000), length=1)[:, 0] % 100
    z = (rows.mean() - 49.5) / (np.sqrt((100**2 - 1) / 12) / np.sqrt(200))
    assert abs(z) < 5
    assert (rows == top_rows(split_of([100] * 200), np.zeros(20_000), length=1)[:, 0] % 100).all()


def test_the_same_seed_gives_the_same_scores_and_another_seed_others() -> None:
    split = easy_split()
    first, again, other = (production_ranker(split, rng=np.random.default_rng(seed), queries=5) for seed in (1, 1, 2))
    assert first.score(split).tobytes() == again.score(split).tobytes()
    assert first.query_ids == again.query_ids
    assert first.query_ids != other.query_ids


def test_it_learns_from_the_grades_of_twenty_queries() -> None:
    train, test = easy_split(), easy_split(seed=1)
    ranker = production_ranker(train, rng=np.random.default_rng(0))
    assert len(set(ranker.query_ids)) == 20
    assert set(ranker.query_ids) <= set(train.query_id.tolist())
    assert ranker.booster.num_trees() == 300
    best = ranker.top(test, length=10)
    assert test.grade[best].mean() > 3.5
    assert best.shape == (30, 10)


@pytest.mark.parametrize("queries", [0, 31])
def test_a_number_of_queries_that_there_are_not_is_refused(queries: int) -> None:
    message = f"queries={queries}: expected 1 to 30, the queries of the training split."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        production_ranker(easy_split(), rng=np.random.default_rng(0), queries=queries)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^length=0: a list has at least 1 document\.$"):
        top_rows(split_of([2]), np.zeros(2), length=0)


def test_without_lightgbm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    message = "LambdaMART needs LightGBM, which is not installed. Install it with: pip install 'clickmix[lightgbm]'"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        production_ranker(easy_split(), rng=np.random.default_rng(0))
