"""Click rates of cells that a fit has not seen: against hand-checked numbers, and a slow version for every fit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import clickmix as cm
from clickmix.corrections.affine_em import read_cells
from clickmix.corrections.click_rates import (
    PlacedCells,
    PredictsClicks,
    model_click_rates,
    position_rates,
    predicted_rates,
)
from clickmix.corrections.coec_smoothed import FittedSmoothedClicksOverExpected
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.ctr_smoothed import FittedSmoothedRate
from clickmix.corrections.empirical_bayes import BetaPrior, GammaPrior
from clickmix.corrections.none import NoCorrection
from clickmix.corrections.parameters import BiasParameters
from clickmix.corrections.pbm import PositionBasedFit
from clickmix.counts.counts import Counts
from clickmix.groups.places import Place
from clickmix.mixtures.hierarchical import Cells, Effects, Places
from clickmix.mixtures.hierarchical.climb import expected, first_models
from clickmix.mixtures.hierarchical.fit import with_effects, with_grades
from clickmix.mixtures.log_model import LogModel
from clickmix.types import Ints
from moving_logs import moving_counts
from session_logs import session_log

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
    counts = Counts.from_arrays([0], [0], [1], [1], [1])
    cells = read_cells(counts, correction="pbm")
    fit = PositionBasedFit(BiasParameters.of_examination([1.0, 0.5]), 1, True, counts, cells)
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
    fit = cm.MixtureCorrection(mixture="binomial", sharing=False).fit(moving_counts(queries=60))
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


def slow_model_rate(model: LogModel, number: list[int], seen: PlacedCells, document: int, place: int) -> float:
    """One document at a time: Bayes over grades, with rates of grades that are the same in all queries."""
    rows = [i for i in range(len(seen.place)) if seen.document[i] == document]
    at = [number[seen.place[i]] for i in rows] or [number[place]]
    weights = [seen.impressions[i] for i in rows] or [1.0]
    logs = [0.0]
    for grade in range(1, model.grades):
        prior = sum(w * model.place_logits[k][grade - 1] for w, k in zip(weights, at, strict=True)) / sum(weights)
        shown = math.log(sum(weights))
        added = sum(slope * (min(max(shown, low), high) - low) for low, high, slope in model.exposure(grade))
        ratios = [
            float(model.evidence(number[seen.place[i]]).log_ratios(seen.impressions[i], seen.clicks[i])[grade - 1])
            for i in rows
        ]
        logs.append(prior + added + sum(ratios))
    weights = [math.exp(log - max(logs)) for log in logs]
    return float(sum(w * model.rates[g, number[place]] for g, w in enumerate(weights)) / sum(weights))


def random_cells(places: tuple[Place, ...]) -> tuple[PlacedCells, PlacedCells]:
    """Cells of ten documents of three queries, each place of a document once; twelve documents are asked for."""
    rng = np.random.default_rng(0)
    key = np.sort(rng.choice(10 * len(places), 30, replace=False))
    shown = rng.integers(1, 9, 30)
    query = np.arange(12) % 3
    seen = PlacedCells(
        places, query, key // len(places), key % len(places), shown * 1.0, rng.binomial(shown, 0.3) * 1.0
    )
    asked = PlacedCells(places, query, np.arange(12), rng.integers(0, len(places), 12), np.ones(12), np.zeros(12))
    return seen, asked


@pytest.fixture(scope="module")
def whole() -> cm.MixtureFit:
    """A model of a whole log, in which queries do not differ."""
    return cm.MixtureCorrection(mixture="auto").fit(moving_counts(queries=100))


def test_a_model_of_the_whole_log_weighs_the_rates_of_grades(whole: cm.MixtureFit) -> None:
    assert whole.model is not None
    model = replace(whole.model, attention=None, shares=False, appeal=False, numbers=())
    places = tuple(p.place for group in whole.groups for p in group.places)
    number = [i for i, group in enumerate(whole.groups) for _ in group.places]
    seen, asked = random_cells(places)
    slow = [slow_model_rate(model, number, seen, d, p) for d, p in zip(asked.document, asked.place, strict=True)]
    assert replace(whole, model=model).click_rates(seen, asked) == pytest.approx(slow, rel=1e-6)


def test_a_query_of_much_attention_is_expected_to_be_clicked_more(whole: cm.MixtureFit) -> None:
    """Three queries alike but for their clicks: a document not seen in any of them is clicked most in the third."""
    assert whole.model is not None
    model = replace(whole.model, attention="odds", shares=False, appeal=False, numbers=(0.0,))
    places = tuple(p.place for group in whole.groups for p in group.places)
    shown = np.full(12, 40.0)
    clicks = np.repeat([2.0, 8.0, 20.0], 4)
    query = np.concatenate([np.repeat(np.arange(3), 4), np.arange(3)])
    seen = PlacedCells(places, query, np.arange(12), np.tile(np.arange(4), 3), shown, clicks)
    asked = PlacedCells(places, query, np.arange(12, 15), np.zeros(3, int), np.ones(3), np.zeros(3))
    rates = replace(whole, model=model).click_rates(seen, asked)
    assert rates is not None
    assert rates[0] < rates[1] < rates[2]


def test_a_cascade_predicts_no_clicks() -> None:
    counts = cm.count(pa.table(session_log()), lists=True)
    fit = cm.MixtureCorrection(mixture="binomial", examination="dcm").fit(counts)
    assert predicted_rates(fit, SEEN, ASKED) is None


def test_hidden_cells_have_no_clicks() -> None:
    assert SEEN.hidden().clicks.tolist() == [0, 0, 0]
    assert SEEN.hidden().impressions.tolist() == [8, 2, 2]


@pytest.mark.parametrize("grades", [2, 3])
@pytest.mark.parametrize(
    "effects",
    [Effects("odds"), Effects("examination"), Effects(shares=True), Effects("odds", shares=True, appeal=True)],
)
def test_a_click_is_as_likely_as_the_log_with_it_beside_the_log_without(effects: Effects, grades: int) -> None:
    """P(next click | log) = L(log and the click) / L(log): queries, documents and grades are integrated on both sides.

    Points move when a click is added: likelihoods of both logs agree to .3 %, and to 3 % at the kink of a cap.
    """
    rng = np.random.default_rng(3)
    query, place = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    n = rng.integers(1, 12, 24)
    clicks = rng.binomial(n, np.repeat([0.1, 0.6, 0.3], 8))
    places = Places(np.arange(1.0, 5.0), np.zeros(4, dtype=np.int64))

    def cells(shown: Ints, clicked: Ints) -> Cells:
        return Cells.of_documents(places, query, np.arange(24), place, shown, clicked, queries=6)[0]

    start = first_models(cells(n, clicks))[1]
    start.x[2 * 4 + len(start.knots[0]) :] = 0  # how often a document is shown must not matter: it changes
    model = with_effects(with_grades(start, grades), effects)
    numbers = zip(effects.numbers, model.numbers.tolist(), strict=True)
    model = replace(
        model, numbers=np.array([{"log s": -1.0, "log t": -0.3, "d": 2.0, "cap": 8.0}.get(*each) for each in numbers])
    )
    seen = PlacedCells(
        tuple(map(Place, range(1, 5))), query, np.arange(24), place, n.astype(float), clicks.astype(float)
    )
    rates = model_click_rates(LogModel.of(model), np.arange(4), seen, seen)
    value = expected(model, cells(n, clicks))[1].value
    once = np.eye(24, dtype=np.int64)
    with_click = [expected(model, cells(n + one, clicks + one))[1].value for one in once]
    rtol = {"examination": 0.04, "odds": 0.005, None: 1e-9}[effects.attention]
    np.testing.assert_allclose(rates, np.exp(np.array(with_click) - value), rtol=rtol)
