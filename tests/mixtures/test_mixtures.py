"""The mixtures: EM against oracles, the likelihood, recovery, invariances, degenerate groups, the choice by BIC."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binom, norm

from clickmix.groups.observations import Observations
from clickmix.mixtures import em
from clickmix.mixtures.distributions import BinomialCounts, Distribution, GaussianRates, distribution_of
from clickmix.mixtures.group_likelihood import GroupLikelihood, fit_mixture
from clickmix.mixtures.mixture import Verdict
from clickmix.mixtures.single import fit_group
from oracles_mixtures import enumerated
from simulation import PRIORS, simulated

Array = np.ndarray[Any, Any]
FEW_CELLS = [[(0, 5, 1)], [(0, 9, 4)], [(0, 40, 2)]]  # by document: group, impressions, clicks
FEW = Observations.histogram([5, 9, 40], [1, 4, 2], [1, 1, 1])
FAMILIES: list[Distribution] = [BinomialCounts(), BinomialCounts(5), GaussianRates()]


def two_rates(
    seed: int,
    *,
    documents: int = 2000,
    impressions: int = 60,
    rates: tuple[float, float] = (0.1, 0.4),
    weight: float = 0.3,
) -> tuple[Array, Array]:
    """Documents of one group, impressions Poisson, clicks at one of two rates."""
    rng = np.random.default_rng(seed)
    n = 1 + rng.poisson(impressions, documents)
    c = rng.binomial(n, np.where(rng.random(documents) < weight, rates[1], rates[0]))
    return n, c


def observed(n: Any, c: Any) -> Observations:
    """Every document a row of its own."""
    return Observations.histogram(n, c, np.ones(len(n)))


def some_posterior(grades: int, documents: int) -> Array:
    """Any probabilities at all: the later a document, the more of the higher grades."""
    posterior = np.exp(np.linspace(-1, 2, grades)[:, None] * np.linspace(-1, 1, documents))
    return np.asarray(posterior / posterior.sum(axis=0))


class TestExpectation:
    def test_equals_the_sum_over_all_assignments(self) -> None:
        rates = [(0.1, 0.6)]
        problem = GroupLikelihood(FEW, distribution_of("binomial"))
        value, posterior = problem.expect(np.array([[logit(0.2)]]), np.array([np.array(rates).T]))
        expected_value, expected = enumerated(FEW_CELLS, (0.8, 0.2), rates)
        assert value == pytest.approx(expected_value, abs=1e-12)
        assert posterior == pytest.approx(expected, abs=1e-12)

    def test_of_grades_equals_the_sum_over_all_assignments(self) -> None:
        ends = np.array([[0.1], [0.6]])
        prior = np.array([0.4, 0.3, 0.2, 0.1])
        problem = GroupLikelihood(FEW, BinomialCounts(4))
        value, posterior = problem.expect(np.log(prior[None, 1:] / prior[0]), ends[None])
        rates = [tuple(np.linspace(low, high, 4)) for low, high in ends.T]
        expected_value, expected = enumerated(FEW_CELLS, prior.tolist(), rates)
        assert value == pytest.approx(expected_value, abs=1e-12)
        assert posterior == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("n", [1, 7, 1000, 1_000_000, 1_000_000_000])
    @pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
    @pytest.mark.parametrize("rate", [1e-12, 0.001, 0.5, 1 - 1e-9])
    def test_binomial_density_equals_scipy(self, n: int, share: float, rate: float) -> None:
        seen = observed([n], [int(n * share)])
        family = distribution_of("binomial")
        value = family.log_density(np.full((1, 2, 1), rate), seen)[0, 0] + family.constant(seen)
        assert value == pytest.approx(float(binom.logpmf(int(n * share), n, rate)), rel=1e-8, abs=1e-6)

    def test_gaussian_density_equals_scipy(self) -> None:
        seen = observed([10, 10], [3, 8])
        value = distribution_of("gaussian").log_density(np.array([[[0.3], [0.7]], [[0.01], [0.04]]]), seen)
        assert value[0] == pytest.approx(norm.logpdf([0.3, 0.8], 0.3, 0.1))
        assert value[1] == pytest.approx(norm.logpdf([0.3, 0.8], 0.7, 0.2))


class TestClimb:
    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize("family", FAMILIES, ids=str)
    def test_likelihood_never_falls(self, family: Distribution, seed: int) -> None:
        trace = np.array(fit_mixture(observed(*two_rates(seed)), family).climbed)
        assert (np.diff(trace) >= -1e-12 * abs(trace[-1])).all()

    @pytest.mark.parametrize("seed", range(10))
    @pytest.mark.parametrize("family", FAMILIES, ids=str)
    def test_plain_em_steps_never_lose(self, family: Distribution, seed: int) -> None:
        problem = GroupLikelihood(observed(*two_rates(seed, impressions=5)), family)
        x = problem.pack(*problem.maximise(some_posterior(family.grades, len(problem.seen.clicks))))
        values = []
        for _ in range(50):
            value, x = problem.step(x)
            values.append(value)
        assert (np.diff(values) >= -1e-12 * abs(values[-1])).all()

    @pytest.mark.parametrize("seed", range(10))
    def test_score_is_zero_at_the_top(self, seed: int) -> None:
        n, c = two_rates(seed)
        fit = fit_mixture(observed(n, c), distribution_of("binomial"))
        for k, r in enumerate((1 - fit.relevance, fit.relevance)):
            assert abs(r @ (c - n * fit.parameters[0, k, 0])) / n.sum() < 1e-7

    @pytest.mark.parametrize("family", FAMILIES, ids=str)
    def test_gradient_equals_finite_differences(self, family: Distribution) -> None:
        problem = GroupLikelihood(observed(*two_rates(3, documents=50)), family)
        x = problem.pack(*problem.maximise(some_posterior(family.grades, 50)))
        _, gradient = problem.slope(x)
        steps = 1e-6 * np.eye(len(x))
        numeric = [(problem.slope(x + h)[0] - problem.slope(x - h)[0]) / 2e-6 for h in steps]
        assert gradient == pytest.approx(numeric, rel=1e-4, abs=1e-4)

    def test_gaussian_ends_where_scikit_learn_ends(self) -> None:
        from sklearn.mixture import GaussianMixture

        # Rates that scatter more than counts do, so that the least variance plays no part.
        rng = np.random.default_rng(5)
        n = np.full(2000, 1000)
        c = rng.binomial(n, np.where(rng.random(2000) < 0.3, rng.beta(40, 40, 2000), rng.beta(20, 80, 2000)))
        ours = fit_group(observed(n, c), "gaussian")
        theirs = GaussianMixture(2, tol=1e-12, max_iter=1000, reg_covar=1e-12, random_state=0).fit((c / n)[:, None])
        order = np.argsort(theirs.means_[:, 0])
        assert ours.rates == pytest.approx(theirs.means_[order, 0], rel=1e-5)
        assert ours.variances == pytest.approx(theirs.covariances_[order, 0, 0], rel=1e-4)
        assert ours.weights == pytest.approx(theirs.weights_[order], rel=1e-4)


class TestRecovery:
    @pytest.mark.parametrize("seed", range(20))
    def test_rates_within_five_standard_errors(self, seed: int) -> None:
        mixture = fit_group(observed(*two_rates(seed)), "binomial")
        assert mixture.verdict is Verdict.SEPARATED
        assert mixture.standard_errors is not None
        z = (logit(mixture.rates) - logit([0.1, 0.4])) / mixture.standard_errors
        assert np.abs(z).max() < 5

    def test_standard_errors_are_the_scatter_of_estimates(self) -> None:
        fits = [fit_group(observed(*two_rates(seed, documents=300)), "binomial") for seed in range(200)]
        z = np.array([(logit(f.rates) - logit([0.1, 0.4])) / np.array(f.standard_errors) for f in fits])
        # The variance of 200 standard normal values has a standard error of sqrt(2/200) = 0.1.
        assert z.var(axis=0) == pytest.approx([1, 1], abs=0.5)
        assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(200)

    @pytest.mark.parametrize(("eta", "clicks"), [(1, 2_000_000), (1, 8_000_000), (2, 2_000_000), (2, 8_000_000)])
    def test_every_position_of_the_papers_log_is_recovered(self, eta: float, clicks: int) -> None:
        log = simulated(eta=eta, clicks=clicks, seed=7)
        gains, z = [], []
        for k in range(20):
            seen = Observations.histogram(*log.histogram(k))
            mixture = fit_group(seen, "binomial")
            problem = GroupLikelihood(seen, distribution_of("binomial"))
            truth, _ = problem.expect(np.array([[logit(PRIORS[k])]]), log.rates[:, k].reshape(1, 2, 1))
            gains.append(2 * (mixture.log_likelihoods[-1] - truth))
            if mixture.verdict is Verdict.SEPARATED:
                assert mixture.standard_errors is not None
                z += list((logit(mixture.rates) - logit(log.rates[:, k])) / np.array(mixture.standard_errors))
        # No worse than the truth, and better by no more than chance: chi-square with 3 degrees of freedom.
        assert min(gains) > -1e-5
        assert max(gains) < 30
        assert len(z) >= 6
        assert np.abs(z).max() < 5

    def test_posteriors_mean_what_they_say(self) -> None:
        log = simulated(eta=1, clicks=2_000_000, seed=3)
        labels = np.stack(
            [
                fit_group(Observations.histogram(*log.histogram(k)), "binomial").relevance(
                    log.impressions[:, k], log.clicks[:, k]
                )
                for k in range(20)
            ],
            axis=1,
        )
        for low, high in ((0, 0.05), (0.05, 0.3), (0.3, 0.7), (0.7, 0.95), (0.95, 1)):
            inside = (labels >= low) & (labels <= high)
            p, r = labels[inside], log.relevance[inside]
            assert abs(r.sum() - p.sum()) / np.sqrt((p * (1 - p)).sum()) < 5


class TestInvariances:
    @pytest.mark.parametrize("family", ["binomial", "gaussian"])
    def test_row_order(self, family: Literal["binomial", "gaussian"]) -> None:
        n, c = two_rates(1)
        shuffled = np.random.default_rng(0).permutation(len(n))
        one, other = fit_group(observed(n, c), family), fit_group(observed(n[shuffled], c[shuffled]), family)
        assert one.rates == pytest.approx(other.rates, rel=1e-6)
        assert one.weights == pytest.approx(other.weights, rel=1e-6)

    @pytest.mark.parametrize("family", ["binomial", "gaussian"])
    def test_all_rows_twice_is_the_same_fit(self, family: Literal["binomial", "gaussian"]) -> None:
        n, c = two_rates(2)
        once = fit_group(observed(n, c), family)
        twice = fit_group(Observations.histogram(n, c, np.full(len(n), 2)), family)
        assert once.rates == pytest.approx(twice.rates, rel=1e-6)
        assert once.weights == pytest.approx(twice.weights, rel=1e-6)

    def test_twice_the_clicks_and_impressions_is_twice_the_evidence(self) -> None:
        evidence = fit_group(observed(*two_rates(4)), "binomial").evidence(grades=2)
        assert evidence.log_ratios(14, 6) == pytest.approx(2 * evidence.log_ratios(7, 3))

    @settings(max_examples=60, deadline=None)
    @given(
        st.sampled_from(FAMILIES),
        st.integers(0, 10_000),
        st.integers(1, 200),
        st.floats(0.01, 0.9),
        st.floats(0.01, 0.9),
    )
    def test_a_click_never_lowers_a_label(
        self, family: Distribution, seed: int, n: int, low: float, high: float
    ) -> None:
        seen = observed(*two_rates(seed, documents=200, impressions=10, rates=(min(low, high), max(low, high))))
        mixture = fit_group(seen, "gaussian" if family.name == "gaussian" else "binomial", grades=family.grades)
        labels = mixture.relevance(np.full(n + 1, n), np.arange(n + 1))
        if not mixture.informative:
            assert np.isnan(labels).all()
            return
        assert (np.diff(labels) >= -1e-12).all()  # but for rounding
        assert ((labels >= 0) & (labels <= 1 + 1e-12)).all()


class TestLargeNumbers:
    @pytest.mark.parametrize("n", [1, 1_000, 1_000_000, 1_000_000_000])
    def test_two_clear_rates_at_any_number_of_impressions(self, n: int) -> None:
        rng = np.random.default_rng(0)
        rates = np.where(np.arange(400) < 100, 0.9, 0.1)
        c = rng.binomial(n, rates)
        mixture = fit_group(observed(np.full(400, n), c), "binomial")
        if n == 1:  # one impression each: only the mean rate can be known
            assert mixture.verdict is Verdict.ONE_RATE
        else:
            assert mixture.rates == pytest.approx((0.1, 0.9), rel=0.05)
            assert mixture.relevance(np.full(400, n), c) == pytest.approx(
                (np.arange(400) < 100).astype(float), abs=1e-6
            )


DEGENERATE = {
    "nothing clicked": ([10] * 50, [0] * 50, Verdict.NO_CLICKS),
    "everything clicked": ([10] * 50, [10] * 50, Verdict.ALL_CLICKED),
    "one document": ([10], [3], Verdict.ONE_RATE),
    "two documents": ([10, 10], [3, 4], Verdict.ONE_RATE),
    "all rates equal": ([10] * 50, [3] * 50, Verdict.ONE_RATE),
    "equal rates, different impressions": ([10, 20, 30] * 20, [1, 2, 3] * 20, Verdict.ONE_RATE),
    "one impression each": ([1] * 100, [0, 1] * 50, Verdict.ONE_RATE),
    "a single click": ([5] * 200, [1] + [0] * 199, Verdict.ONE_RATE),
}


class TestDegenerateGroups:
    @pytest.mark.parametrize("case", DEGENERATE)
    @pytest.mark.parametrize("family", ["binomial", "gaussian"])
    def test_are_named_and_say_nothing(self, family: Literal["binomial", "gaussian"], case: str) -> None:
        n, c, verdict = DEGENERATE[case]
        mixture = fit_group(observed(n, c), family)
        assert mixture.verdict is verdict
        assert not mixture.informative
        assert mixture.evidence(grades=3).log_ratios([10, 10], [0, 10]).tolist() == [[0, 0], [0, 0]]
        assert mixture.rates == pytest.approx((sum(c) / sum(n),))

    @pytest.mark.parametrize("seed", range(40))
    def test_one_rate_is_chosen_for_one_rate(self, seed: int) -> None:
        assert fit_group(observed(*two_rates(seed, rates=(0.2, 0.2))), "binomial").verdict is Verdict.ONE_RATE

    @pytest.mark.parametrize("seed", range(40))
    def test_two_rates_are_chosen_for_two(self, seed: int) -> None:
        mixture = fit_group(observed(*two_rates(seed, rates=(0.1, 0.2))), "binomial")
        assert mixture.informative
        assert mixture.bic is not None
        assert mixture.bic_one_rate is not None
        assert mixture.bic < mixture.bic_one_rate

    def test_parameters_are_counted_as_three_against_one(self) -> None:
        n, c = two_rates(0)
        mixture = fit_group(observed(n, c), "binomial")
        assert mixture.iterations == len(mixture.log_likelihoods) - 1 > 0
        assert mixture.bic == pytest.approx(-2 * mixture.log_likelihoods[-1] + 3 * np.log(len(n)))
        one = binom.logpmf(c, n, c.sum() / n.sum()).sum()
        assert mixture.bic_one_rate == pytest.approx(-2 * one + np.log(len(n)))

    @pytest.mark.parametrize("seed", range(10))
    @pytest.mark.parametrize("family", ["binomial", "gaussian"])
    def test_impressions_that_vary_are_not_taken_for_two_rates(
        self, family: Literal["binomial", "gaussian"], seed: int
    ) -> None:
        rng = np.random.default_rng(seed)
        n = 1 + rng.geometric(1 / 20, 1000)
        assert fit_group(observed(n, rng.binomial(n, 0.1)), family).verdict is Verdict.ONE_RATE


def test_evidence_of_a_gaussian_is_the_log_ratio_of_densities_on_its_rising_side() -> None:
    mixture = fit_group(observed(*two_rates(6, impressions=200)), "gaussian")
    assert mixture.variances is not None
    x = np.array([0.15, 0.2, 0.25])
    expected = [
        norm.logpdf(x, mean, np.sqrt(variance)) for mean, variance in zip(mixture.rates, mixture.variances, strict=True)
    ]
    evidence = mixture.evidence(grades=2)
    assert evidence.log_ratios(100, 100 * x)[0] == pytest.approx(expected[1] - expected[0])
    assert mixture.relevance(100, 20) == pytest.approx(
        expit(logit(mixture.weights[1]) + evidence.log_ratios(100, 20)[0])
    )


class TestNotConverged:
    """A climb that was stopped says so."""

    N, C = np.full(31, 30), np.arange(31)

    @pytest.fixture(autouse=True)
    def _short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(em, "CLIMBS", 0)
        monkeypatch.setattr(em, "EM_STEPS", 1)

    @pytest.mark.parametrize("family", ["binomial", "gaussian"])
    def test_of_a_group(self, family: Literal["binomial", "gaussian"]) -> None:
        documents = np.round(10_000 * (0.6 * binom.pmf(self.C, 30, 0.2) + 0.4 * binom.pmf(self.C, 30, 0.4)))
        assert fit_group(Observations.histogram(self.N, self.C, documents), family).verdict is Verdict.NOT_CONVERGED
