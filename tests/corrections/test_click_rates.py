"""Click rates of cells that a fit has not seen: against hand-checked numbers, and a slow version for every fit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import clickmix as cm
from clickmix.corrections.click_rates import PlacedCells, PredictsClicks, position_rates
from clickmix.corrections.coec_smoothed import FittedSmoothedClicksOverExpected
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.ctr_smoothed import FittedSmoothedRate
from clickmix.corrections.empirical_bayes import BetaPrior, GammaPrior
from clickmix.corrections.none import NoCorrection
from clickmix.corrections.parameters import BiasParameters
from clickmix.corrections.pbm import PositionBasedFit
from clickmix.counts.counts import Counts
from clickmix.groups.places import Place
from moving_logs import moving_counts

PLACES = (Place(1), Place(2))
# Document 0 was shown 8 times at position 1 and clicked 4 times, document 1 twice at position 2, without clicks.
SEEN = PlacedCells(
    PLACES, np.zeros(3, int), np.array([0, 1, 1]), np.array([0, 1, 0]), *np.array([[8, 2, 2], [4, 0, 1]])
)
# Document 2 was not seen.
ASKED = PlacedCells(PLACES, np.zeros(3, int), np.array([0, 1, 2]), np.array([1, 1, 0]), np.ones(3), np.zeros(3))


def test_a_position_without_clicks_has_the_rate_of_half_a_click() -> None:
    assert position_rates(SEEN).tolist() == [0.5, 0.5 / 3]


def test_without_a_correction_the_position_is_all() -> None:
    assert NoCorrection().click_rates(SEEN, ASKED).tolist() == [0.5 / 3, 0.5 / 3, 0.5]


def test_smoothed_rates_start_from_the_asked_position() -> None:
    fit = FittedSmoothedRate({1: BetaPrior(0.5, 4.0), 2: BetaPrior(0.2, 10.0)})
    assert fit.click_rates(SEEN, ASKED) == pytest.approx([(4 + 2) / (8 + 10), (1 + 2) / (4 + 10), 0.5])


def test_smoothed_coec_multiplies_the_rate_of_the_asked_position() -> None:
    fit = FittedSmoothedClicksOverExpected("one", {1: 0.5, 2: 0.1}, GammaPrior(2.0))
    expected = [8 * 0.5, 2 * 0.5 / 3 + 2 * 0.5]
    quality = [(4 + 2) / (expected[0] + 2), (1 + 2) / (expected[1] + 2)]
    assert fit.click_rates(SEEN, ASKED) == pytest.approx([quality[0] * 0.5 / 3, quality[1] * 0.5 / 3, 0.5])


def test_coec_expects_nothing_of_a_document_never_clicked() -> None:
    counts = Counts.from_arrays(["q"] * 4, ["a", "b", "b", "c"], [1, 2, 1, 2], [8, 2, 2, 4], [4, 0, 1, 2])
    fit = CORRECTIONS.make("coec").fit(counts)
    assert isinstance(fit, PredictsClicks)
    rates = fit.click_rates(SEEN, ASKED)
    assert rates == pytest.approx([0.5 / 3, 0.5 / 3 / (2 * 0.5 / 3 + 2 * 0.5), 0.5])


def test_the_position_based_model_never_rules_a_click_out() -> None:
    """With one document seen a thousand times, its attraction is known; the spread of attraction does not matter."""
    seen = PlacedCells(PLACES, np.zeros(2, int), np.array([0]), np.array([0]), np.array([4000.0]), np.array([1000.0]))
    asked = PlacedCells(PLACES, np.zeros(2, int), np.array([0, 1]), np.array([1, 1]), np.ones(2), np.zeros(2))
    fit = PositionBasedFit(BiasParameters.of_examination([1.0, 0.5]), 1, True)
    rates = fit.click_rates(seen, asked)
    assert rates[0] == pytest.approx(0.125, rel=0.05)  # 5 %: how far apart the nodes are
    assert fit.click_rates(SEEN, ASKED).min() > 0


def slow_mixture_rate(fit: cm.MixtureFit, seen: PlacedCells, document: int, place: int) -> float:
    """One cell at a time: Bayes over grades."""
    groups = {p.place: group for group in fit.groups for p in group.places}
    rows = [i for i in range(len(seen.place)) if seen.document[i] == document]
    grades = range(len(groups[seen.places[place]].prior))
    logs = []
    for grade in grades:
        priors = [groups[seen.places[seen.place[i]]].prior for i in rows] or [groups[seen.places[place]].prior]
        weights = [seen.impressions[i] for i in rows] or [1.0]
        log = sum(w * math.log(p[grade] / p[0]) for w, p in zip(weights, priors, strict=True)) / sum(weights)
        for i in rows:
            rate = groups[seen.places[seen.place[i]]].mixture.rates[grade]
            log += seen.clicks[i] * math.log(rate) + (seen.impressions[i] - seen.clicks[i]) * math.log(1 - rate)
        logs.append(log)
    weights = [math.exp(log - max(logs)) for log in logs]
    rates = groups[seen.places[place]].mixture.rates
    return float(sum(w * rates[g] for g, w in zip(grades, weights, strict=True)) / sum(weights))


def test_the_mixture_weighs_the_rates_of_grades() -> None:
    fit = cm.MixtureCorrection(mixture="binomial").fit(moving_counts(queries=60))
    rng = np.random.default_rng(0)
    places = tuple(p.place for group in fit.groups for p in group.places)
    shown = rng.integers(1, 9, 40)
    seen = PlacedCells(
        places,
        np.zeros(12, int),
        rng.integers(0, 10, 40),
        rng.integers(0, len(places), 40),
        shown * 1.0,
        rng.binomial(shown, 0.3) * 1.0,
    )
    asked = PlacedCells(places, seen.query, np.arange(12), rng.integers(0, len(places), 12), np.ones(12), np.zeros(12))
    slow = [slow_mixture_rate(fit, seen, d, p) for d, p in zip(asked.document, asked.place, strict=True)]
    assert fit.click_rates(seen, asked) == pytest.approx(slow, rel=1e-9)


def test_hidden_cells_have_no_clicks() -> None:
    assert SEEN.hidden().clicks.tolist() == [0, 0, 0]
    assert SEEN.hidden().impressions.tolist() == [8, 2, 2]
