"""Held-out evidence: hand-checked numbers, and what it says of logs whose truth is known."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

import clickmix as cm
from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.coec_smoothed import SmoothedClicksOverExpected
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.labels import Labels
from clickmix.corrections.none import NoCorrection
from clickmix.counts.counts import Counts
from clickmix.groups.places import Place
from clickmix.judging.held_out.cells import placed_cells, without_context
from clickmix.judging.held_out.evidence import HeldOutEvidence, evidence
from clickmix.judging.held_out.halves import agreement
from clickmix.judging.held_out.moves import moves
from clickmix.judging.held_out.prediction import LEAST_RATE, held_out_bits
from clickmix.report.held_out import held_out_results
from clickmix.report.rows import json_text
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


def labels_of(counts: Counts, relevance: dict[str, float]) -> Labels:
    values = ", ".join(f"('{doc}', {value})" for doc, value in relevance.items())
    return Labels(
        counts,
        "SELECT query_id, doc_id, relevance, CAST(sum(impressions) AS BIGINT) AS impressions FROM "
        f"{counts.table} JOIN (VALUES {values}) AS given(doc_id, relevance) USING (doc_id) GROUP BY ALL",
    )


def test_agreement_by_hand() -> None:
    """Three documents in both halves, with weights 1, 1 and 2; the fourth is in one half only."""
    one = Counts.from_arrays(["q"] * 4, list("abcd"), [1, 2, 2, 2], [1, 5, 2, 1], [0, 1, 1, 1])
    other = Counts(
        one.engine, one.engine.keep(f"SELECT * REPLACE (2 AS impressions) FROM {one.table} WHERE doc_id <> 'd'")
    )
    found = agreement(
        labels_of(one, {"a": 1.0, "b": 0.0, "c": 0.5, "d": 0.3}), labels_of(other, {"a": 0.8, "b": 0.0, "c": 0.2})
    )
    assert found is not None
    x, y, w = np.array([1, 0, 0.5]), np.array([0.8, 0, 0.2]), np.array([1, 2, 2.0])
    repeated = np.repeat(np.stack([x, y]), w.astype(int), axis=1)
    assert found.documents == 3
    assert found.correlation == pytest.approx(np.corrcoef(repeated)[0, 1])
    assert found.difference == pytest.approx((1 * 0.2 + 2 * 0 + 2 * 0.3) / 5)
    assert found.beyond_position == pytest.approx(1.0)  # at position 2 two documents, in the same order in both


def test_halves_that_say_nothing_have_no_correlation() -> None:
    one = Counts.from_arrays(["q"] * 2, list("ab"), [1, 2], [1, 5], [0, 1])
    found = agreement(labels_of(one, {"a": 0.5, "b": 0.5}), labels_of(one, {"a": 0.5, "b": 0.1}))
    assert found is not None
    assert found.correlation is None


def test_moves_by_hand() -> None:
    """Document 0: 10 and 10 impressions, 8 and 4 clicks. Document 1: 30 and 10, 9 and 1. Document 2 stays."""
    cells = PlacedCells(
        PLACES,
        np.array([0, 1, 1]),
        np.array([0, 0, 1, 1, 2]),
        np.array([0, 1, 0, 1, 1]),
        np.array([10.0, 10, 30, 10, 50]),
        np.array([8.0, 4, 9, 1, 50]),
    )
    (move,) = moves([cells], [np.array([0.5, 0.25, 0.4, 0.3, 0.9])])
    assert (move.above, move.below, move.documents) == (1, 2, 2)
    top, bottom = 5 * 0.8 + 7.5 * 0.3, 5 * 0.4 + 7.5 * 0.1
    assert move.observed == pytest.approx(bottom / top)
    assert move.expected == pytest.approx((5 * 0.25 + 7.5 * 0.3) / (5 * 0.5 + 7.5 * 0.4))
    spread = math.hypot(5 * 0.4 / bottom - 5 * 0.8 / top, 7.5 * 0.1 / bottom - 7.5 * 0.3 / top)
    assert move.high / move.observed == pytest.approx(math.exp(1.959963984540054 * spread))


def test_parts_of_a_log_are_added_up_for_moves() -> None:
    whole = PlacedCells(
        PLACES, np.array([0]), np.array([0, 0]), np.array([0, 1]), np.array([40.0, 20]), np.array([20.0, 6])
    )
    part = PlacedCells(
        PLACES, np.array([0]), np.array([0, 0]), np.array([0, 1]), np.array([10.0, 5]), np.array([5.0, 1])
    )
    rest = PlacedCells(
        PLACES, np.array([0]), np.array([0, 0]), np.array([0, 1]), np.array([30.0, 15]), np.array([15.0, 5])
    )
    assert moves([part, rest], None) == moves([whole], None)


@pytest.fixture(scope="module")
def of_pbm() -> HeldOutEvidence:
    """Evidence on the model that made the clicks, from a log whose documents move."""
    return evidence(moving_counts(queries=150), CORRECTIONS.make("pbm"))


def test_the_model_that_made_the_clicks_predicts_them_best(of_pbm: HeldOutEvidence) -> None:
    own = of_pbm.prediction
    assert own is not None
    assert [base.name for base in of_pbm.baselines] == [
        "the position's click rate",
        "smoothed click-through rate",
        "smoothed COEC",
    ]
    for base in of_pbm.baselines:
        gain, margin = own.gain_over(base)
        assert gain > margin


def test_click_rates_of_documents_that_move_are_what_their_model_expects(of_pbm: HeldOutEvidence) -> None:
    """Click rates go with 1 / position: five pairs, intervals of 95 %; two outside are one log in 44."""
    assert [(move.above, move.below) for move in of_pbm.moving] == [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]
    assert sum(move.low <= move.above / move.below <= move.high for move in of_pbm.moving) >= 4
    assert sum(move.low <= (move.expected or 0) <= move.high for move in of_pbm.moving) >= 4


def test_halves_differ_by_chance_alone() -> None:
    """Click-through rates of 200 impressions each, rate .3: E|a - b| = sqrt(2/pi) sqrt(2 .3 .7 / 200) = .037."""
    rng = np.random.default_rng(1)
    clicks = rng.binomial(400, 0.3, 1000)
    counts = Counts.from_arrays(np.arange(1000), np.zeros(1000, int), np.ones(1000, int), np.full(1000, 400), clicks)
    halves = evidence(counts, NoCorrection()).halves
    assert halves is not None
    expected = math.sqrt(2 / math.pi) * math.sqrt(2 * 0.21 / 200)
    assert halves.difference == pytest.approx(expected, abs=5 * 0.0458 * math.sqrt(1 - 2 / math.pi) / math.sqrt(1000))
    assert abs(halves.correlation or 0) < 5 / math.sqrt(1000)  # all documents are alike


def test_smoothed_coec_is_as_good_as_itself() -> None:
    found = evidence(moving_counts(device=True), without_devices := SmoothedClicksOverExpected())
    assert found.prediction is None  # it knows no devices
    assert any("context columns" in reason for reason in found.missing)
    assert len(found.baselines) == 3
    found = evidence(moving_counts(), without_devices)
    assert found.prediction is not None
    assert found.prediction.gain_over(found.baselines[-1]) == (0.0, 0.0)


def test_a_correction_that_only_orders_documents_claims_nothing() -> None:
    found = evidence(moving_counts(), CORRECTIONS.make("ctr-then-rank"))
    assert found.prediction is None
    assert found.halves is not None
    assert {move.expected for move in found.moving} == {None}


def test_the_same_evidence_twice(of_pbm: HeldOutEvidence) -> None:
    again = evidence(moving_counts(queries=150), CORRECTIONS.make("pbm"))
    assert json_text(held_out_results(again).json()) == json_text(held_out_results(of_pbm).json())


def test_evidence_in_words_and_rows(of_pbm: HeldOutEvidence) -> None:
    results = held_out_results(of_pbm)
    first, second, third = results.sentences
    assert first.startswith(
        "From three quarters of the impressions, the clicks of the rest are predicted better than by "
    )
    assert second.startswith("Labels made from two halves of the log have a correlation of 0.")
    assert third.startswith("Of 5 pairs of neighbouring positions, the click rates of documents seen at both differ")
    document = json.loads(json_text(results.json()))
    assert document["dealt"] == "impressions"
    assert document["predictions"][0]["bits_saved"] is None
    assert document["predictions"][1]["bits_saved"]["margin"] > 0
    assert set(document["halves"]) == {"correlation", "correlation beyond position", "mean difference", "documents"}
    assert len(document["moving"]) == 5
