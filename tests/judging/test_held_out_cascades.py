"""Held-out evidence on cascades: what it says of known users, and that no held-out click has a say in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clickmix as cm
from cascades import cascade, simulated_sessions
from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.mixture_based.cascade_again import CascadeAgain
from clickmix.counts.counts import Counts
from clickmix.engines.engine import embedded
from clickmix.groups.sample import deal
from clickmix.judging import held_out
from clickmix.judging.held_out import HELD_OUT, OWN, TRAINING, held_out_evidence, held_out_sentences
from clickmix.report import log_page
from clickmix.types import Floats
from commands import run


def fitted(counts: Counts, mixture: str = "binomial", **settings: Any) -> cm.MixtureFit:
    return cm.MixtureCorrection(mixture, examination="dcm", **settings).fit(counts)


@pytest.mark.parametrize("user", ["dcm", "ubm"])
@pytest.mark.parametrize("lists", [1, 3])
def test_a_cascade_predicts_clicks_in_lists_best_and_its_halves_agree(user: str, lists: int) -> None:
    """About 250 clicks per list: labels are sure, also of half of them, and rates depend on what is above."""
    counts = cascade(user, queries=600, clicks=150_000, seed=5, lists=lists).counts()
    found = held_out_evidence(fitted(counts), counts)
    assert found is not None
    for base in found.baselines:
        gain, margin = found.prediction.gain_over(base)
        assert gain > margin
    assert found.halves is not None
    assert (found.halves.correlation or 0) > 0.85
    assert (found.halves.beyond_position or 0) > 0.85
    assert found.moving == ()
    assert next(held_out_sentences(found)).endswith("Labels predict clicks significantly better than positions alone.")


def test_as_many_clicks_are_expected_at_every_position_as_there_are() -> None:
    """Held-out clicks vary with their rates, and rates come from three times as many: variances add up to 4/3."""
    quarters = deal(cascade("dcm", queries=600, clicks=150_000, seed=5, lists=3).counts())
    training, rest = quarters.counts(*TRAINING), quarters.counts(HELD_OUT)
    asked, rates = CascadeAgain.of(fitted(training), training).click_rates(rest)
    assert (asked.impressions.sum(), asked.clicks.sum()) == rest.totals()
    expected, seen, variance = (
        np.bincount(asked.position, column)[1:]
        for column in (asked.impressions * rates, asked.clicks, asked.impressions * rates * (1 - rates))
    )
    assert np.abs((seen - expected) / np.sqrt(variance * 4 / 3)).max() < 4


@pytest.fixture(scope="module")
def sessions() -> pa.Table:
    """Enough lists for several groups at a position."""
    return simulated_sessions("dcm", seed=0, sessions=8_000, lists=300)


def with_clicks(log: pa.Table, clicks: Any) -> pa.Table:
    return log.set_column(log.column_names.index("clicked"), "clicked", pa.array(clicks))


def own_prediction(fit: cm.MixtureFit, log: pa.Table, monkeypatch: pytest.MonkeyPatch) -> tuple[Floats, Floats]:
    """The rates that a fit predicts for the held-out cells of a log, and their clicks."""
    told: list[tuple[Floats, Floats]] = []
    measure = held_out.held_out_bits

    def listen(name: str, rates: Floats, asked: PlacedCells) -> held_out.Prediction:
        if name == OWN:
            told.append((rates, asked.clicks))
        return measure(name, rates, asked)

    with monkeypatch.context() as patched:
        patched.setattr(held_out, "held_out_bits", listen)
        assert held_out_evidence(fit, cm.count(log, lists=True)) is not None
    ((rates, clicks),) = told
    return rates, clicks


def test_no_held_out_click_has_a_say_in_its_prediction(sessions: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = cm.count(sessions, lists=True)
    fit = fitted(counts)
    engine, dealt = deal(counts).engine, deal(counts).table
    quarter = dict(engine.rows(f'SELECT DISTINCT CAST(session_id AS INTEGER), "quarter of the log" FROM {dealt}'))
    hidden = np.array([quarter[session] == HELD_OUT for session in sessions["session_id"].to_pylist()])
    clicked = sessions["clicked"].to_numpy()
    flipped = with_clicks(sessions, np.where(hidden, 1 - clicked, clicked))
    rates, clicks = own_prediction(fit, sessions, monkeypatch)
    same, other_clicks = own_prediction(fit, flipped, monkeypatch)
    assert clicks.sum() + other_clicks.sum() == hidden.sum()
    assert same.tolist() == rates.tolist()
    taught = with_clicks(sessions, np.where(hidden, clicked, 1 - clicked))
    assert own_prediction(fit, taught, monkeypatch)[0].tolist() != rates.tolist()  # the others teach


def test_documents_that_only_the_rest_shows_are_like_any_other(sessions: pa.Table) -> None:
    """Their digits are what groups say before a click: lists of new queries have one pattern, and rates are means."""
    known = np.array(sessions["query_id"].to_pylist()) < 200
    training, new = (cm.count(sessions.filter(pa.array(part)), lists=True) for part in (known, ~known))
    embedded(training.engine, of="this test").register("new_lists", new.engine.fetch(new.list_query()))
    again = CascadeAgain.of(fitted(training), training)
    assert len(again.fitted.groups) > 10
    asked, rates = again.click_rates(Counts(training.engine, "new_lists", by_list="new_lists"))
    places = [asked.places[place] for place in np.unique(asked.place)]
    assert [place.position for place in places] == list(range(1, 11))
    for place in places:
        group = again.fitted.groups[again.fitted.number_of(place)]
        mean = np.dot(group.prior, np.broadcast_to(group.mixture.rates, 2))
        np.testing.assert_allclose(rates[asked.position == place.position], mean, rtol=1e-9)


@pytest.mark.parametrize("shown", [1, 2, 5, 20, 100])
def test_a_small_log_has_little_evidence_or_none(sessions: pa.Table, shown: int) -> None:
    counts = cm.count(sessions.slice(0, 10 * shown), lists=True)
    found = held_out_evidence(fitted(counts, "auto"), counts)
    assert (found is None) == (shown == 1)
    if found is not None:
        assert np.isfinite(found.prediction.perplexity)
        assert list(held_out_sentences(found))


@pytest.mark.parametrize(
    "settings",
    [
        {"mixture": "graded", "grades": 3},
        {"prior": "flat"},
        {"sharing": False},
        {"mixture": "gaussian"},
        {"mixture": "nonparametric"},
    ],
)
def test_parts_are_fitted_with_the_settings_of_the_fit(
    sessions: pa.Table, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Fitted again to the same lists, the fit stays, also if it comes from its file."""
    counts = cm.count(sessions, lists=True)
    fit = fitted(counts, **settings)
    fit.write(tmp_path / "model.json")
    again = CascadeAgain.of(cm.MixtureFit.read(tmp_path / "model.json"), counts)
    assert again.fitted == fit
    rates = again.click_rates(counts)[1]
    assert ((rates >= 0) & (rates <= 1)).all()


def test_labels_of_a_part_are_those_of_its_fit(sessions: pa.Table) -> None:
    counts = cm.count(sessions, lists=True)
    again = CascadeAgain.of(fitted(counts), counts)
    labels = again.fitted.label(counts)
    order = np.lexsort((labels.doc_id, labels.query_id))
    np.testing.assert_allclose(again.relevance(counts.table), labels.relevance[order], rtol=1e-9)


def test_the_work_is_bounded_by_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = cascade("dcm", queries=1500, clicks=15_000, seed=5).counts()
    fit, of = fitted(counts), CascadeAgain.of
    sizes: list[int] = []

    def measured(fit: cm.MixtureFit, part: Counts) -> CascadeAgain:
        sizes.extend(cells for (cells,) in part.engine.rows(f"SELECT count(*) FROM {part.by_list}"))
        return of(fit, part)

    monkeypatch.setattr(CascadeAgain, "of", measured)
    found = held_out_evidence(fit, counts, most_cells=2_000)
    assert found is not None
    ((cells,),) = counts.engine.rows(f"SELECT count(*) FROM {counts.by_list}")
    assert found.share == 2_000 / cells
    # 200 queries of ten cells; as a binomial number, their standard deviation is 13.
    assert len(sizes) == 3
    assert max(sizes) < 2_000 + 10 * 3 * 13


def test_the_same_evidence_twice(sessions: pa.Table) -> None:
    counts = cm.count(sessions, lists=True)
    fit = fitted(counts)
    first, second = (held_out_evidence(fit, counts) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.prediction.bits.tolist() == second.prediction.bits.tolist()
    assert first.halves == second.halves


def test_the_command_the_report_and_the_verdict_have_it(
    sessions: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(sessions, "log.parquet")
    done = run("debias", "log.parquet", "-o", "labels.csv", "--examination", "dcm", "--json")
    told = json.loads(done.stdout)["held_out"]
    assert told["dealt"] == "sessions"
    assert [row["predicted_by"] for row in told["predictions"]] == [
        OWN,
        "the position's click rate",
        "smoothed click-through rate",
        "smoothed COEC",
    ]
    assert told["predictions"][1]["bits_saved"]["value"] > told["predictions"][1]["bits_saved"]["margin"]
    assert told["halves"]["correlation"] > 0.5
    assert told["moving"] == []
    shown = run("fit", "log.parquet", "-o", "model.json", "--examination", "ubm").stdout
    assert "Labels predict clicks significantly better than positions alone" in shown
    assert "Labels from two halves of the log correlate at " in shown
    counts = cm.count("log.parquet", lists=True)
    fit = cm.MixtureFit.read("model.json")
    found = cm.judge(fit, counts, held_out=True).held_out
    assert found is not None
    page = log_page(counts, fit, sources=["log.parquet"], correction="mixture", held_out=found)
    (section,) = (section for section in page.sections if section.title == "Held-out clicks")
    assert len(section.rows) == 2
