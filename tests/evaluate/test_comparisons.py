"""Comparisons: t-tests against scipy and on chance alone, bootstrap intervals, wins and losses."""

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy import stats

from clickmix.errors import InputError, SettingError
from clickmix.evaluate import (
    Measure,
    Outcomes,
    Scores,
    TTest,
    bootstrap_interval,
    differences,
    evaluate,
    paired_t_test,
    student_t_test,
    wins_ties_losses,
)

# nDCG@10 of 8 runs each, invented
MBC = [0.7601, 0.7612, 0.7589, 0.7605, 0.7597, 0.7610, 0.7603, 0.7594]
AC = [0.7588, 0.7594, 0.7571, 0.7590, 0.7585, 0.7579, 0.7592, 0.7583]


def scores_of(
    values: list[float], *, query_ids: list[Any], measure: str = "ndcg@10", no_relevant: Any = "zero"
) -> Scores:
    return Scores(Measure.parse(measure), np.array(query_ids), np.array(values), 0, no_relevant)


@pytest.mark.parametrize("seed", range(5))
def test_the_paired_test_is_that_of_scipy(seed: int) -> None:
    a, b = np.random.default_rng(seed).normal(size=(2, 30))
    found, expected = paired_t_test(a, b), stats.ttest_rel(a, b)
    assert (found.t, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)
    assert (found.first, found.second, found.degrees) == (a.mean(), b.mean(), 29)
    assert found.difference == a.mean() - b.mean()
    assert found.kind == "paired t-test"


@pytest.mark.parametrize("size", [2, 8, 50])
def test_the_test_over_runs_is_that_of_scipy(size: int) -> None:
    rng = np.random.default_rng(size)
    a, b = rng.normal(size=size), rng.normal(0.5, size=8)
    found, expected = student_t_test(a, b), stats.ttest_ind(a, b, equal_var=True)
    assert (found.t, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)
    assert found.degrees == size + 6
    assert found.kind == "Student's t-test"


def test_eight_runs_by_hand() -> None:
    found = student_t_test(MBC, AC)
    pooled = (np.var(MBC, ddof=1) + np.var(AC, ddof=1)) / 2
    assert found.t == pytest.approx((np.mean(MBC) - np.mean(AC)) / math.sqrt(pooled * 2 / 8), rel=1e-9)
    assert (found.degrees, found.mark) == (14, "*")


@pytest.mark.parametrize(("p", "mark"), [(0.0, "*"), (0.0099, "*"), (0.01, "†"), (0.0999, "†"), (0.1, ""), (1.0, "")])
def test_the_marks_are_those_of_the_paper(p: float, mark: str) -> None:
    assert TTest("paired t-test", first=0.5, second=0.4, t=1.0, degrees=7, p=p).mark == mark


@pytest.mark.parametrize("test", [paired_t_test, student_t_test])
def test_where_there_is_no_difference_p_below_a_tenth_is_as_rare_as_it_says(test: Any) -> None:
    rng = np.random.default_rng(0)
    n = 2000
    rejected = sum(test(*rng.normal(size=(2, 8))).p < 0.1 for _ in range(n))
    assert abs(rejected - 0.1 * n) / math.sqrt(n * 0.1 * 0.9) < 5


@pytest.mark.parametrize("test", [paired_t_test, student_t_test])
def test_swapping_the_two_turns_the_sign(test: Any) -> None:
    there, back = test(MBC, AC), test(AC, MBC)
    assert (there.t, there.difference, there.p) == (-back.t, -back.difference, back.p)


@pytest.mark.parametrize("test", [paired_t_test, student_t_test])
@pytest.mark.parametrize(
    ("a", "b", "t", "p"),
    [
        ([0.5, 0.5], [0.5, 0.5], 0.0, 1.0),
        ([0.7, 0.7], [0.5, 0.5], math.inf, 0.0),
        ([0.5, 0.5], [0.7, 0.7], -math.inf, 0.0),
        ([0.1 + 0.2, 0.1 + 0.2], [0.3, 0.3], 0.0, 1.0),  # they differ by rounding only
    ],
)
def test_numbers_that_do_not_vary(test: Any, a: list[float], b: list[float], t: float, p: float) -> None:
    found = test(a, b)
    assert (found.t, found.p) == (t, p)


def test_differences_that_are_rounding_are_none() -> None:
    assert differences([0.1 + 0.2, 0.5, 1e6 + 1e-9], [0.3, 0.4, 1e6]).tolist() == [0.0, 0.5 - 0.4, 0.0]


def test_wins_ties_and_losses_are_counted() -> None:
    outcomes = wins_ties_losses([0.1 + 0.2, 0.5, 0.9, 0.1], [0.3, 0.4, 0.5, 0.2])
    assert outcomes == Outcomes(wins=2, ties=1, losses=1)
    assert str(outcomes) == "2/1/1"


def test_scores_are_compared_query_by_query() -> None:
    grades, query_ids = [1, 0, 0, 1], ["a", "a", "b", "b"]
    good = evaluate([2, 1, 1, 2], grades, query_ids, measure="mrr")
    fair = evaluate([2, 1, 2, 1], grades, query_ids, measure="mrr")
    assert differences(good, fair).tolist() == [0.0, 0.5]
    assert str(wins_ties_losses(good, fair)) == "1/1/0"
    assert paired_t_test(good, fair) == paired_t_test([1.0, 1.0], [1.0, 0.5])


# Bootstrap


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    n = 400
    found = [bootstrap_interval(rng.normal(size=100), rng=rng, level=0.9, resamples=400) for _ in range(n)]
    covered = sum(interval.low < 0 < interval.high for interval in found)
    # a percentile interval is that of the normal distribution, on 100 values of which the variance is over n, not n - 1
    level = 2 * stats.t.cdf(stats.norm.ppf(0.95) * math.sqrt(99 / 100), df=99) - 1
    assert abs(covered - level * n) / math.sqrt(n * level * (1 - level)) < 5


def test_the_interval_of_a_normal_mean_is_near_the_known_one() -> None:
    values = np.random.default_rng(1).normal(size=400)
    found = bootstrap_interval(values, rng=np.random.default_rng(2))
    error = values.std() / math.sqrt(400)
    # of 10,000 resamples the 2.5 % quantile has the standard error sqrt(.025 .975 / 10,000) / normal density there,
    # and the values' skewness, with its standard error sqrt(6 / 400), moves it by skewness (z^2 - 1) / (6 sqrt(400))
    z = 1.96
    resampling = math.sqrt(0.025 * 0.975 / 10_000) / stats.norm.pdf(z)
    skewness = math.sqrt(6 / 400) * (z**2 - 1) / (6 * math.sqrt(400))
    tolerance = 5 * math.hypot(resampling, skewness) * error
    mean = values.mean()
    assert (found.low, found.high) == pytest.approx((mean - z * error, mean + z * error), abs=tolerance)
    assert found.level == 0.95


def test_the_same_seed_gives_the_same_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).random(50)
    first = bootstrap_interval(values, rng=np.random.default_rng(3), resamples=1000)
    monkeypatch.setattr("clickmix.evaluate.comparisons.DRAWS_AT_ONCE", 7 * 50)  # in pieces of 7 resamples
    assert bootstrap_interval(values, rng=np.random.default_rng(3), resamples=1000) == first


def test_values_that_do_not_vary_have_an_interval_of_one_point() -> None:
    interval = bootstrap_interval([0.5] * 4, rng=np.random.default_rng(0), resamples=10)
    assert (interval.low, interval.high) == (0.5, 0.5)


# Bad input


@pytest.mark.parametrize("level", [0, 1, -0.1, 95])
def test_a_level_that_is_no_probability_is_refused(level: float) -> None:
    message = f"level: {level!r} found, expected a number between 0 and 1, for instance 0.95."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        bootstrap_interval([1, 2], rng=np.random.default_rng(0), level=level)


def test_no_resamples_are_refused() -> None:
    message = "resamples: 0 found, expected a whole number from 1, for instance 10000."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        bootstrap_interval([1, 2], rng=np.random.default_rng(0), resamples=0)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 2, 3], [1, 2], "3 numbers against 2: a paired comparison needs one of each per query or run."),
        ([1], [2], "1 differences: a t-test needs at least 2."),
        ([], [], "first: expected one finite number per query or run, and at least one."),
        ([1, 2], [1, math.nan], "second: expected one finite number per query or run, and at least one."),
        ([[1, 2]], [1, 2], "first: expected one finite number per query or run, and at least one."),
        (["a", "b"], [1, 2], "first: expected one finite number per query or run, and at least one."),
        (
            scores_of([0.5, 0.6], query_ids=[1, 2]),
            scores_of([0.5, 0.6], query_ids=[1, 2], measure="mrr@10"),
            "ndcg@10 against mrr@10: compare scores of the same measure.",
        ),
        (
            scores_of([0.5, 0.6], query_ids=[1, 2]),
            scores_of([0.5, 0.6], query_ids=[1, 2], no_relevant="one"),
            "Queries without relevant documents are treated as 'zero' in the first and as 'one' in the second. "
            "Evaluate both in the same way.",
        ),
        (
            scores_of([0.5, 0.6], query_ids=[1, 2]),
            scores_of([0.5, 0.6], query_ids=[2, 3]),
            "The queries differ: 2 in the first, 2 in the second, 1 in both. Evaluate both on the same queries.",
        ),
        (
            scores_of([0.5, 0.6], query_ids=[1, 2]),
            scores_of([0.5, 0.6, 0.7], query_ids=["1", "2", "3"]),
            "The queries differ: 2 in the first, 3 in the second, 0 in both. Evaluate both on the same queries.",
        ),
        (
            scores_of([0.5, 0.6], query_ids=[1, 2]),
            scores_of([0.5, 0.6], query_ids=["1", "2"]),
            "The queries differ: 2 in the first, 2 in the second, 0 in both. Evaluate both on the same queries.",
        ),
    ],
)
def test_what_cannot_be_paired_is_refused(first: Any, second: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        paired_t_test(first, second)


def test_one_run_is_too_few() -> None:
    with pytest.raises(InputError, match=r"^1 runs of the second: a t-test needs at least 2\.$"):
        student_t_test([0.5, 0.6], [0.5])


def test_queries_are_not_independent_runs() -> None:
    scores: Any = scores_of([0.5, 0.6], query_ids=[1, 2])
    message = "The scores of queries are paired, not independent runs. Use paired_t_test."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        student_t_test(scores, scores)
