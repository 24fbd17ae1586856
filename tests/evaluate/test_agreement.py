"""Agreement with judgments against the slow and obvious, and its bootstrap against resampling queries one by one."""

from __future__ import annotations

import itertools
import math
from statistics import fmean

import numpy as np
import pytest

from clickmix.evaluate import Measure
from clickmix.evaluate.agreement import JudgedDocuments
from clickmix.evaluate.resampling import Bootstrap, Measured
from oracles_evaluate import mean_over_orders


def judged(seed: int = 0, *, queries: int = 8, most: int = 6, lowest: int = 0) -> tuple[JudgedDocuments, np.ndarray]:
    """A few documents per query, with scores and positions that follow grades a little; many ties."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), rng.integers(2, most + 1, queries))
    grade = rng.integers(0, 4, len(query)).astype(float) + lowest
    position = np.maximum(1.0, 4 - grade + lowest + rng.integers(-2, 3, len(query)) + rng.choice([0, 0.3], len(query)))
    scores = np.round(0.2 * grade + rng.random(len(query)), 1)
    return JudgedDocuments(query, grade, position), scores


def by_query(documents: JudgedDocuments) -> list[list[int]]:
    return [np.flatnonzero(documents.query == q).tolist() for q in range(documents.queries)]


@pytest.mark.parametrize("seed", range(3))
def test_ndcg_is_the_mean_over_all_orders_of_tied_documents(seed: int) -> None:
    documents, scores = judged(seed)
    slow = [
        mean_over_orders(Measure.parse("ndcg@10"), scores[rows].tolist(), documents.grade[rows].tolist())
        for rows in by_query(documents)
        if len(set(documents.grade[rows].tolist())) > 1
    ]
    assert documents.measures(scores)["ndcg"].value == pytest.approx(fmean(slow), abs=1e-12)
    assert len(documents.varied) == len(slow)


def test_grades_count_from_the_lowest_common_one() -> None:
    """Of 20 grades one is 0, below a tenth; the gain of grade 3 is then 2^(3 - 2) - 1."""
    grade = np.array([0.0, *[2.0] * 12, *[3.0] * 7])
    documents = JudgedDocuments(np.zeros(20, int), grade, np.arange(1.0, 21))
    assert documents.lowest == 2
    assert documents.gained.tolist() == [0.0] * 13 + [1.0] * 7


def test_a_scale_of_100_is_squeezed() -> None:
    documents = JudgedDocuments(np.zeros(4, int), np.array([0.0, 50, 80, 100]), np.arange(1.0, 5))
    assert documents.gained.tolist() == [0.0, 2.5, 4.0, 5.0]


def slow_pairs(documents: JudgedDocuments, rows: list[int]) -> list[tuple[int, int]]:
    """(better, worse) for all pairs of different grades."""
    grade = documents.grade
    return [pair for pair in itertools.permutations(rows, 2) if grade[pair[0]] > grade[pair[1]]]


def credit(scores: np.ndarray, pair: tuple[int, int]) -> float:
    a, b = scores[pair[0]], scores[pair[1]]
    return 1.0 if a > b else 0.5 if a == b else 0.0


@pytest.mark.parametrize("seed", range(3))
def test_pairs_against_a_loop(seed: int) -> None:
    documents, scores = judged(seed)
    pairs = [slow_pairs(documents, rows) for rows in by_query(documents)]
    slow = fmean(fmean(credit(scores, pair) for pair in each) for each in pairs if each)
    assert documents.measures(scores)["pairs"].value == pytest.approx(slow)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_place_against_a_loop(seed: int) -> None:
    documents, scores = judged(seed)
    place = np.rint(documents.position)
    everything = list(range(len(scores)))
    pairs = [pair for pair in slow_pairs(documents, everything) if place[pair[0]] == place[pair[1]]]
    assert documents.measures(scores)["same_place"].value == pytest.approx(fmean(credit(scores, p) for p in pairs))


@pytest.mark.parametrize("seed", range(3))
def test_overturned_pairs_against_a_loop(seed: int) -> None:
    documents, scores = judged(seed)
    pairs = [pair for rows in by_query(documents) for pair in slow_pairs(documents, rows)]

    def overturned(pair: tuple[int, int]) -> bool:
        by_score = scores[pair[0]] - scores[pair[1]]
        by_production = documents.position[pair[1]] - documents.position[pair[0]]
        return bool(by_score * by_production < 0)

    turned = [pair for pair in pairs if overturned(pair)]
    found = documents.measures(scores)
    assert found["overturned"].value == pytest.approx(len(turned) / len(pairs))
    assert found["right"].value == pytest.approx(fmean(scores[a] > scores[b] for a, b in turned))


def test_production_order_says_nothing_at_the_same_place() -> None:
    documents, _ = judged()
    documents = JudgedDocuments(documents.query, documents.grade, np.rint(documents.position))
    assert documents.measures(-documents.position)["same_place"].value == 0.5


def test_long_lists_give_a_sample_of_pairs() -> None:
    rng = np.random.default_rng(0)
    grade = rng.integers(0, 2, 3000).astype(float)
    documents = JudgedDocuments(np.zeros(3000, int), grade, np.ones(3000))
    assert len(documents.pairs[0]) < 64 * 64
    assert documents.measures(grade)["pairs"].value == 1.0


def test_true_relevance_has_too_many_values_for_all_pairs_of_them() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(500)
    documents = JudgedDocuments(np.repeat(np.arange(50), 10), truth, np.tile(np.arange(1.0, 11), 50))
    found = documents.measures(truth)
    assert (found["ndcg"].value, found["pairs"].value, found["same_place"].value) == (1.0, 1.0, 1.0)
    assert documents.measures(-truth)["same_place"].value == 0.0


def test_the_bootstrap_of_a_mean_has_its_standard_error() -> None:
    values = np.random.default_rng(0).random(300)
    found = Bootstrap(300).interval(Measured(values, np.ones(300)))
    assert found.value == pytest.approx(values.mean())
    expected = values.std() / math.sqrt(300)
    assert found.spread == pytest.approx(expected, rel=5 / math.sqrt(2 * 2000))  # 5 standard errors of a deviation
    assert found.margin == pytest.approx(1.96 * expected, rel=0.15)


def test_blocks_of_queries_scatter_as_queries_do() -> None:
    values = np.random.default_rng(0).random(20_000)
    found = Bootstrap(20_000).interval(Measured(values, np.ones(20_000)))
    assert found.spread == pytest.approx(values.std() / math.sqrt(20_000), rel=0.15)


def test_the_bootstrap_of_pairs_between_queries_scatters_as_resampled_logs_do() -> None:
    """Pairs at one position join two queries: the first-order bootstrap against recomputing AUC on 200 resamples."""
    documents, scores = judged(4, queries=120, most=8)
    rng = np.random.default_rng(1)
    rows = by_query(documents)
    slow = []
    for _ in range(200):
        drawn = rng.integers(0, len(rows), len(rows))
        picked = np.concatenate([rows[q] for q in drawn])
        again = JudgedDocuments(np.zeros(len(picked), int), documents.grade[picked], documents.position[picked])
        slow.append(again.measures(scores[picked])["same_place"].value)
    found = Bootstrap(documents.queries).interval(documents.measures(scores)["same_place"])
    assert found.spread == pytest.approx(np.std(slow), rel=5 / math.sqrt(2 * 200))


def test_paired_differences_are_narrower_than_unpaired_ones() -> None:
    rng = np.random.default_rng(0)
    first = rng.random(200)
    second = first - 0.01 + 0.01 * rng.standard_normal(200)
    one, other = Measured(first, np.ones(200)), Measured(second, np.ones(200))
    drawn = Bootstrap(200)
    found = drawn.difference(one, other)
    assert found.value == pytest.approx((first - second).mean())
    assert found.low > 0
    assert found.p < 0.01
    assert found.spread < drawn.interval(one).spread / 5
    back = drawn.difference(other, one)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))


def test_a_difference_from_itself_is_none() -> None:
    same = Measured(np.random.default_rng(0).random(50), np.ones(50))
    found = Bootstrap(50).difference(same, same)
    assert (found.value, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_two_of_many_equals_are_rarely_called_different() -> None:
    """Eight rankings that differ by chance alone: in 5 % of the logs some interval of all pairs leaves out 0."""
    rng, logs, queries = np.random.default_rng(0), 200, 100
    wrong = 0
    for seed in range(logs):
        measured = [Measured(values, np.ones(queries)) for values in rng.random((8, queries))]
        resamples = Bootstrap(queries, seed=seed)
        tail = resamples.tail(measured)
        ends = [resamples.ends(*pair, tail) for pair in itertools.combinations(measured, 2)]
        wrong += any(low > 0 or high < 0 for low, high in ends)
    assert abs(wrong / logs - 0.05) < 5 * math.sqrt(0.05 * 0.95 / logs)


def test_of_one_pair_alone_the_interval_is_the_usual_one() -> None:
    rng = np.random.default_rng(0)
    first, second = (Measured(rng.random(100), np.ones(100)) for _ in range(2))
    resamples = Bootstrap(100)
    found, tail = resamples.difference(first, second), resamples.tail([first, second])
    assert tail == pytest.approx(0.025, abs=0.001)
    assert resamples.ends(first, second, tail) == pytest.approx((found.low, found.high), abs=found.spread / 20)


def test_what_is_the_same_does_not_differ() -> None:
    same = Measured(np.random.default_rng(0).random(50), np.ones(50))
    assert Bootstrap(50).ends(same, same, 0.025) == (0, 0)
    assert math.isnan(Bootstrap(50).ends(same, Measured(np.zeros(50), np.zeros(50)), 0.025)[0])


def test_nothing_to_measure_is_nan() -> None:
    found = Bootstrap(3).interval(Measured(np.zeros(3), np.zeros(3)))
    assert math.isnan(found.value)
    assert math.isnan(Bootstrap(0).interval(Measured(np.zeros(0), np.zeros(0))).margin)
