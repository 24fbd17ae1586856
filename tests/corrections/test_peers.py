"""Smoothed rates and what else other tools have: against slow versions, against the truth, degenerate logs."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from clickmix.corrections.coec import ClicksOverExpected
from clickmix.corrections.coec_smoothed import SmoothedClicksOverExpected
from clickmix.corrections.correction import Correction
from clickmix.corrections.ctr_smoothed import SmoothedRate
from clickmix.corrections.ctr_then_rank import RateThenRank
from clickmix.corrections.empirical_bayes import STRONGEST, beta_interval_query, fit_beta, fit_gamma, gamma_interval
from clickmix.corrections.none import NoCorrection
from clickmix.counts.counts import Counts
from clickmix.errors import InputError, SettingError
from clickmix.mixtures.mixture import Verdict
from moving_logs import moving_counts
from oracles_corrections import documents, expected_clicks, position_rates
from oracles_peers import (
    beta_binomial_likelihood,
    beta_inside,
    by_rate_then_position,
    gamma_inside,
    gamma_poisson_likelihood,
    smoothed_rate,
)

Floats = NDArray[np.float64]


def one_position(impressions: Any, clicks: Any, position: int = 1) -> Counts:
    ids = np.arange(len(clicks))
    return Counts.from_arrays(ids // 10, ids, np.full(len(ids), position), impressions, clicks)


def beta_binomial(mean: float, strength: float, *, documents: int, impressions: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return rng.binomial(impressions, rng.beta(mean * strength, (1 - mean) * strength, documents)).astype(np.float64)


class TestBetaPrior:
    def test_no_other_mean_or_strength_nearby_is_more_likely(self) -> None:
        rng = np.random.default_rng(0)
        n = rng.integers(1, 60, 300)
        c = rng.binomial(n, rng.beta(0.8, 6, 300))
        prior = fit_beta(n, c, np.ones(300))
        cells = list(zip(n.tolist(), c.tolist(), strict=True))
        best = beta_binomial_likelihood(cells, prior.mean, prior.strength)
        near = [
            beta_binomial_likelihood(cells, prior.mean * by, prior.strength * and_by)
            for by in (0.999, 1, 1.001)
            for and_by in (0.999, 1, 1.001)
        ]
        assert max(near) <= best + 1e-9

    @pytest.mark.parametrize(("mean", "strength"), [(0.1, 8.0), (0.02, 50.0), (0.6, 2.0)])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_truth_is_within_five_standard_errors(self, mean: float, strength: float, seed: int) -> None:
        """Errors of log-odds and log strength from the curvature of the likelihood at what was found."""
        c = beta_binomial(mean, strength, documents=4000, impressions=40, seed=seed)
        values, weight = np.unique(c, return_counts=True)
        prior = fit_beta(np.full(len(values), 40), values, weight)

        def likelihood(logit: float, log_strength: float) -> float:
            m, s = 1 / (1 + np.exp(-logit)), float(np.exp(log_strength))
            each = zip(values.tolist(), weight.tolist(), strict=True)
            return float(sum(w * beta_binomial_likelihood([(40, int(v))], m, s) for v, w in each))

        found = np.array([np.log(prior.mean / (1 - prior.mean)), np.log(prior.strength)])
        truth = np.array([np.log(mean / (1 - mean)), np.log(strength)])
        h = 1e-3
        information = np.empty((2, 2))
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            e, f = h * np.eye(2)[i], h * np.eye(2)[j]
            corners = [likelihood(*(found + s * e + t * f)) for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            information[i, j] = -(corners[0] - corners[1] - corners[2] + corners[3]) / (4 * h * h)
        error = np.sqrt(np.diag(np.linalg.inv(information)))
        assert np.abs((found - truth) / error).max() < 5

    @pytest.mark.parametrize("seed", range(40))
    def test_it_converges_whatever_documents_are_like(self, seed: int) -> None:
        """Where documents hardly differ, or nearly all are clicked always or never, a climb easily stops too early."""
        rng = np.random.default_rng(seed)
        mean, strength = 0.98 * rng.beta(0.5, 2) + 0.01, np.exp(rng.uniform(-4, 9))
        n = rng.integers(1, rng.choice([3, 60, 3000]), 60)
        c = rng.binomial(n, rng.beta(mean * strength, (1 - mean) * strength, 60))
        c[:2] = 1, 0  # without any click or any skip, nothing is fitted
        prior = fit_beta(n, c, np.ones(60))
        assert prior.verdict is not Verdict.NOT_CONVERGED
        cells = list(zip(n.tolist(), c.tolist(), strict=True))
        best = beta_binomial_likelihood(cells, prior.mean, prior.strength)
        for by, and_by in ((1.01, 1), (0.99, 1), (1, 1.05), (1, 0.95)):
            if 0.01 <= prior.strength * and_by <= STRONGEST:
                assert beta_binomial_likelihood(cells, min(prior.mean * by, 1), prior.strength * and_by) <= best + 1e-6

    @pytest.mark.parametrize(("clicks", "verdict", "mean"), [
        ([0, 0, 0], Verdict.NO_CLICKS, 0.5 / 31), ([10, 10, 10], Verdict.ALL_CLICKED, 30.5 / 31),
        ([3, 3, 3], Verdict.ONE_RATE, 0.3), ([4], Verdict.ONE_RATE, 0.4),
    ])  # fmt: skip
    def test_documents_that_do_not_differ_have_a_verdict(
        self, clicks: list[int], verdict: Verdict, mean: float
    ) -> None:
        prior = fit_beta(np.full(len(clicks), 10), np.array(clicks), np.ones(len(clicks)))
        assert (prior.verdict, prior.strength) == (verdict, STRONGEST)
        assert prior.mean == pytest.approx(mean, abs=1e-12)

    def test_single_impressions_say_nothing_of_how_documents_differ(self) -> None:
        assert fit_beta(np.array([1, 1]), np.array([0, 1]), np.array([70, 30])).verdict is Verdict.ONE_RATE

    def test_documents_clicked_always_or_never_have_a_weak_prior(self) -> None:
        prior = fit_beta(np.array([50, 50]), np.array([0, 50]), np.array([70, 30]))
        assert prior.verdict is None
        assert prior.strength < 0.2


class TestGammaPrior:
    def test_no_other_shape_nearby_is_more_likely(self) -> None:
        rng = np.random.default_rng(0)
        expected = rng.uniform(0.1, 20, 500)
        clicks = rng.poisson(expected * rng.gamma(1.5, 1 / 1.5, 500))
        prior = fit_gamma(clicks, expected)
        pairs = list(zip(expected.tolist(), clicks.tolist(), strict=True))
        best = gamma_poisson_likelihood(pairs, prior.shape)
        assert max(gamma_poisson_likelihood(pairs, prior.shape * by) for by in (0.99, 0.999, 1.001, 1.01)) < best

    @pytest.mark.parametrize("shape", [0.3, 2.0, 20.0])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_truth_is_within_five_standard_errors(self, shape: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        expected = rng.uniform(1, 30, 4000)
        clicks = rng.poisson(expected * rng.gamma(shape, 1 / shape, 4000))
        pairs = list(zip(expected.tolist(), clicks.tolist(), strict=True))
        found = fit_gamma(clicks, expected).shape
        below, at, above = (gamma_poisson_likelihood(pairs, found * float(np.exp(step))) for step in (-0.01, 0, 0.01))
        error = (-(below - 2 * at + above) / 0.01**2) ** -0.5
        assert abs(np.log(found / shape)) < 5 * error

    @pytest.mark.parametrize(("clicks", "expected", "verdict"), [
        ([0, 0], [0.0, 0.0], Verdict.NO_CLICKS), ([3, 3, 4], [3.0, 3.5, 3.5], Verdict.ONE_RATE),
    ])  # fmt: skip
    def test_documents_that_do_not_differ_have_a_verdict(self, clicks: Any, expected: Any, verdict: Verdict) -> None:
        prior = fit_gamma(np.array(clicks), np.array(expected))
        assert (prior.verdict, prior.shape) == (verdict, STRONGEST)


SMALL, LARGE = [1e-4, 0.01, 0.05, 0.1, 0.3, 0.7, 1.0, 1.5], [3.0, 10.0, 100.0, 1e4, 1e6]


def beta_intervals(a: float, b: float) -> list[float]:
    """How much of Beta(a, b) and of Beta(b, a) lies in the interval, widened to the mean as labels do."""
    table = f"(SELECT CAST({a!r} AS DOUBLE) AS a, CAST({b!r} AS DOUBLE) AS b UNION ALL SELECT {b!r}, {a!r}) AS shapes"
    rows = duckdb.execute(f"SELECT a, b, low, high FROM ({beta_interval_query(table)})").fetchall()
    return [beta_inside(min(low, a / (a + b)), max(high, a / (a + b)), a, b) for a, b, low, high in rows]


def gamma_interval_holds(shape: float) -> float:
    """How much of Gamma(shape, 2) lies in the interval, widened to the mean as labels do."""
    ends = ", ".join(gamma_interval(f"CAST({shape!r} AS DOUBLE)", "2.0"))
    ((low, high),) = duckdb.execute(f"SELECT {ends}").fetchall()
    return gamma_inside(low, max(high, shape / 2), shape, 2.0)


class TestIntervals:
    @pytest.mark.parametrize("b", [1.0, 1.5, *LARGE])  # one impression makes the larger shape 1 or more, or nearly
    @pytest.mark.parametrize("a", [*SMALL, *LARGE])
    def test_beta_holds_95_percent_or_more(self, a: float, b: float) -> None:
        assert min(beta_intervals(a, b)) > 0.95 - 1e-4

    @pytest.mark.parametrize("b", LARGE)
    @pytest.mark.parametrize("a", LARGE)
    def test_beta_holds_hardly_more_where_there_are_clicks_and_skips(self, a: float, b: float) -> None:
        assert max(beta_intervals(a, b)) < 0.9525

    @pytest.mark.parametrize("shape", [*SMALL, *LARGE])
    def test_gamma_holds_95_percent_or_more(self, shape: float) -> None:
        assert gamma_interval_holds(shape) > 0.95 - 1e-4

    @pytest.mark.parametrize("shape", LARGE)
    def test_gamma_holds_hardly_more_where_there_are_clicks(self, shape: float) -> None:
        assert gamma_interval_holds(shape) < 0.9525


class TestSmoothedRate:
    def test_labels_equal_a_slow_version(self) -> None:
        counts = moving_counts(queries=40)
        fit = SmoothedRate().fit(counts)
        means, strengths = ({k: getattr(p, name) for k, p in fit.priors.items()} for name in ("mean", "strength"))
        slow = [smoothed_rate(cells, means, strengths)[0] for cells in documents(counts).values()]
        assert fit.label(counts).relevance == pytest.approx(slow, abs=1e-9)

    def test_intervals_hold_95_percent_of_the_posterior(self) -> None:
        counts = moving_counts(queries=40)
        fit = SmoothedRate().fit(counts)
        means, strengths = ({k: getattr(p, name) for k, p in fit.priors.items()} for name in ("mean", "strength"))
        labels = fit.label(counts)
        inside = [
            beta_inside(low, high, *smoothed_rate(cells, means, strengths)[1:])
            for cells, low, high in zip(
                documents(counts).values(), labels.columns["low"], labels.columns["high"], strict=True
            )
        ]
        assert min(inside) > 0.95 - 1e-3
        clicked = labels.clicks >= 2
        assert max(np.array(inside)[clicked]) < 0.96

    def test_every_position_has_its_own_prior(self) -> None:
        """Rates of 0.3 at position 1 and 0.05 at position 2; the document with one impression is drawn to its own."""
        upper, lower = (beta_binomial(mean, 20, documents=400, impressions=50, seed=1) for mean in (0.3, 0.05))
        ids = np.arange(802)
        clicks = np.concatenate([upper, lower, [0, 0]])
        impressions = np.concatenate([np.full(800, 50), [1, 1]])
        position = np.concatenate([np.repeat([1, 2], 400), [1, 2]])
        counts = Counts.from_arrays(ids, ids, position, impressions, clicks)
        fit = SmoothedRate().fit(counts)
        assert [fit.priors[k].mean for k in (1, 2)] == pytest.approx([upper.mean() / 50, lower.mean() / 50], rel=0.02)
        last = fit.label(counts).relevance[-2:]
        expected = [p.mean * p.strength / (1 + p.strength) for p in fit.priors.values()]
        assert last == pytest.approx(expected, abs=1e-12)

    def test_a_position_with_few_documents_shares_the_prior_of_its_neighbour(self) -> None:
        clicks = beta_binomial(0.2, 10, documents=105, impressions=30, seed=0)
        position = np.repeat([1, 2], [100, 5])
        fit = SmoothedRate().fit(Counts.from_arrays(np.arange(105), np.arange(105), position, [30] * 105, clicks))
        assert fit.priors[1] == fit.priors[2]

    @pytest.mark.parametrize(("clicks", "summary", "label"), [
        ([0] * 40, "1 (no clicks)", 0.5 / 201), ([5] * 40, "1 (all clicked)", 200.5 / 201),
        ([2] * 40, "1 (one rate)", 0.4), ([2], "1 (one rate)", 0.4),
    ])  # fmt: skip
    def test_a_log_that_says_nothing_gives_every_document_the_rate(
        self, clicks: list[int], summary: str, label: float
    ) -> None:
        counts = one_position([5] * len(clicks), clicks)
        fit = SmoothedRate().fit(counts)
        message = f"Clicks cannot tell documents apart at position(s) {summary}. They get the rate of the position."
        assert fit.summary == message
        assert fit.label(counts).relevance == pytest.approx([label] * len(clicks), abs=1e-5)

    def test_a_position_where_nobody_differs_does_not_silence_the_others(self) -> None:
        """A document half at position 2, where there are no clicks, keeps half the distance to the prior or more."""
        first = beta_binomial(0.3, 4, documents=100, impressions=50, seed=0)
        ids = np.arange(100)
        counts = Counts.from_arrays(
            np.tile(ids, 2), np.tile(ids, 2), np.repeat([1, 2], 100), [50] * 200, np.concatenate([first, [0] * 100])
        )
        fit = SmoothedRate().fit(counts)
        assert fit.priors[2].verdict is Verdict.NO_CLICKS
        assert np.ptp(fit.label(counts).relevance) > 0.8 * np.ptp(first / 100)


class TestSmoothedClicksOverExpected:
    def test_labels_equal_a_slow_version(self) -> None:
        counts = moving_counts(queries=40)
        found = list(documents(counts).values())
        rates = position_rates([cell for cells in found for cell in cells])
        fit = SmoothedClicksOverExpected().fit(counts)
        a = fit.prior.shape
        clicks = [sum(c for _, _, c in cells) for cells in found]
        expected = [expected_clicks(cells, rates, best=False) for cells in found]
        slow = [(c + a) / (e + a) for c, e in zip(clicks, expected, strict=True)]
        labels = fit.label(counts)
        assert labels.estimate == pytest.approx(slow, abs=1e-9)
        assert labels.relevance == pytest.approx(np.minimum(slow, 1), abs=1e-9)
        prior = fit_gamma(np.array(clicks), np.array(expected))
        assert prior.shape == pytest.approx(a, rel=1e-9)

    def test_intervals_hold_95_percent_of_the_posterior(self) -> None:
        counts = moving_counts(queries=40)
        fit = SmoothedClicksOverExpected(clip="twenty").fit(counts)
        labels = fit.label(counts)
        shape = labels.clicks + fit.prior.shape
        rate = shape / labels.estimate
        ends = (20 * labels.columns[end] for end in ("low", "high"))
        inside = [gamma_inside(*each) for each in zip(*ends, shape, rate, strict=True)]
        assert min(inside) > 0.95 - 1e-3
        assert max(np.array(inside)[labels.clicks >= 2]) < 0.96

    def test_a_document_hardly_shown_is_average(self) -> None:
        counts = moving_counts(queries=40)
        fit = SmoothedClicksOverExpected("twenty").fit(counts)
        once = Counts.from_arrays([0, 0], [0, 1], [6, 6], [1, 1], [0, 1])
        smoothed, plain = fit.label(once).estimate, ClicksOverExpected().fit(counts).label(once).estimate
        assert plain.tolist() == pytest.approx([0, 1 / fit.rates[6]])
        a = fit.prior.shape
        assert smoothed.tolist() == pytest.approx([a / (fit.rates[6] + a), (1 + a) / (fit.rates[6] + a)])
        assert 0.9 < smoothed[0] < 1 < smoothed[1] < plain[1] / 2

    @pytest.mark.parametrize(
        ("clicks", "verdict"), [([0] * 40, "no clicks"), ([2] * 40, "one rate"), ([2], "one rate")]
    )
    def test_a_log_that_says_nothing_makes_every_document_average(self, clicks: list[int], verdict: str) -> None:
        counts = one_position([5] * len(clicks), clicks)
        fit = SmoothedClicksOverExpected().fit(counts)
        assert fit.summary == f"Clicks cannot tell documents apart ({verdict}): all estimates are close to 1."
        assert fit.label(counts).estimate == pytest.approx(1.0, abs=1e-5)


class TestRateThenRank:
    def test_orders_as_fractions_do(self) -> None:
        counts = moving_counts(queries=40)
        cells = list(documents(counts).values())
        relevance = RateThenRank().label(counts).relevance
        order = by_rate_then_position(cells)
        assert (np.diff(relevance[order]) <= 0).all()

    def test_labels_are_click_through_rates(self) -> None:
        counts = moving_counts(queries=10)
        rate = NoCorrection().label(counts).relevance
        assert RateThenRank().label(counts).relevance == pytest.approx(rate, abs=2e-12)

    @pytest.mark.parametrize("clicks", [0, 30, 60])
    def test_ties_go_to_the_higher_position(self, clicks: int) -> None:
        counts = Counts.from_arrays(
            ["q"] * 4, ["c", "c", "a", "b"], [1, 90, 45, 46], [30, 30, 60, 60], [clicks // 2] * 2 + [clicks] * 2
        )
        labels = RateThenRank().label(counts)
        assert labels.doc_id[np.argsort(-labels.relevance)].tolist() == ["a", "c", "b"]

    def test_position_reorders_no_rates_of_documents_with_900_000_impressions(self) -> None:
        n = 900_000
        counts = Counts.from_arrays(["q"] * 2, ["a", "b"], [1, 10**9], [n, n - 1], [n // 2 - 1, n // 2 - 1])
        low, high = RateThenRank().label(counts).relevance
        assert low < high

    def test_the_deepest_positions_are_read(self) -> None:
        counts = Counts.from_arrays(["q"], ["a"], [2**61], [2**60], [2**60])
        assert RateThenRank().label(counts).relevance == pytest.approx([1.0], abs=2e-12)


@pytest.mark.parametrize(("correction", "name"), [
    (SmoothedRate(), "ctr-smoothed"), (SmoothedClicksOverExpected(), "coec-smoothed"),
])  # fmt: skip
class TestBadInput:
    def test_positions_that_were_not_fitted_are_refused(self, correction: Correction, name: str) -> None:
        fit = correction.fit(moving_counts(queries=5))
        message = (
            f"Position 7 is not in the log that {name} was fitted on. Fit {name} on a log with every position that you "
            "want to label."
        )
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            fit.label(Counts.from_arrays([1], [1], [7], [1], [0]))

    def test_contexts_are_refused(self, correction: Correction, name: str) -> None:
        message = (
            f"{name} knows only positions, but the counts have context columns: device. Count the log without context "
            "columns, or one context at a time."
        )
        with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
            correction.fit(moving_counts(queries=5, device=True))
