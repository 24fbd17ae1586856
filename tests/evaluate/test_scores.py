"""Scores: against other programs, against enumeration, by hand, and what never changes them."""

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from clickmix.evaluate import Measure, evaluate, query_index, rank, score
from oracles_evaluate import mean_over_orders, measure_of_order

pytrec_eval: Any = importlib.import_module("pytrec_eval")  # it has no types

FAMILY = ["ndcg", "ndcg:gain=linear", "dcg", "dcg:gain=linear", "mrr", "map", "precision", "recall"]
FAMILY += ["ndcg@3", "ndcg@3:gain=linear", "dcg@3", "mrr@3", "map@3", "precision@3", "recall@3"]
FAMILY += ["mrr@2:grade=2", "map@2:grade=2", "precision@2:grade=2", "recall@2:grade=2", "ndcg@10", "map@10"]
every_measure = pytest.mark.parametrize("text", FAMILY)

lists = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-1, 2), min_size=n, max_size=n), st.lists(st.integers(0, 3), min_size=n, max_size=n)
    )
)


def table(seed: int, *, queries: int, tied: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, grades and query ids of queries with 2 to 30 documents, the documents of all queries mixed up."""
    rng = np.random.default_rng(seed)
    query_ids = rng.permutation(np.repeat(np.arange(queries), rng.integers(2, 31, size=queries)))
    n = len(query_ids)
    grades = rng.choice(5, size=n, p=[0.6, 0.2, 0.1, 0.06, 0.04])
    return (rng.integers(0, 6, size=n) / 4 if tied else rng.permutation(n) / 4), grades, query_ids


# Against other programs


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("k", [1, 5, 10, None])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_ndcg_is_that_of_scikit_learn(gain: Any, k: int | None, tied: bool) -> None:
    scores, grades, query_ids = table(1, queries=60, tied=tied)
    worth = 2.0**grades - 1 if gain == "exponential" else grades
    of = [np.flatnonzero(query_ids == query) for query in range(60)]
    expected = [ndcg_score(worth[None, rows], scores[None, rows], k=k) for rows in of]
    found = evaluate(scores, grades, query_ids, measure=Measure("ndcg", k, gain=gain), no_relevant="zero")
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("recip_rank", "mrr"),
        ("map", "map"),
        ("map_cut_10", "map@10"),
        ("map_cut_5", "map@5"),
        ("P_10", "precision@10"),
        ("P_100", "precision@100"),
        ("recall_5", "recall@5"),
        ("recall_100", "recall@100"),
    ],
)
def test_measures_of_relevant_documents_are_those_of_trec_eval(name: str, measure: str, level: int) -> None:
    scores, grades, query_ids = table(2, queries=60, tied=False)
    expected = trec_eval(name, scores, grades, query_ids, level=level)
    measure = f"{measure}:grade={level}"
    found = evaluate(scores, grades, query_ids, measure=measure, no_relevant="zero")
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["ndcg", "ndcg_cut_5", "ndcg_cut_10", "ndcg_cut_100"])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_ndcg_is_that_of_trec_eval(name: str, gain: Any) -> None:
    scores, grades, query_ids = table(3, queries=60, tied=False)
    worth = 2**grades - 1 if gain == "exponential" else grades
    expected = trec_eval(name, scores, worth, query_ids, level=1)
    cutoff = int(name.removeprefix("ndcg_cut_")) if "cut" in name else None
    found = evaluate(scores, grades, query_ids, measure=Measure("ndcg", cutoff, gain=gain), no_relevant="zero")
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)


def trec_eval(name: str, scores: np.ndarray, grades: np.ndarray, query_ids: np.ndarray, *, level: int) -> list[float]:
    """The measure of each query, in the order of their numbers, by trec_eval."""
    judged: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for document, (s, g, query) in enumerate(zip(scores.tolist(), grades.tolist(), query_ids.tolist(), strict=True)):
        judged.setdefault(str(query), {})[str(document)] = g
        run.setdefault(str(query), {})[str(document)] = s
    results = pytrec_eval.RelevanceEvaluator(judged, [name], relevance_level=level).evaluate(run)
    return [results[str(query)][name] for query in range(query_ids.max() + 1)]


# Against enumeration


@every_measure
@settings(max_examples=60, deadline=None)
@given(lists)
def test_ties_are_averaged_over_every_order(text: str, documents: tuple[list[int], list[int]]) -> None:
    scores, grades = documents
    measure = Measure.parse(text)
    found = evaluate(scores, grades, [0] * len(scores), measure=measure, no_relevant="zero")
    assert found.values[0] == pytest.approx(mean_over_orders(measure, scores, grades), rel=1e-12, abs=1e-15)


@every_measure
def test_many_queries_score_as_each_of_them_alone(text: str) -> None:
    scores, grades, query_ids = table(4, queries=40, tied=False)
    orders = [np.flatnonzero(query_ids == query) for query in range(40)]
    orders = [rows[np.argsort(-scores[rows])] for rows in orders]
    expected = [measure_of_order(Measure.parse(text), grades[rows].tolist()) for rows in orders]
    found = evaluate(scores, grades, query_ids, measure=text, no_relevant="zero")
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)


@every_measure
def test_equal_scores_in_different_queries_are_no_tie(text: str) -> None:
    both = evaluate([1, 1, 1, 1], [0, 3, 3, 3], ["a", "a", "b", "b"], measure=text).values
    alone = [
        evaluate([1, 1], [0, 3], ["a", "a"], measure=text).mean,
        evaluate([1, 1], [3, 3], ["b", "b"], measure=text).mean,
    ]
    assert both.tolist() == alone


def test_the_reciprocal_rank_of_many_tied_documents() -> None:
    # one relevant among 5,000 in any order: the mean of 1/p is the 5,000th harmonic number over 5,000
    found = evaluate(np.zeros(5000), np.arange(5000) == 7, np.zeros(5000, int), measure="mrr")
    assert found.mean == pytest.approx(math.fsum(1 / p for p in range(1, 5001)) / 5000, rel=1e-9)


# By hand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # grades 0 2 1 0 3, in this order
        ("dcg", 3 / math.log2(3) + 1 / math.log2(4) + 7 / math.log2(6)),
        ("dcg@3", 3 / math.log2(3) + 1 / math.log2(4)),
        ("dcg@3:gain=linear", 2 / math.log2(3) + 1 / math.log2(4)),
        ("ndcg@2", (3 / math.log2(3)) / (7 + 3 / math.log2(3))),
        ("mrr", 1 / 2),
        ("mrr@1", 0.0),
        ("mrr:grade=3", 1 / 5),
        ("map", (1 / 2 + 2 / 3 + 3 / 5) / 3),
        ("map@3", (1 / 2 + 2 / 3) / 3),
        ("map@3:grade=2", (1 / 2) / 2),
        ("precision", 3 / 5),
        ("precision@3", 2 / 3),
        ("precision@10", 3 / 10),
        ("recall@3", 2 / 3),
        ("recall@3:grade=2", 1 / 2),
        ("recall", 1.0),
        ("recall@10", 1.0),
    ],
)
def test_five_documents_by_hand(text: str, expected: float) -> None:
    assert evaluate([5, 4, 3, 2, 1], [0, 2, 1, 0, 3], ["q"] * 5, measure=text).mean == pytest.approx(
        expected, rel=1e-15
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ndcg@10", 1.0),
        ("dcg@10", 7.0),
        ("dcg@10:gain=linear", 3.0),
        ("mrr@10", 1.0),
        ("map@10", 1.0),
        ("precision@10", 0.1),
        ("precision", 1.0),
        ("recall@10", 1.0),
    ],
)
def test_one_document_and_a_cutoff_past_the_list(text: str, expected: float) -> None:
    assert evaluate([0.3], [3], ["q"], measure=text).mean == expected


@every_measure
@pytest.mark.parametrize(("no_relevant", "value"), [("zero", 0.0), ("one", 1.0)])
def test_queries_without_relevant_documents_count_as_chosen(text: str, no_relevant: Any, value: float) -> None:
    scores = evaluate([3, 2, 1], [0, 0, 3], ["none", "none", "some"], measure=text, no_relevant=no_relevant)
    assert scores.query_ids.tolist() == ["none", "some"]
    assert scores.values[0] == value
    assert (scores.without_relevant, scores.queries, scores.no_relevant) == (1, 2, no_relevant)


@every_measure
def test_queries_without_relevant_documents_are_left_out_by_default(text: str) -> None:
    scores = evaluate([3, 2, 1], [0, 0, 3], ["none", "none", "some"], measure=text)
    assert scores.query_ids.tolist() == ["some"]
    assert scores.values.tolist() == evaluate([1], [3], ["some"], measure=text).values.tolist()
    assert (scores.without_relevant, scores.queries, scores.no_relevant) == (1, 2, "leave-out")


def test_what_is_relevant_is_a_matter_of_the_measure() -> None:
    ranking = rank([2, 1], [1, 2], ["a", "b"])
    assert score(ranking, measure="mrr:grade=2").query_ids.tolist() == ["b"]
    assert score(ranking, measure="ndcg").query_ids.tolist() == ["a", "b"]


def test_relevance_may_be_real_valued() -> None:
    linear = evaluate([1, 2], [0.9, 0.25], ["q", "q"], measure="dcg:gain=linear").mean
    assert linear == pytest.approx(0.25 + 0.9 / math.log2(3), rel=1e-15)
    assert evaluate([1, 2], [0.9, 0.25], ["q", "q"], measure="mrr:grade=0.5").mean == 0.5


# What never changes them


@every_measure
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), tied=st.booleans())
def test_the_order_of_documents_changes_nothing(text: str, seed: int, tied: bool) -> None:
    scores, grades, query_ids = table(seed, queries=5, tied=tied)
    grades = grades * 1.1  # so that sums of gains are rounded
    before = evaluate(scores, grades, query_ids, measure=text, no_relevant="zero").values
    order = np.random.default_rng(seed + 1).permutation(len(scores))
    after = evaluate(scores[order], grades[order], query_ids[order], measure=text, no_relevant="zero").values
    assert after.tolist() == before.tolist()  # to the last bit


@every_measure
def test_the_names_of_queries_change_nothing(text: str) -> None:
    scores, grades, query_ids = table(5, queries=20, tied=True)
    other_way = np.array([f"q{query:02d}" for query in 19 - query_ids], dtype=object)
    numbered = evaluate(scores, grades, query_ids, measure=text, no_relevant="zero")
    named = evaluate(scores, grades, other_way, measure=text, no_relevant="zero")
    assert named.values.tolist() == numbered.values[::-1].tolist()
    assert named.query_ids.tolist() == [f"q{query:02d}" for query in range(20)]


@every_measure
@pytest.mark.parametrize(
    "rising", [lambda s: 3 * s - 7, lambda s: s**3, np.exp, np.float32, lambda s: np.where(s == 0, -np.inf, s)]
)
def test_a_rising_function_of_the_scores_changes_nothing(text: str, rising: Callable[[np.ndarray], np.ndarray]) -> None:
    scores, grades, query_ids = table(6, queries=20, tied=True)
    before = evaluate(scores, grades, query_ids, measure=text, no_relevant="zero").values
    assert (
        evaluate(rising(scores), grades, query_ids, measure=text, no_relevant="zero").values.tolist() == before.tolist()
    )


@pytest.mark.parametrize("text", ["ndcg", "ndcg@3", "ndcg@3:gain=linear", "mrr", "mrr@1", "map", "recall"])
@settings(deadline=None)
@given(grades=st.lists(st.floats(0, 5), min_size=1, max_size=30).map(lambda grades: [*grades, 4.0]))
def test_the_perfect_ranking_scores_1(text: str, grades: list[float]) -> None:
    assert evaluate(grades, grades, [0] * len(grades), measure=text).mean == pytest.approx(1, rel=1e-12)


def test_ndcg_is_never_above_1() -> None:
    assert (0.1 + 0.1 + 0.1) / 3 > 0.1  # what a mean of tied gains may do
    assert evaluate([1, 1, 1], [0.1, 0.1, 0.1], ["q"] * 3, measure="ndcg:gain=linear").mean == 1


@every_measure
def test_minus_zero_is_zero(text: str) -> None:
    scores, grades = [0.0, -0.0, 0.0, -0.0], [0, 1, 2, 3]
    assert evaluate(scores, grades, [0] * 4, measure=text).mean == evaluate([1] * 4, grades, [0] * 4, measure=text).mean


def test_the_arrays_given_stay_as_they_were() -> None:
    scores, grades, query_ids = table(7, queries=5, tied=True)
    copies = scores.copy(), grades.copy(), query_ids.copy()
    evaluate(scores, grades, query_ids)
    assert all(np.array_equal(given, copy) for given, copy in zip((scores, grades, query_ids), copies, strict=True))
    assert scores.flags.writeable
    assert query_ids.flags.writeable


def test_scores_cannot_be_written() -> None:
    scores = evaluate([1, 2], [1, 0], ["a", "b"], no_relevant="zero")
    with pytest.raises(ValueError, match="read-only"):
        scores.values[0] = 1


def test_offsets_say_where_queries_begin() -> None:
    assert query_index([0, 1, 4]).tolist() == [0, 1, 1, 1]
