"""The position-based click model and intervention harvesting: against slow versions, against the truth, refusals."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from clickmix.corrections.affine_em import CodedCells
from clickmix.corrections.click_models.attraction import fit_examination, most_likely_attraction
from clickmix.corrections.correction import Correction
from clickmix.corrections.intervention import Intervention, Pairs
from clickmix.corrections.ips import InversePropensity
from clickmix.corrections.parameters import BiasParameters
from clickmix.corrections.pbm import PositionBasedModel
from clickmix.corrections.plain_em import PlainEM
from clickmix.counts.counts import Counts
from clickmix.errors import InputError, SettingError
from clickmix.lab.users import PositionBased
from moving_logs import moving_counts
from oracles_corrections import documents
from oracles_peers import position_based_em, shared_rates

Floats = NDArray[np.float64]
THETA = np.array([1.0, 0.6, 0.45, 0.2])


def moving(*, documents: int, impressions: int, seed: int, theta: Floats = THETA) -> Counts:
    """Documents of any attraction, each at two positions."""
    rng = np.random.default_rng(seed)
    upper = np.arange(documents) % len(theta)
    position = np.stack([upper, (upper + 1 + rng.integers(len(theta) - 1, size=documents)) % len(theta)], axis=1)
    attraction = rng.beta(1.5, 3, documents)
    clicks = rng.binomial(impressions, attraction[:, None] * theta[position])
    ids = np.repeat(np.arange(documents), 2)
    return Counts.from_arrays(ids // 5, ids, position.ravel() + 1, np.full(2 * documents, impressions), clicks.ravel())


def without_noise(theta: Floats = THETA) -> tuple[Counts, Floats]:
    """Clicks exactly as often as expected, of 40 documents at every position; and their attraction."""
    attraction = np.linspace(0.1, 0.9, 40).round(2)
    clicks = np.rint(10_000 * attraction[:, None] * theta).astype(np.int64)
    ids = np.repeat(np.arange(40), len(theta))
    positions = np.tile(np.arange(1, len(theta) + 1), 40)
    return Counts.from_arrays(ids, ids, positions, np.full(len(ids), 10_000), clicks.ravel()), attraction


class TestPositionBasedModel:
    def test_equals_the_published_em(self) -> None:
        """After 1,000 steps nothing moves any more; the likelihood is flat to 1e-16 within 1e-8 of its top."""
        counts = moving(documents=24, impressions=200, seed=2)
        found = list(documents(counts).values())
        attraction, examination = position_based_em(found, 4, steps=1_000)
        top = max(examination)
        fit = PositionBasedModel().fit(counts)
        assert fit.parameters.alpha == pytest.approx(np.array(examination) / top, abs=1e-7)
        assert fit.label(counts).relevance == pytest.approx(np.array(attraction) * top, abs=1e-7)

    def test_equals_the_user_model_fitted_to_counts(self) -> None:
        counts = moving(documents=500, impressions=60, seed=0)
        cells = counts.cells()
        user = PositionBased.fit_counts(
            cells["doc_id"], cells["position"], cells["impressions"], cells["clicks"], tolerance=1e-14, max_steps=9_000
        )
        fit = PositionBasedModel().fit(counts)
        assert isinstance(user.user, PositionBased)
        assert user.user.examination == pytest.approx(fit.parameters.alpha, abs=1e-5)
        labels = fit.label(counts)
        assert user.attraction == pytest.approx(labels.relevance[np.argsort(labels.doc_id)], abs=1e-5)

    def test_finds_the_truth_where_there_is_no_noise(self) -> None:
        counts, attraction = without_noise()
        fit = PositionBasedModel().fit(counts)
        assert fit.converged
        assert fit.parameters.alpha == pytest.approx(THETA, abs=1e-4)
        assert fit.label(counts).relevance == pytest.approx(attraction, abs=1e-3)

    def test_labels_are_those_of_plain_em_without_trust_only_where_documents_stay(self) -> None:
        counts = moving_counts(queries=40)
        fit, plain = PositionBasedModel().fit(counts), PlainEM(trust=False, tolerance=1e-12).fit(counts)
        assert fit.parameters.alpha == pytest.approx(plain.parameters.alpha, abs=1e-3)
        stay = Counts.from_arrays([0, 0, 0], [0, 1, 2], [1, 3, 6], [50, 50, 50], [9, 4, 50])
        ips = InversePropensity(fit.parameters.alpha).label(stay).relevance
        assert fit.label(stay).relevance == pytest.approx(ips, abs=1e-9)
        assert np.abs(fit.label(counts).relevance - plain.label(counts).relevance).max() > 0.05

    def test_attraction_is_where_the_likelihood_is_highest(self) -> None:
        counts = moving_counts(queries=10)
        fit = PositionBasedModel().fit(counts)
        theta = fit.parameters.alpha
        grid = np.linspace(0.0005, 0.9995, 1000)
        for cells, label in zip(documents(counts).values(), fit.label(counts).relevance, strict=True):
            k, n, c = (np.array(column)[:, None] for column in zip(*cells, strict=True))
            p = grid * theta[k - 1]
            best = grid[np.argmax((c * np.log(p) + (n - c) * np.log1p(-p)).sum(axis=0))]
            assert label == pytest.approx(best, abs=0.001)

    @pytest.mark.parametrize("seed", range(40))
    def test_no_examination_nearby_is_more_likely_however_odd_the_log(self, seed: int) -> None:
        """Few documents at few places, never or always clicked, unlinked: concave, so near the top is at the top."""
        rng = np.random.default_rng(seed)
        places = np.unique(rng.integers([12, 6], size=(rng.integers(1, 60), 2)), axis=0)
        document = np.unique(places[:, 0], return_inverse=True)[1]
        shown = rng.integers(1, (3, 50, 100_000)[seed % 3], len(places))
        clicks = rng.binomial(shown, rng.choice([0.02, 0.3, 1.0], len(places)) * rng.random(len(places)) ** (seed % 4))
        ids = np.arange(document.max() + 1)
        cells = CodedCells(ids, ids, document, places[:, 1], shown.astype(float), clicks.astype(float))

        def log_likelihood(examination: Floats) -> float:
            p = most_likely_attraction(cells, examination)[document] * examination[cells.position]
            return float((xlogy(clicks, p) + xlog1py(shown - clicks, -np.minimum(p, 1 - 1e-12))).sum())

        found = fit_examination(cells)
        assert found.converged
        best = np.nan_to_num(found.of_place, nan=0.5)  # says nothing, so may be anything
        top = log_likelihood(best)
        for place, factor in itertools.product(range(len(best)), (0.99, 1.01)):
            other = best.copy()
            other[place] = np.clip(best[place] * factor, 1e-6, 1.0)
            assert log_likelihood(other) <= top + 1e-9 * shown.sum()

    def test_intervals_end_where_the_likelihood_ratio_says(self) -> None:
        """chi-squared with one degree of freedom is below 3.8415 in 95 % of cases."""
        counts = moving_counts(queries=10)
        fit = PositionBasedModel().fit(counts)
        labels, theta = fit.label(counts), fit.parameters.alpha
        grid = np.linspace(0.0005, 0.9995, 1000)
        ends = zip(labels.columns["low"], labels.columns["high"], strict=True)
        for cells, (low, high) in zip(documents(counts).values(), ends, strict=True):
            k, n, c = (np.array(column)[:, None] for column in zip(*cells, strict=True))
            p = grid * theta[k - 1]
            likely = (c * np.log(p) + (n - c) * np.log1p(-p)).sum(axis=0)
            inside = grid[2 * (likely.max() - likely) < 3.8415]
            assert (low, high) == pytest.approx((inside[0], inside[-1]), abs=0.0015)

    def test_intervals_of_documents_nobody_clicked_or_everybody(self) -> None:
        """(1 - high)^50 and low^50 are 1 / e^1.9207."""
        fit = PositionBasedModel().fit(moving_counts(queries=40))
        counts = Counts.from_arrays([0, 0], [0, 1], [1, 1], [50, 50], [0, 50])
        labels = fit.label(counts)
        end = np.exp(-1.9207 / 50)
        assert labels.columns["low"] == pytest.approx([0, end], abs=1e-4)
        assert labels.columns["high"] == pytest.approx([1 - end, 1], abs=1e-4)

    def test_intervals_hold_the_truth_as_often_as_they_say(self) -> None:
        """Of 4,000 documents; 0.01: chi-squared holds for many clicks, and examination is estimated."""
        attraction, positions = np.random.default_rng(1).beta(1.5, 3, 4000), np.arange(4)
        clicks = np.random.default_rng(2).binomial(60, attraction[:, None] * THETA)
        ids = np.repeat(np.arange(4000), 4)
        counts = Counts.from_arrays(ids // 5, ids, np.tile(positions + 1, 4000), np.full(16_000, 60), clicks.ravel())
        labels = PositionBasedModel().fit(counts).label(counts)
        truth = attraction[labels.doc_id]
        held = ((labels.columns["low"] <= truth) & (truth <= labels.columns["high"])).mean()
        assert abs(held - 0.95) < 0.01 + 4 * (0.95 * 0.05 / 4000) ** 0.5

    def test_documents_nobody_clicked_have_attraction_0_and_those_always_clicked_1(self) -> None:
        fit = PositionBasedModel().fit(moving_counts(queries=40))
        counts = Counts.from_arrays([0, 0], [0, 1], [1, 1], [50, 50], [0, 50])
        assert fit.label(counts).relevance == pytest.approx([0, 1], abs=1e-12)
        assert fit.label(counts).relevance[0] == 0

    def test_a_log_in_which_documents_stay_is_refused(self) -> None:
        counts = Counts.from_arrays([0] * 4, range(4), [1, 1, 2, 2], [10] * 4, [5] * 4)
        with pytest.raises(InputError, match=r"^Position\(s\) 2: fewer than 1 clicked documents link them with"):
            PositionBasedModel().fit(counts)

    def test_one_document_at_one_position_has_its_click_rate(self) -> None:
        counts = Counts.from_arrays([0], [0], [1], [10], [4])
        fit = PositionBasedModel().fit(counts)
        assert fit.label(counts).relevance == pytest.approx([0.4], abs=1e-6)


class TestIntervention:
    @pytest.mark.parametrize("pairs", ["all", "adjacent"])
    def test_finds_theta_where_there_is_no_noise(self, pairs: Pairs) -> None:
        counts, attraction = without_noise()
        fit = Intervention(pairs).fit(counts)
        assert fit.parameters.alpha == pytest.approx(THETA, abs=1e-5)
        assert fit.label(counts).estimate == pytest.approx(attraction, abs=1e-3)

    @pytest.mark.parametrize("pairs", ["all", "adjacent"])
    def test_theta_is_1_where_it_is_highest(self, pairs: Pairs) -> None:
        theta = np.array([0.5, 1.0, 0.25])
        assert Intervention(pairs).fit(without_noise(theta)[0]).parameters.alpha == pytest.approx(theta, abs=1e-5)

    def test_the_chain_equals_a_slow_version(self) -> None:
        counts = moving_counts(queries=40)
        found = list(documents(counts).values())
        theta = [1.0]
        for k in range(1, 6):
            theta.append(theta[-1] * shared_rates(found, k + 1, k) / shared_rates(found, k, k + 1))
        slow = np.array(theta) / max(theta)
        assert Intervention("adjacent").fit(counts).parameters.alpha == pytest.approx(slow, abs=1e-9)

    def test_all_pairs_have_a_score_of_zero(self) -> None:
        """At the best theta and r, sum over pairs of s - m theta r, divided by 1 - theta r, is 0 at every position."""
        counts = moving_counts(queries=60)
        found, fit = list(documents(counts).values()), Intervention("all").fit(counts)
        assert fit.converged
        theta, score = fit.parameters.alpha, np.zeros(6)
        for pair in fit.pairs:
            j, k, m = pair.upper, pair.lower, pair.documents
            s = np.array([shared_rates(found, j, k), shared_rates(found, k, j)])
            assert (pair.upper_rates, pair.lower_rates) == pytest.approx(tuple(s), abs=1e-9)
            t = theta[[j - 1, k - 1]]
            low, high = 0.0, 1 / t.max()
            for _ in range(60):  # r of this pair: its own score is 0
                r = (low + high) / 2
                low, high = (r, high) if ((s - m * t * r) / (1 - t * r)).sum() > 0 else (low, r)
            score[[j - 1, k - 1]] += (s - m * t * r) / (1 - t * r)
        assert np.abs(score).max() < 1e-3 * sum(pair.documents for pair in fit.pairs) ** 0.5

    @pytest.mark.parametrize("pairs", ["all", "adjacent"])
    def test_the_truth_is_within_five_standard_errors_of_the_mean_of_many_logs(self, pairs: Pairs) -> None:
        logs = [moving(documents=400, impressions=400, seed=seed) for seed in range(12)]
        found = np.log([Intervention(pairs).fit(log).parameters.alpha for log in logs])
        error = found.std(axis=0, ddof=1) / len(logs) ** 0.5
        assert (np.abs(found.mean(axis=0) - np.log(THETA))[1:] < 5 * error[1:]).all()
        assert (error < 0.02).all()

    def test_labels_are_ips_with_the_theta_found(self) -> None:
        counts = moving_counts(queries=30)
        fit = Intervention(clip="twenty").fit(counts)
        ips = InversePropensity(fit.parameters.alpha, "twenty").label(counts)
        assert fit.label(counts).estimate.tolist() == ips.estimate.tolist()
        assert fit.label(counts).relevance.tolist() == ips.relevance.tolist()

    def test_theta_is_written_as_parameters(self, tmp_path: Path) -> None:
        fit = Intervention().fit(moving_counts(queries=30))
        fit.write(tmp_path / "theta.json")
        assert BiasParameters.read(tmp_path / "theta.json").alpha.tolist() == fit.parameters.alpha.tolist()

    def test_the_summary_names_the_weakest_pair(self) -> None:
        counts = Counts.from_arrays([0] * 6, [0, 0, 1, 1, 2, 2], [1, 2, 1, 2, 2, 3], [10] * 6, [5, 4, 5, 4, 3, 2])
        assert Intervention().fit(counts).summary == (
            "Theta comes from 2 pairs of positions that share documents. Positions 2 and 3 share the fewest: 1."
        )


NO_PAIRS = (
    "No two positions share documents that were clicked at both, so intervention cannot tell position bias from "
    "relevance. Use a log in which documents move, or use mixture, which needs no such documents."
)
REFUSED: dict[str, tuple[Any, str]] = {
    "documents stay": (([1, 2], [0, 1], [10, 10], [5, 5]), NO_PAIRS),
    "one position": (([1, 1], [0, 1], [10, 10], [5, 5]), NO_PAIRS),
    "one document": (([1], [0], [10], [5]), NO_PAIRS),
    "no clicks": (([1, 2], [0, 0], [10, 10], [0, 0]), NO_PAIRS),
    "a position apart": (
        ([1, 2, 3], [0, 0, 1], [10, 10, 10], [5, 5, 5]),
        "Position(s) 3: no clicked documents link them with position 1, so intervention cannot compare them. Use a log "
        "in which documents move, or use mixture, which needs no such documents.",
    ),
    "a position not shown": (
        ([1, 3], [0, 0], [10, 10], [5, 5]),
        "Position 2 was never shown but position 3 was, so its theta cannot be estimated. Use a log with every "
        "position "
        "down to the last.",
    ),
}


@pytest.mark.parametrize("pairs", ["all", "adjacent"])
@pytest.mark.parametrize("case", REFUSED)
def test_intervention_refuses_logs_whose_positions_cannot_be_compared(case: str, pairs: Pairs) -> None:
    (position, document, impressions, clicks), message = REFUSED[case]
    counts = Counts.from_arrays([0] * len(position), document, position, impressions, clicks)
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        Intervention(pairs).fit(counts)


def test_a_chain_needs_every_neighbour() -> None:
    """Documents link 1 with 2 and 1 with 3: enough for all pairs."""
    counts = Counts.from_arrays([0] * 4, [0, 0, 1, 1], [1, 2, 1, 3], [10] * 4, [5, 4, 5, 3])
    assert Intervention("all").fit(counts).parameters.alpha == pytest.approx([1, 0.8, 0.6], abs=1e-5)
    message = (
        "Position(s) 3: no clicked documents link them with position 1, so intervention cannot compare them. Use a log "
        "in which documents move, or use mixture, which needs no such documents."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        Intervention("adjacent").fit(counts)


def test_unknown_pairs_are_refused() -> None:
    with pytest.raises(SettingError, match=r"^pairs 'some': expected one of all, adjacent\.$"):
        Intervention("some")  # type: ignore[arg-type]


@pytest.mark.parametrize(("correction", "name"), [(PositionBasedModel(), "pbm"), (Intervention(), "intervention")])
def test_contexts_are_refused(correction: Correction, name: str) -> None:
    message = (
        f"{name} knows only positions, but the counts have context columns: device. Count the log without context "
        "columns, or one context at a time."
    )
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        correction.fit(moving_counts(queries=5, device=True))
