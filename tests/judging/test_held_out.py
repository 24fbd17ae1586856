"""Held-out evidence: hand-checked numbers, and what it says of logs whose truth is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import clickmix as cm
from clickmix.corrections.click_rates import PlacedCells, placed_cells, predicted_rates, quarter_cells, without_context
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.none import NoCorrection
from clickmix.counts.counts import Counts
from clickmix.groups.places import Place
from clickmix.groups.sample import QUARTERS, deal
from clickmix.judging.held_out import (
    LEAST_RATE,
    HeldOutEvidence,
    agreement,
    baseline_rates,
    evidence,
    held_out_bits,
    held_out_evidence,
    held_out_sentences,
    moves,
)
from clickmix.report.held_out import held_out_results
from clickmix.report.rows import json_text
from clickmix.types import Floats
from moving_logs import moving_counts
from session_logs import session_log

PLACES = (Place(1), Place(2))


def test_perplexity_of_three_impressions() -> None:
    """A click and a skip at rate 1/2, a skip at rate 1/4: 2^((1 + 1 + log2(4/3)) / 3)."""
    asked = PlacedCells(
        PLACES, np.array([0, 1]), np.array([0, 1]), np.array([0, 1]), np.array([2.0, 1]), np.array([1.0, 0])
    )
    found = held_out_bits("x", np.array([0.5, 0.25]), asked)
    assert found.perplexity == pytest.approx(2 ** ((2 + math.log2(4 / 3)) / 3))
    assert found.impressions.tolist() == [2, 1]


def test_a_rate_of_0_is_very_wrong_and_not_infinitely() -> None:
    asked = PlacedCells(PLACES, np.array([0]), np.array([0]), np.array([0]), np.array([1.0]), np.array([1.0]))
    assert held_out_bits("x", np.array([0.0]), asked).bits.tolist() == [-math.log2(LEAST_RATE)]


def test_the_interval_of_a_gain_holds_the_true_one() -> None:
    """Two fixed predictions of simulated clicks, 200 times: the interval holds the expected gain about so often."""
    rng = np.random.default_rng(0)
    documents = 400
    query = np.repeat(np.arange(100), 4)
    rate, shown = rng.uniform(0.1, 0.5, documents), np.full(documents, 5.0)
    other = np.full(documents, 0.3)
    expected = 1000 * np.mean(rate * np.log2(rate / other) + (1 - rate) * np.log2((1 - rate) / (1 - other)))
    held = 0
    for _ in range(200):
        clicks = rng.binomial(5, rate).astype(float)
        asked = PlacedCells(PLACES, query, np.arange(documents), np.zeros(documents, int), shown, clicks)
        gain, margin = held_out_bits("a", rate, asked).gain_over(held_out_bits("b", other, asked))
        held += abs(gain - expected) <= margin
    assert 0.95 * 200 - 5 * math.sqrt(200 * 0.95 * 0.05) <= held  # rates are fixed here, so it may hold more often


def test_cells_of_two_parts_have_the_same_codes() -> None:
    engine_counts = cm.count(pa.table(session_log()))
    one = Counts(
        engine_counts.engine, engine_counts.engine.keep(f"SELECT * FROM {engine_counts.table} WHERE doc_id < 5")
    )
    first, second = placed_cells(one, engine_counts)
    rows = engine_counts.engine.rows(engine_counts.query())
    assert len(second.place) == len(rows)
    ids = {code: (row[0], row[1]) for code, row in zip(second.document.tolist(), rows, strict=True)}
    kept = [row for row in rows if row[1] < 5]
    assert [ids[code] for code in first.document.tolist()] == [(row[0], row[1]) for row in kept]
    assert first.clicks.tolist() == [row[-1] for row in kept]
    assert first.position.tolist() == [row[2] for row in kept]
    assert first.query is second.query
    assert len(set(zip(second.query[second.document].tolist(), (row[0] for row in rows), strict=True))) == 3


@pytest.mark.parametrize("dealt", ["sessions", "impressions"])
def test_cells_of_quarters_are_those_of_their_counts(dealt: str) -> None:
    counts = cm.count(pa.table(session_log()))
    quarters = deal(counts if dealt == "sessions" else replace(counts, parts=()))
    expected = placed_cells(*(quarters.counts(i) for i in range(QUARTERS)))
    for one, other in zip(quarter_cells(quarters), expected, strict=True):
        for name in ("query", "document", "position", "impressions", "clicks"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_cells_by_list_come_list_by_list() -> None:
    counts = cm.count(pa.table(session_log()), lists=True)
    (cells,) = placed_cells(counts)
    assert cells.list is not None
    new = np.r_[True, cells.list[1:] != cells.list[:-1]]
    assert (np.diff(cells.list) >= 0).all()
    assert (np.diff(cells.position)[~new[1:]] >= 0).all()
    ((lists,),) = counts.engine.rows(f"SELECT count(*) FROM (SELECT DISTINCT query_id, list FROM {counts.by_list})")
    assert new.sum() == lists


def test_contexts_add_up() -> None:
    counts = moving_counts(device=True, queries=5)
    plain = without_context(counts)
    assert (plain.totals(), plain.context) == (counts.totals(), ())
    assert without_context(plain) is plain


def cells(place: list[int], shown: list[float]) -> PlacedCells:
    """A cell for each of some documents of one query; one that is shown 0 times is not there."""
    seen = np.flatnonzero(shown)
    n = np.array(shown, dtype=float)[seen]
    return PlacedCells(PLACES, np.zeros(len(place), int), seen, np.array(place)[seen], n, 0 * n)


def test_agreement_by_hand() -> None:
    """Three documents in both halves, with weights 1, 2 and 2; the fourth is in one half only."""
    one, other = cells([0, 1, 1, 1], [1, 5, 2, 1]), cells([0, 1, 1, 1], [2, 2, 2, 0])
    found = agreement(np.array([1, 0, 0.5, 0.3]), np.array([0.8, 0, 0.2, 9]), one, other)
    assert found is not None
    x, y, w = np.array([1, 0, 0.5]), np.array([0.8, 0, 0.2]), np.array([1, 2, 2.0])
    repeated = np.repeat(np.stack([x, y]), w.astype(int), axis=1)
    assert found.documents == 3
    assert found.correlation == pytest.approx(np.corrcoef(repeated)[0, 1])
    assert found.difference == pytest.approx((1 * 0.2 + 2 * 0 + 2 * 0.3) / 5)
    assert found.beyond_position == pytest.approx(1.0)  # at position 2 two documents, in the same order in both


def test_halves_that_say_nothing_have_no_correlation() -> None:
    both = cells([0, 1], [1, 5])
    found = agreement(np.array([0.5, 0.5]), np.array([0.5, 0.1]), both, both)
    assert found is not None
    assert found.correlation is None


def test_halves_without_a_common_document_do_not_agree_or_disagree() -> None:
    assert agreement(np.zeros(2), np.ones(2), cells([0, 0], [1, 0]), cells([0, 0], [0, 1])) is None


def test_moves_by_hand() -> None:
    """Document 0: 10 and 10 impressions, 8 and 4 clicks. Document 1: 30 and 10, 9 and 1. Document 2 stays."""
    seen = PlacedCells(
        PLACES,
        np.array([0, 1, 1]),
        np.array([0, 0, 1, 1, 2]),
        np.array([0, 1, 0, 1, 1]),
        np.array([10.0, 10, 30, 10, 50]),
        np.array([8.0, 4, 9, 1, 50]),
    )
    (move,) = moves(seen, np.array([0.5, 0.25, 0.4, 0.3, 0.9]))
    assert (move.above, move.below, move.documents) == (1, 2, 2)
    top, bottom = 5 * 0.8 + 7.5 * 0.3, 5 * 0.4 + 7.5 * 0.1
    assert move.observed == pytest.approx(bottom / top)
    assert move.expected == pytest.approx((5 * 0.25 + 7.5 * 0.3) / (5 * 0.5 + 7.5 * 0.4))
    spread = math.hypot(5 * 0.4 / bottom - 5 * 0.8 / top, 7.5 * 0.1 / bottom - 7.5 * 0.3 / top)
    assert move.high / move.observed == pytest.approx(math.exp(1.959963984540054 * spread))


def test_parts_of_a_log_add_up() -> None:
    whole, part, rest = (
        PlacedCells(PLACES, np.array([0]), np.array([0, 0]), np.array([0, 1]), np.array(shown), np.array(clicks))
        for shown, clicks in (([40.0, 20], [20.0, 6]), ([10.0, 5], [5.0, 1]), ([30.0, 15], [15.0, 5]))
    )
    assert moves(part.added_up(rest), None) == moves(whole, None)


@pytest.mark.parametrize("device", [False, True])
def test_baselines_are_the_corrections_of_these_names(device: bool) -> None:
    counts = moving_counts(device=device)
    (seen,) = placed_cells(counts)
    corrections = (NoCorrection(), CORRECTIONS.make("ctr-smoothed"), CORRECTIONS.make("coec-smoothed"))
    for (name, rates), correction in zip(baseline_rates(seen, seen), corrections, strict=True):
        expected = np.asarray(predicted_rates(correction.fit(without_context(counts)), seen, seen))
        np.testing.assert_allclose(rates, expected, rtol=1e-9, err_msg=name)


@pytest.fixture(scope="module")
def moving() -> tuple[cm.MixtureFit, Counts]:
    counts = moving_counts(queries=150)
    return cm.MixtureCorrection().fit(counts), counts


@pytest.fixture(scope="module")
def found(moving: tuple[cm.MixtureFit, Counts]) -> HeldOutEvidence:
    """Evidence on the kind of model that made the clicks, from a log whose documents move."""
    evidence = held_out_evidence(*moving)
    assert evidence is not None
    return evidence


def test_the_model_that_made_the_clicks_predicts_them_best(found: HeldOutEvidence) -> None:
    names = [base.name for base in found.baselines]
    assert names == ["the position's click rate", "smoothed click-through rate", "smoothed COEC"]
    for base in found.baselines:
        gain, margin = found.prediction.gain_over(base)
        assert gain > margin


def test_click_rates_of_documents_that_move_are_what_their_model_expects(found: HeldOutEvidence) -> None:
    """Click rates go with 1 / position: five pairs, intervals of 95 %; two outside are one log in 44."""
    assert [(move.above, move.below) for move in found.moving] == [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]
    assert sum(move.low <= move.above / move.below <= move.high for move in found.moving) >= 4
    assert sum(move.low <= (move.expected or 0) <= move.high for move in found.moving) >= 4


class Rates:
    """Learns the click-through rate of every document."""

    def __init__(self, seen: PlacedCells) -> None:
        self.rate = seen.by_document(seen.clicks) / np.maximum(seen.by_document(seen.impressions), 1)

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        return self.rate[asked.document]

    def usual_click_rates(self, seen: PlacedCells) -> Floats:
        return self.rate[seen.document]

    def relevance(self, seen: PlacedCells) -> Floats:
        return self.rate


def test_halves_differ_by_chance_alone() -> None:
    """Click-through rates of 200 impressions each, rate .3: E|a - b| = sqrt(2/pi) sqrt(2 .3 .7 / 200) = .037."""
    rng = np.random.default_rng(1)
    clicks = rng.binomial(400, 0.3, 1000)
    counts = Counts.from_arrays(np.arange(1000), np.zeros(1000, int), np.ones(1000, int), np.full(1000, 400), clicks)
    found = evidence(counts, Rates)
    assert found is not None
    assert found.halves is not None
    expected = math.sqrt(2 / math.pi) * math.sqrt(2 * 0.21 / 200)
    margin = 5 * 0.0458 * math.sqrt(1 - 2 / math.pi) / math.sqrt(1000)
    assert found.halves.difference == pytest.approx(expected, abs=margin)
    assert abs(found.halves.correlation or 0) < 5 / math.sqrt(1000)  # all documents are alike


def test_parameters_come_from_the_part_alone(moving: tuple[cm.MixtureFit, Counts]) -> None:
    """Fitted again to all of the log the model stays; of half of the clicks the rates are half as high."""
    fit, counts = moving
    (seen,) = placed_cells(counts)
    assert fit.model is not None
    same = fit.fitted_again(seen).model
    assert same is not None
    assert same.rates == pytest.approx(fit.model.rates, rel=0.02)
    thinned = replace(seen, clicks=np.random.default_rng(0).binomial(seen.clicks.astype(int), 0.5).astype(float))
    fewer = fit.fitted_again(thinned).model
    assert fewer is not None
    assert fewer.rates == pytest.approx(fit.model.rates / 2, rel=0.15)


def test_labels_of_cells_are_those_of_the_log(moving: tuple[cm.MixtureFit, Counts]) -> None:
    fit, counts = moving
    (seen,) = placed_cells(counts)
    labels = fit.label(counts)
    order = np.lexsort((labels.doc_id, labels.query_id))  # codes of documents come in this order
    np.testing.assert_allclose(fit.relevance(seen), labels.relevance[order], rtol=1e-9)


def test_a_sample_of_queries_is_a_sample_of_queries(moving: tuple[cm.MixtureFit, Counts]) -> None:
    fit, counts = moving
    found = held_out_evidence(fit, counts, most_cells=1)  # the fewest queries that are dealt: 100 of 150
    assert found is not None
    assert found.share == pytest.approx(100 / 150)
    assert len(found.prediction.bits) < 150
    assert "impressions of 66.7% of the queries" in next(held_out_sentences(found))


@pytest.mark.parametrize("options", [{"mixture": "gaussian"}, {"sharing": False}])
def test_groups_fitted_by_themselves_have_no_such_evidence(options: dict[str, Any]) -> None:
    counts = moving_counts()
    fit = cm.MixtureCorrection(**options).fit(counts)
    assert held_out_evidence(fit, counts) is None
    with pytest.raises(cm.SettingError, match="whole log"):
        fit.relevance(placed_cells(counts)[0])


def test_a_log_of_one_impression_has_no_quarters() -> None:
    assert evidence(Counts.from_arrays(["q"], ["a"], [1], [1], [1]), Rates) is None


def test_the_same_evidence_twice(moving: tuple[cm.MixtureFit, Counts], found: HeldOutEvidence) -> None:
    again = held_out_evidence(*moving)
    assert again is not None
    assert json_text(held_out_results(again).json()) == json_text(held_out_results(found).json())


def test_evidence_in_words_and_rows(found: HeldOutEvidence) -> None:
    results = held_out_results(found)
    first, second, third, last = results.sentences
    assert first.startswith(
        "Clicks in a quarter of the impressions, predicted from the rest (perplexity; 1 is perfect): this model 1."
    )
    assert first.endswith("Labels predict clicks significantly better than positions alone.")
    assert second.startswith("Labels from two halves of the log correlate at 0.")
    assert third.startswith("Documents seen at two neighbouring positions are ")
    assert "whether clicks mean relevance: clickmix compare LOG --judgments FILE" in last
    document = json.loads(json_text(results.json()))
    assert document["dealt"] == "impressions"
    assert document["predictions"][0]["bits_saved"] is None
    assert document["predictions"][1]["bits_saved"]["margin"] > 0
    assert set(document["halves"]) == {"correlation", "correlation beyond position", "mean difference", "documents"}
    assert len(document["moving"]) == 5


def test_words_name_what_predicts_better_and_where_the_model_is_wrong(found: HeldOutEvidence) -> None:
    worse = replace(found.prediction, bits=found.prediction.bits * 1.2)
    move = replace(found.moving[0], observed=0.5, low=0.4, high=0.6, expected=0.8)
    said = list(held_out_sentences(replace(found, prediction=worse, moving=(move, *found.moving[1:]))))
    assert said[0].endswith(
        "Labels predict clicks significantly worse than positions alone, and smoothed click-through rate and smoothed "
        "COEC predict them significantly better than labels do."
    )
    assert said[2].endswith(
        "The largest difference: they are clicked 0.50 times as often at position 2 as at position 1 "
        "(95% interval 0.40 to 0.60); the model expects 0.80."
    )


def test_a_verdict_has_the_evidence_if_asked(moving: tuple[cm.MixtureFit, Counts], found: HeldOutEvidence) -> None:
    fit, counts = moving
    plain, asked = cm.judge(fit, counts), cm.judge(fit, counts, held_out=True)
    assert plain.held_out is None
    assert asked.held_out is not None
    assert str(asked) == str(plain)
    assert asked.sentences == (*plain.sentences, *held_out_sentences(found))
    with pytest.raises(cm.SettingError, match="needs the log"):
        cm.judge(fit, held_out=True)
