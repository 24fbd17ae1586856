"""EM for alpha and beta: its steps against enumeration, recovery, why it stops, plain EM and its scale."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from clickmix.corrections.affine_em import e_step, log_likelihood, m_step, read_cells, targets
from clickmix.corrections.parameters import LEAST_ALPHA, BiasParameters
from clickmix.corrections.plain_em import PlainEM, PlainEMFit
from clickmix.corrections.regression_em import Iteration, RegressionEM, RegressionEMFit, Stop
from clickmix.counts.counts import Counts
from clickmix.errors import InputError, SettingError
from clickmix.lab.users import PositionBased, Trust
from oracles_corrections import enumerated_em

Floats = NDArray[np.float64]
PROBABILITIES = st.floats(0.05, 0.95)


@dataclass(frozen=True)
class Told:
    """A regression that answers what it is told to: one row of relevance per iteration, the last one for ever."""

    rows: list[Floats]
    asked: list[tuple[Floats, Floats]] = field(default_factory=list)

    def start(self, query_id: NDArray[Any], doc_id: NDArray[Any]) -> Told:
        assert len(query_id) == len(doc_id) == len(self.rows[0])
        return self

    def fit(self, target: Floats, weight: Floats) -> Floats:
        self.asked.append((target, weight))
        return self.rows[min(len(self.asked), len(self.rows)) - 1]


def staying(
    person: PositionBased, *, graded: bool = False, queries: int = 400, n: int = 200, seed: int = 0
) -> tuple[Counts, Floats]:
    """Documents that stay at their positions, and the true relevance of each, in order of query and document."""
    rng = np.random.default_rng(seed)
    shape = (queries, person.positions)
    relevance = rng.integers(0, 5, shape) / 4 if graded else (rng.random(shape) < 0.3).astype(float)
    clicks = rng.binomial(n, person.alpha * relevance + person.beta)
    q, k = (index.ravel() for index in np.meshgrid(*map(np.arange, shape), indexing="ij"))
    return Counts.from_arrays(q, k, k + 1, np.full(len(q), n), clicks.ravel()), relevance.ravel()


def paper(positions: int = 8) -> PositionBased:
    return PositionBased.with_eta(1, positions=positions)


class TestSteps:
    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def test_e_and_m_equal_a_slow_enumeration(self, data: st.DataObject) -> None:
        cells = data.draw(
            st.lists(
                st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(1, 3)),
                min_size=2,
                max_size=4,
                unique_by=lambda c: c[:2],
            )
        )
        clicks = [data.draw(st.integers(0, n)) for _, _, n in cells]
        documents = sorted({d for d, _, _ in cells})
        positions = sorted({k for _, k, _ in cells})
        z0 = [data.draw(st.floats(0.05, 0.45)) for _ in positions]
        z1 = [data.draw(st.floats(0.5, 0.95)) for _ in positions]
        relevance = [data.draw(PROBABILITIES) for _ in documents]
        rows = [(documents.index(d), positions.index(k), n, c) for (d, k, n), c in zip(cells, clicks, strict=True)]
        slow = enumerated_em([(d, k, i < c) for d, k, n, c in rows for i in range(n)], relevance, z1, z0)
        counts = Counts.from_arrays(
            [0] * len(rows), *(list(column) for column in zip(*((d, k + 1, n, c) for d, k, n, c in rows), strict=True))
        )
        read = read_cells(counts, correction="test")
        now = BiasParameters(np.subtract(z1, z0), z0)
        expected = e_step(read, np.array(relevance), now)
        new = m_step(read, *expected, trust=True)
        ordered = [a > b + LEAST_ALPHA for a, b in zip(slow[0], slow[1], strict=True)]  # else they are moved apart
        assert (new.alpha + new.beta)[ordered] == pytest.approx(np.array(slow[0])[ordered], abs=1e-9)
        assert new.beta[ordered] == pytest.approx(np.array(slow[1])[ordered], abs=1e-9)
        assert targets(read, *expected) == pytest.approx(slow[2], abs=1e-9)
        assert log_likelihood(read, np.array(relevance), now) == pytest.approx(slow[3], abs=1e-9)

    def test_without_trust_beta_stays_0(self) -> None:
        """Enumeration with z0 = 0: a clicked impression is relevant for certain."""
        impressions = [(0, 0, True), (0, 0, False), (0, 1, False), (1, 1, True), (1, 1, False), (1, 0, False)]
        counts = Counts.from_arrays([0] * 4, [0, 0, 1, 1], [1, 2, 1, 2], [2, 1, 1, 2], [1, 0, 0, 1])
        cells = read_cells(counts, correction="test")
        expected = e_step(cells, np.array([0.3, 0.6]), BiasParameters([0.9, 0.4], [0, 0]))
        z1, _, target, _ = enumerated_em(impressions, [0.3, 0.6], [0.9, 0.4], [0.0, 0.0])
        new = m_step(cells, *expected, trust=False)
        assert new.alpha == pytest.approx(z1, abs=1e-9)
        assert new.beta.tolist() == [0, 0]
        assert targets(cells, *expected) == pytest.approx(target, abs=1e-9)

    @pytest.mark.parametrize("trust", [True, False])
    def test_with_relevance_fixed_the_likelihood_never_falls(self, trust: bool) -> None:
        counts, relevance = staying(paper(), graded=True)
        cells = read_cells(counts, correction="test")
        point, trace = BiasParameters([0.9] * 8, [0.01 if trust else 0.0] * 8), []
        for _ in range(50):
            trace.append(log_likelihood(cells, relevance, point))
            point = m_step(cells, *e_step(cells, relevance, point), trust=trust)
        assert (np.diff(trace) >= -1e-12 * abs(trace[-1])).all()
        assert trace[-1] > trace[0]

    def test_where_the_others_are_clicked_more_both_rates_are_the_positions_own(self) -> None:
        counts = Counts.from_arrays([0, 0], [0, 1], [1, 1], [10, 10], [1, 9])
        cells = read_cells(counts, correction="test")
        new = m_step(cells, *e_step(cells, np.array([1.0, 0.0]), BiasParameters([0.5], [0.3])), trust=True)
        assert (new.alpha.tolist(), new.beta.tolist()) == ([LEAST_ALPHA], [0.5])

    def test_a_position_that_was_never_shown(self) -> None:
        message = (
            "Position 2 was never shown but position 3 was, so its parameters cannot be estimated. Use a log with "
            "every position down to the last."
        )
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            read_cells(Counts.from_arrays([0, 0], [0, 1], [1, 3], [5, 5], [1, 0]), correction="test")


def fitted(counts: Counts, rows: list[Floats], **changes: Any) -> RegressionEMFit:
    return RegressionEM(Told(rows), **changes).fit(counts)


class TestPerfectRegression:
    def test_recovers_alpha_and_beta_where_relevance_is_certain(self) -> None:
        """Then the rates are shares of clicks among relevant and among other impressions, with binomial errors."""
        person = paper()
        counts, relevance = staying(person)
        fit = fitted(counts, [relevance])
        assert fit.stopped == Stop.CONVERGED
        impressions = 200 * relevance.reshape(-1, 8).sum(axis=0)
        for rate, estimate, n in (
            (person.alpha + person.beta, fit.parameters.alpha + fit.parameters.beta, impressions),
            (person.beta, fit.parameters.beta, 200 * 400 - impressions),
        ):
            assert (np.abs(estimate - rate) / np.sqrt(rate * (1 - rate) / n)).max() < 5

    def test_recovers_alpha_and_beta_from_graded_relevance(self) -> None:
        """Twice the log-likelihood ratio to the truth is chi-square with 16 degrees of freedom."""
        person = paper()
        counts, relevance = staying(person, graded=True)
        fit = fitted(counts, [relevance], iterations=400, tolerance=1e-7)
        cells = read_cells(counts, correction="test")
        truth = log_likelihood(cells, relevance, BiasParameters(person.alpha, person.beta))
        ratio = 2 * (fit.trace[-1].log_likelihood - truth)
        assert -1 < ratio < chi2.ppf(1 - 1e-6, 16)

    def test_without_trust_bias_it_recovers_examination(self) -> None:
        person = PositionBased.with_eta(1, positions=8, trust=Trust.perfect(8))
        counts, relevance = staying(person)
        fit = fitted(counts, [relevance], trust=False)
        n = 200 * relevance.reshape(-1, 8).sum(axis=0)
        theta = person.examination
        error = np.sqrt(theta * (1 - theta) / n)
        assert (np.abs(fit.parameters.alpha - theta) <= 5 * error + 1e-5).all()
        assert (fit.parameters.beta == 0).all()

    def test_labels_are_those_of_affine_correction_with_what_was_found(self) -> None:
        counts, relevance = staying(paper(), n=2000)
        labels = fitted(counts, [relevance]).label(counts)
        assert np.corrcoef(labels.estimate, relevance)[0, 1] > 0.95
        assert ((labels.relevance >= 0) & (labels.relevance <= 1)).all()

    def test_the_regression_is_asked_for_the_expected_share_of_relevant_impressions_by_impressions(self) -> None:
        counts, relevance = staying(paper(), queries=20)
        regression = Told([relevance])
        fit = RegressionEM(regression, iterations=2).fit(counts)
        cells = read_cells(counts, correction="test")
        (first, weight), (second, _) = regression.asked
        assert (weight == 200).all()
        assert first == pytest.approx(cells.clicks / 200)
        assert second == pytest.approx(targets(cells, *e_step(cells, relevance, fit.trace[0].parameters)))


class TestImperfectRegression:
    """What the paper warns of: the regression's faults become those of the parameters."""

    def test_a_regression_that_shrinks_relevance_stretches_alpha_and_lowers_beta(self) -> None:
        """r' = .25 + .6 r: the click rates fit as well, with alpha' = alpha / .6 and beta' = beta - .25 alpha'."""
        person = PositionBased.with_eta(0.3, positions=6, trust=Trust([0.5] * 6, [0.4] * 6))
        counts, relevance = staying(person, n=5000)
        fit = fitted(counts, [0.25 + 0.6 * relevance], iterations=2000, tolerance=1e-9)
        stretched = person.alpha / 0.6
        assert fit.parameters.alpha == pytest.approx(stretched, abs=0.02)
        assert fit.parameters.beta == pytest.approx(person.beta - 0.25 * stretched, abs=0.02)

    def test_a_regression_that_knows_nothing_finds_no_bias_and_explains_nothing(self) -> None:
        counts, relevance = staying(paper())
        fit = fitted(counts, [np.full(len(relevance), 0.3)])
        assert abs(fit.trace[-1].explained) < 1e-3 * abs(fit.trace[-1].log_likelihood)
        assert np.abs(fit.parameters.alpha - paper().alpha).max() > 0.1


class TestStopping:
    def test_relevance_that_runs_away_goes_back_ten_iterations(self) -> None:
        counts, relevance = staying(paper())
        rows = [np.clip(relevance + 0.04 * i, 0, 1) for i in range(30)]
        fit = fitted(counts, rows)
        first = next(i for i, row in enumerate(rows, 1) if row.reshape(-1, 8)[:, :5].mean() > 0.8)
        assert (fit.stopped, len(fit.trace), fit.kept) == (Stop.TOO_RELEVANT, first, first - 10)
        assert fit.parameters is fit.trace[first - 11].parameters

    def test_a_sudden_drop_keeps_the_iteration_before(self) -> None:
        counts, relevance = staying(paper())
        rows = [np.clip(relevance, 0.01 * i, 1) for i in range(6)] + [np.full(len(relevance), 0.3)]
        fit = fitted(counts, rows, tolerance=0)
        assert (fit.stopped, len(fit.trace), fit.kept) == (Stop.SUDDEN_DROP, 7, 6)
        assert fit.summary == (
            "Regression EM stopped after iteration 7: sudden drop. It kept the parameters of iteration 6."
        )

    def test_at_the_first_iteration_there_is_nothing_to_go_back_to(self) -> None:
        counts, relevance = staying(paper())
        fit = fitted(counts, [np.full(len(relevance), 0.9)])
        assert (fit.stopped, len(fit.trace), fit.kept) == (Stop.TOO_RELEVANT, 1, 1)

    def test_iterations_used_up(self) -> None:
        counts, relevance = staying(paper())
        fit = fitted(counts, [relevance, relevance / 2, relevance / 3], iterations=3)
        assert (fit.stopped, len(fit.trace), fit.kept) == (Stop.ITERATIONS, 3, 3)

    def test_the_trace_has_time_and_the_callers_own_score(self) -> None:
        counts, relevance = staying(paper(), queries=20)
        ticks = iter(range(1000))
        shares: list[float] = []
        regression = RegressionEM(
            Told([relevance]), iterations=2, score=lambda found: found.positions / 16, clock=lambda: float(next(ticks))
        )
        fit = regression.fit(counts, progress=shares.append)
        assert [iteration.number for iteration in fit.trace] == [1, 2]
        assert [(i.regression_seconds, i.step_seconds, i.score) for i in fit.trace] == [(1.0, 1.0, 0.5)] * 2
        assert shares == [0.5, 1.0]

    def test_positions_without_a_difference_are_named(self) -> None:
        parameters = BiasParameters([0.5, LEAST_ALPHA], [0.1, 0.2])
        step = Iteration(1, parameters, -1.0, 0.0, 0.1, 0.0, 0.0, None)
        fit = RegressionEMFit(True, "one", Stop.CONVERGED, 1, (step,))
        assert fit.tied == (2,)
        assert fit.summary == (
            "Regression EM stopped after iteration 1: converged. It kept the parameters of iteration 1. Relevant and "
            "other documents do not differ at position(s) 2."
        )


def moving(person: PositionBased, *, documents: int = 1500, n: int = 300, seed: int = 0) -> tuple[Counts, Floats]:
    """Documents at three of the positions each, and their true relevance."""
    rng = np.random.default_rng(seed)
    relevance = rng.random(documents) ** 3
    k = np.argsort(rng.random((documents, person.positions)), axis=1)[:, :3]
    clicks = rng.binomial(n, person.alpha[k] * relevance[:, None] + person.beta[k])
    d = np.repeat(np.arange(documents), 3)
    return Counts.from_arrays(d // 10, d, k.ravel() + 1, np.full(3 * documents, n), clicks.ravel()), relevance


@pytest.fixture(scope="module")
def without_trust() -> tuple[Counts, Floats, PlainEMFit]:
    """A log of documents that move, their relevance, and what plain EM makes of it."""
    counts, relevance = moving(PositionBased.with_eta(1, positions=5, trust=Trust.perfect(5)))
    return counts, relevance, PlainEM(trust=False).fit(counts)


@pytest.mark.xdist_group("plain EM")  # which is fitted once to a log
class TestPlainEM:
    def test_examination_is_1_at_the_best_position_and_that_of_the_position_based_model(
        self, without_trust: tuple[Counts, Floats, PlainEMFit]
    ) -> None:
        """Two roads to the same maximum: the likelihood without trust has only one."""
        counts, _, fit = without_trust
        cells = read_cells(counts, correction="test")
        other = PositionBased.fit_counts(
            cells.document, cells.position + 1, cells.impressions.astype(int), cells.clicks.astype(int)
        )
        assert isinstance(other.user, PositionBased)
        assert fit.converged
        assert fit.parameters.alpha.max() == pytest.approx(1, abs=1e-12)
        assert fit.parameters.alpha == pytest.approx(other.user.examination, abs=2e-3)

    def test_the_likelihood_never_falls(self, without_trust: tuple[Counts, Floats, PlainEMFit]) -> None:
        trace = np.array(without_trust[2].log_likelihoods)
        assert (np.diff(trace) >= -1e-12 * abs(trace[-1])).all()

    @pytest.mark.parametrize("n", [300, 30_000])
    def test_with_trust_the_scale_is_the_widest_and_errors_shrink_with_the_root_of_impressions(self, n: int) -> None:
        """Click rates are alpha r + beta whatever the scale: on the truth's widest scale parameters must agree."""
        person = paper(5)
        counts, relevance = moving(person, n=n)
        fit = PlainEM().fit(counts)
        shift = (person.beta / person.alpha).min()
        beta = person.beta - shift * person.alpha
        stretch = ((1 - beta) / person.alpha).min()
        assert fit.parameters.beta.min() == 0
        assert (fit.parameters.alpha + fit.parameters.beta).max() == pytest.approx(1)
        assert fit.parameters.beta == pytest.approx(beta, abs=0.5 / np.sqrt(n))
        assert fit.parameters.alpha == pytest.approx(person.alpha * stretch, abs=0.5 / np.sqrt(n))
        labels = fit.label(counts)
        assert np.corrcoef(labels.estimate[np.argsort(labels.doc_id)], relevance)[0, 1] > 0.95

    @pytest.mark.parametrize(("trust", "needed"), [(True, 2), (False, 1)])
    def test_documents_that_stay_are_refused(self, trust: bool, needed: int) -> None:
        message = (
            f"Position(s) 2, 3, 4, 5, 6, 7, 8: fewer than {needed} clicked documents link them with position 1, so "
            "plain EM cannot separate bias from relevance there. Use a log in which documents move, or use "
            "regression-em or mixture, which need no such documents."
        )
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            PlainEM(trust=trust).fit(staying(paper(), queries=20)[0])

    def test_it_says_when_it_has_not_converged(self) -> None:
        fit = PlainEM(max_steps=3).fit(moving(paper(5))[0])
        assert not fit.converged
        assert fit.summary == (
            "Plain EM was still improving when it stopped after 2 steps. Relevance is on the widest scale: 0 and 1 "
            "are the lowest and highest values that any document could have."
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RegressionEM(Told([]), iterations=0), "iterations=0: expected a whole number from 1."),
        (lambda: RegressionEM(Told([]), tolerance=-1), "tolerance=-1: expected a number from 0."),
        (lambda: PlainEM(max_steps=0), "max_steps=0: expected a whole number from 1."),
        (lambda: PlainEM(tolerance=float("nan")), "tolerance=nan: expected a number from 0."),
    ],
)
def test_settings(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        make()


def test_titles() -> None:
    corrections = (
        RegressionEM(Told([])),
        RegressionEM(Told([]), trust=False, clip="twenty"),
        PlainEM(),
        PlainEM(trust=False),
    )
    assert [correction.title for correction in corrections] == [
        "regression EM, clipped to 1",
        "regression EM without trust, clipped to 20",
        "plain EM, clipped to 1",
        "plain EM without trust, clipped to 1",
    ]
