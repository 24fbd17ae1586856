"""Sharing strength between neighbours, the number of grades, and the mixture without a shape."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import binom

from clickmix.corrections.mixture import MixtureCorrection
from clickmix.groups.observations import Observations
from clickmix.mixtures import em, neighbours, sharing
from clickmix.mixtures.curvature import group_surfaces, in_blocks
from clickmix.mixtures.families import Binomial
from clickmix.mixtures.information import observed_information
from clickmix.mixtures.mixture import Verdict
from clickmix.mixtures.neighbours import fit_neighbours
from clickmix.mixtures.nonparametric import _weights, fit_nonparametric
from clickmix.mixtures.problem import Problem
from clickmix.mixtures.sharing import Walk, _phi, fit_shared
from oracles_mixtures import log_evidence
from simulation import Simulated, rmse, simulated

Array = np.ndarray[Any, Any]
QUERIES = 2_000
PER_CLICK = QUERIES / 18_919  # logs with the paper's number of clicks per query, but fewer queries


def some_group(seed: int = 0, *, documents: int = 300) -> Observations:
    """Documents at five evenly spaced rates, seen once or several times."""
    rng = np.random.default_rng(seed)
    n = rng.integers(5, 60, documents)
    c = rng.binomial(n, np.linspace(0.1, 0.5, 5)[rng.integers(0, 5, documents)])
    return Observations.histogram(n, c, rng.integers(1, 4, documents))


def groups_of(log: Simulated) -> list[Observations]:
    return [Observations.histogram(*log.histogram(k)) for k in range(log.relevance.shape[1])]


def labels_of(log: Simulated, **settings: Any) -> Array:
    counts = log.counts()
    labels = MixtureCorrection(**settings).fit(counts).label(counts)
    out = log.prior_only.copy()
    out[labels.query_id, labels.doc_id % 100 - 1] = labels.relevance
    return out


def precision(walk: Walk, groups: int) -> Array:
    """Group x kind x group x kind: what a walk says of its parameters."""
    kinds = np.arange(len(walk.drift))
    total = np.zeros((groups, len(kinds), groups, len(kinds)))
    for start, end, firm in zip(walk.start, walk.end, walk.springs(), strict=True):
        for a, b in ((start, end), (end, start)):
            total[a, kinds, a, kinds] += firm
            total[a, kinds, b, kinds] -= firm
    return total


class TestSurface:
    @pytest.mark.parametrize("grades", [2, 3, 5])
    def test_of_groups_equals_the_general_one_and_finite_differences(self, grades: int) -> None:
        groups = [some_group(seed) for seed in range(3)]
        rows = np.array([[*np.linspace(-0.5, -1.5 - g, grades - 1), -2.0 - g, 0.3 - g] for g in range(3)])
        quick = group_surfaces(in_blocks(groups), rows)
        for g, x in enumerate(rows):
            problem = Problem(groups[g], Binomial(grades))
            value, slope = problem.slope(x)
            assert quick.value[g] == pytest.approx(value)
            assert quick.slope[g] == pytest.approx(slope)
            assert quick.information[g] == pytest.approx(observed_information(problem, *problem.unpack(x)))
            steps = 1e-5 * np.eye(len(x))
            rise = [(problem.slope(x + h)[0] - problem.slope(x - h)[0]) / 2e-5 for h in steps]
            bend = [(problem.slope(x + h)[1] - problem.slope(x - h)[1]) / 2e-5 for h in steps]
            assert quick.slope[g] == pytest.approx(rise, rel=1e-5, abs=1e-4)
            assert quick.information[g] == pytest.approx(-np.array(bend), rel=1e-5, abs=1e-3)


class TestWalk:
    def test_goes_from_position_to_position_within_a_context(self) -> None:
        walk = Walk.between([3, 1, 2, 1, 5], ["a", "a", "a", "b", "b"], kinds=2)
        assert list(zip(walk.start.tolist(), walk.end.tolist(), strict=True)) == [(1, 2), (2, 0), (3, 4)]
        assert walk.span == pytest.approx(np.log([2, 3 / 2, 5]))

    def test_slope_and_springs_are_derivatives_of_the_density(self) -> None:
        walk = Walk.between([1, 2, 3, 4], [()] * 4, kinds=2)
        phi, step = np.random.default_rng(0).normal(size=(4, 2)), 1e-5
        value, slope = walk.density(phi)
        for g, j in np.ndindex(4, 2):
            moved = phi.copy()
            moved[g, j] += step
            assert walk.density(moved)[0] - value == pytest.approx(step * slope[g, j], abs=1e-8)
            bend = (walk.density(moved)[1] - slope)[:, j]
            assert bend == pytest.approx(-step * precision(walk, 4)[:, j, g, j], abs=1e-9)

    def test_drift_and_deviation_are_recovered(self) -> None:
        positions = list(range(1, 2001))
        walk = Walk.between(positions, [()] * 2000, kinds=1)
        rng = np.random.default_rng(0)
        steps = -0.7 * walk.span + 0.2 * np.sqrt(walk.span) * rng.normal(size=1999)
        phi = np.concatenate([[0.0], np.cumsum(steps)])[:, None]
        found = walk.estimated(phi, np.zeros((1999, 1)))
        assert abs(found.drift[0] + 0.7) < 5 * 0.2 / np.sqrt(walk.span.sum())
        assert abs(found.deviation[0] / 0.2 - 1) < 5 / np.sqrt(2 * 1999)

    def test_parameters_known_only_roughly_do_not_pass_for_deviation(self) -> None:
        walk = Walk.between([1, 2, 3, 4], [()] * 4, kinds=1)
        phi, noise = -1.0 * np.log([[1], [2], [3], [4]]), np.full((3, 1), 0.08)
        expected = np.sqrt(np.mean(0.08 / walk.span))
        assert walk.estimated(phi, noise).deviation == pytest.approx([expected])

    def test_neighbours_decide_what_a_group_cannot(self) -> None:
        groups = [some_group(seed) for seed in range(4)]
        n, c = np.array([3.0, 3.0]), np.array([0.0, 1.0])
        groups[2] = Observations.histogram(n, c, np.array([30.0, 10.0]))  # its own clicks fix nothing but their rate
        start = np.tile([[-1.0, -2.0, 0.0]], (4, 1))
        shared = fit_shared(in_blocks(groups), start, Walk.between([1, 2, 3, 4], [()] * 4, kinds=3))
        assert shared.converged
        assert shared.own[2] == shared.own.min() < 1.5
        assert (shared.own <= 3 + 1e-9).all()
        rates = 1 / (1 + np.exp(-shared.parameters[:, -2:]))
        assert (rates[2] > rates[[1, 3]].min(axis=0) - 0.05).all()
        assert (rates[2] < rates[[1, 3]].max(axis=0) + 0.05).all()

    def test_how_well_parameters_are_known_counts_when_the_walk_is_estimated(self) -> None:
        """Few clicks: Newton's steps lie smoothly, but nobody knows that the truth does."""
        rng, groups = np.random.default_rng(4), []
        for k in range(1, 9):
            n = rng.integers(2, 6, 200)
            c = rng.binomial(n, np.where(rng.random(200) < 0.3, 0.7, 0.2) / k**0.5)
            groups.append(Observations.histogram(n, c, np.ones(200)))
        walk = Walk.between(range(1, 9), [()] * 8, kinds=3)
        shared = fit_shared(in_blocks(groups), np.tile([[-1.0, -1.5, 0.5]], (8, 1)), walk)
        smooth = shared.walk.estimated(_phi(shared.parameters)[0], np.zeros((7, 3)))
        assert (shared.walk.deviation > 1.5 * smooth.deviation).all()

    def test_a_climb_that_was_stopped_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sharing, "ROUNDS", 1)
        fit = fit_neighbours(
            [some_group(seed) for seed in range(4)], positions=[1, 2, 3, 4], contexts=[()] * 4, grades=2
        )
        assert {mixture.verdict for mixture in fit.mixtures} == {Verdict.NOT_CONVERGED}


class TestEvidence:
    def test_is_the_integral_over_parameters(self) -> None:
        """Two and three grades, four positions: BIC against an integral by sampling."""
        rng, groups = np.random.default_rng(3), []
        for k in range(1, 5):
            n = rng.integers(30, 34, 800)
            c = rng.binomial(n, np.array([0.1, 0.35, 0.6])[rng.choice(3, 800, p=[0.5, 0.3, 0.2])] / k**0.5)
            distinct, documents = np.unique(np.stack([n, c]), axis=1, return_counts=True)
            groups.append(Observations.histogram(distinct[0], distinct[1], documents))
        found = []
        for grades in (2, 3):
            start = np.tile([*np.linspace(-0.5, -1, grades - 1), -2.2, 0.0], (4, 1))
            walk = Walk.between([1, 2, 3, 4], [()] * 4, kinds=grades + 1)
            shared = fit_shared(in_blocks(groups), start, walk)
            phi, step = _phi(shared.parameters)
            surfaces = group_surfaces(in_blocks(groups), shared.parameters)
            known = precision(shared.walk, 4)
            known[range(4), :, range(4), :] += surfaces.information / (step[:, :, None] * step[:, None, :])
            unit = (np.diagonal(surfaces.information, axis1=1, axis2=2) / step**2).sum(axis=0) / 3200
            seen = [(group.impressions, group.clicks, group.multiplicity) for group in groups]
            spread = np.linalg.inv(known.reshape(phi.size, phi.size))
            found.append((shared.bic, log_evidence(seen, shared.walk, phi, spread, unit, rng=rng)))
        numbers = 2 * 3 * np.log(3), 2 * 4 * np.log(3)  # of the walk: drift and deviation of three and four kinds
        expected = [-2 * evidence + cost for (_, evidence), cost in zip(found, numbers, strict=True)]
        assert [bic for bic, _ in found] == pytest.approx(expected, abs=0.1)


def test_rates_that_a_climb_has_made_equal_are_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal rates are a place from which no slope leads on."""
    n, groups = np.full(34, 33), []
    for k in range(1, 5):
        chances = 0.95 * binom.pmf(np.arange(34), 33, 0.65 / k**2) + 0.05 * binom.pmf(np.arange(34), 33, 0.98 / k)
        groups.append(Observations.histogram(n, np.arange(34), np.round(150_000 * chances)))
    usual = fit_neighbours(groups, positions=[1, 2, 3, 4], contexts=[()] * 4)

    def made_equal(hill: Any, starts: Any, *, tolerance: float) -> em.Climb:
        path = em.climb(hill, starts, tolerance=tolerance)
        if hill.seen.groups > 1:
            ends = path.parameters[-8:].reshape(2, 4)  # a view
            ends[:, 0] = logit(np.divide(*groups[0].totals))
        return path

    monkeypatch.setattr(neighbours, "climb", made_equal)
    found = fit_neighbours(groups, positions=[1, 2, 3, 4], contexts=[()] * 4)
    assert found.grades == usual.grades
    for one, other in zip(found.mixtures, usual.mixtures, strict=True):
        assert one.verdict is other.verdict
        assert one.rates == pytest.approx(other.rates, rel=1e-3)


def test_positions_so_large_that_their_logarithms_are_the_same() -> None:
    groups = [some_group(seed) for seed in range(5)]
    huge = fit_neighbours(groups, positions=[2**63 - 6 + k for k in range(5)], contexts=[()] * 5)
    assert all(np.isfinite(mixture.rates).all() for mixture in huge.mixtures)


class TestDegenerate:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("rates", [(0.9999, 1.0), (0.9999, 0.99999), (0.0, 1.0), (0.3, 1.0)])
    def test_rates_at_the_ends_are_fitted(self, rates: tuple[float, float], seed: int) -> None:
        """There the walk's scale has no more to say of a rate's logit: nothing must be divided by it."""
        rng, groups = np.random.default_rng(seed), []
        for _ in range(10):
            n = rng.integers(1, 80, 500)
            c = rng.binomial(n, np.where(rng.random(500) < 0.3, rates[1], rates[0]))
            groups.append(Observations.histogram(n, c, np.ones(500)))
        fit = fit_neighbours(groups, positions=range(1, 11), contexts=[()] * 10)
        assert all(np.isfinite([*m.weights, *m.rates]).all() for m in fit.mixtures)
        assert np.isfinite(list(fit.bics.values())).all()


class TestGrades:
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(("relevance", "grades"), [("binarized", 2), ("graded", 5)])
    @pytest.mark.parametrize("eta", [1, 2])
    def test_are_found_by_bic(self, eta: float, relevance: str, grades: int, seed: int) -> None:
        clicks = int(8_000_000 * PER_CLICK)
        log = simulated(eta=eta, clicks=clicks, seed=seed, queries=QUERIES, relevance=relevance)
        fit = fit_neighbours(groups_of(log), positions=range(1, 21), contexts=[()] * 20)
        assert fit.grades == grades
        assert min(fit.bics.values()) >= fit.bics[grades] - 6

    def test_and_rates_of_graded_documents_are_recovered(self) -> None:
        log = simulated(eta=1, clicks=int(8_000_000 * PER_CLICK), seed=5, queries=QUERIES, relevance="graded")
        fit = fit_neighbours(groups_of(log), positions=range(1, 21), contexts=[()] * 20)
        for k, mixture in enumerate(fit.mixtures[:5]):
            assert mixture.standard_errors is not None
            ends = np.array([mixture.rates[0], mixture.rates[-1]])
            off = np.log(ends / (1 - ends)) - np.log(log.rates[:, k] / (1 - log.rates[:, k]))
            assert np.abs(off / mixture.standard_errors).max() < 5

    @pytest.mark.parametrize("eta", [1, 2])
    def test_labels_of_graded_documents_come_near_the_limit(self, eta: float) -> None:
        log = simulated(eta=eta, clicks=int(8_000_000 * PER_CLICK), seed=6, queries=QUERIES, relevance="graded")
        limit, prior = rmse(log.limit, log.relevance), rmse(log.prior_only, log.relevance)
        error = rmse(labels_of(log), log.relevance)
        assert error < 1.05 * limit
        assert (prior - error) / (prior - limit) > 0.8
        assert rmse(labels_of(log, mixture="binomial"), log.relevance) > 1.2 * limit  # why grades are worth it


class TestSharing:
    @pytest.mark.parametrize(("eta", "clicks"), [(1, 2_000_000), (2, 8_000_000)])
    def test_costs_nothing_where_clicks_are_many(self, eta: float, clicks: int) -> None:
        logs = [simulated(eta=eta, clicks=int(clicks * PER_CLICK), seed=seed, queries=QUERIES) for seed in range(4)]
        shared, alone = (
            np.sqrt(np.mean([rmse(labels_of(log, mixture="binomial", sharing=s), log.relevance) ** 2 for log in logs]))
            for s in (True, False)
        )
        assert shared < 1.02 * alone

    @pytest.mark.parametrize("seed", range(3))
    def test_helps_where_clicks_are_few(self, seed: int) -> None:
        log = simulated(eta=2, clicks=int(2_000_000 * PER_CLICK), seed=seed, queries=QUERIES)
        shared, alone = (rmse(labels_of(log, mixture="binomial", sharing=s), log.relevance) for s in (True, False))
        assert shared < 0.98 * alone

    @pytest.mark.parametrize("seed", range(20))
    def test_finds_nothing_in_a_log_of_one_rate_per_position(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n = rng.integers(20, 60, 400)
        groups = [Observations.histogram(n, rng.binomial(n, 0.5 / k), np.ones(400)) for k in range(1, 9)]
        fit = fit_neighbours(groups, positions=range(1, 9), contexts=[()] * 8)
        assert {mixture.verdict for mixture in fit.mixtures} == {Verdict.ONE_RATE}

    @pytest.mark.parametrize("seed", range(3))
    def test_leaves_a_position_of_one_rate_among_others_alone(self, seed: int) -> None:
        log = simulated(eta=1, clicks=int(8_000_000 * PER_CLICK), seed=seed, queries=QUERIES, positions=8)
        groups = groups_of(log)
        rng = np.random.default_rng(seed)
        n = groups[3].impressions.astype(int)
        groups[3] = Observations.histogram(n, rng.binomial(n, 0.1), groups[3].multiplicity)
        fit = fit_neighbours(groups, positions=range(1, 9), contexts=[()] * 8)
        assert [m.verdict is Verdict.ONE_RATE for m in fit.mixtures] == [k == 3 for k in range(8)]

    def test_does_not_depend_on_the_order_of_rows(self) -> None:
        log = simulated(eta=2, clicks=100_000, seed=0, queries=1_000, positions=6)
        rng, shuffled = np.random.default_rng(0), []
        for group in groups_of(log):
            order = rng.permutation(len(group.clicks))
            shuffled.append(
                Observations.histogram(group.impressions[order], group.clicks[order], group.multiplicity[order])
            )
        one, other = (
            fit_neighbours(groups, positions=range(1, 7), contexts=[()] * 6) for groups in (groups_of(log), shuffled)
        )
        assert one.grades == other.grades
        for a, b in zip(one.mixtures, other.mixtures, strict=True):
            assert a.rates == pytest.approx(b.rates, rel=1e-4)


class TestNonparametric:
    def test_no_rate_of_the_grid_would_raise_the_likelihood(self) -> None:
        seen, rates = some_group(documents=2000), np.linspace(0.02, 0.7, 40)
        weights, _ = _weights(seen, rates)
        logs = np.outer(seen.clicks, np.log(rates)) + np.outer(seen.skips, np.log1p(-rates))
        density = np.exp(logs - logs.max(axis=1, keepdims=True))
        # The gradient in a weight is at most 1 per document at the maximum (Lindsay 1983), here but for the last steps.
        slope = density.T @ (seen.multiplicity / (density @ weights)) / seen.multiplicity.sum()
        assert slope.max() < 1.001
        assert weights.sum() == pytest.approx(1)

    @pytest.mark.parametrize("eta", [1, 2])
    def test_is_better_than_two_grades_where_there_are_more(self, eta: float) -> None:
        log = simulated(eta=eta, clicks=int(2_000_000 * PER_CLICK), seed=2, queries=QUERIES, relevance="graded")
        any_rate, two = (rmse(labels_of(log, mixture=m), log.relevance) for m in ("nonparametric", "binomial"))
        assert any_rate < two

    def test_one_rate_is_named(self) -> None:
        n = np.random.default_rng(0).integers(20, 60, 400)
        seen = Observations.histogram(n, np.random.default_rng(1).binomial(n, 0.2), np.ones(400))
        assert fit_nonparametric(seen).verdict is Verdict.ONE_RATE


FITTED = """
import numpy as np
from clickmix import Counts, MixtureCorrection, PlainEM
from clickmix.mixtures import Observations, fit_neighbours
rng = np.random.default_rng(0)
groups = []
for k in range(1, 21):
    n = rng.integers(1, 200, 3_000)
    c = rng.binomial(n, np.where(rng.random(3_000) < 0.2, 0.8, 0.3) / k)
    groups.append(Observations.histogram(n, c, np.ones(3_000)))
fit = fit_neighbours(groups, positions=range(1, 21), contexts=[()] * 20, grades=2)
print([(mixture.weights, mixture.rates) for mixture in fit.mixtures])
document, position = np.repeat(np.arange(20_000), 2), np.tile([1, 2], 20_000)
clicks = rng.binomial(9, np.where(document % 5, 0.3, 0.8) / position)
counts = Counts.from_arrays(document // 10, document, position, np.full(40_000, 9), clicks)
print(PlainEM(max_steps=20).fit(counts).parameters)
print(MixtureCorrection().fit(counts).to_json())
"""


def test_fits_have_the_same_digits_however_many_threads_numpy_may_use() -> None:
    """BLAS would add up in another order with more of them."""
    found = [
        subprocess.run(
            [sys.executable, "-c", FITTED],
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert found[0] == found[1] != ""
