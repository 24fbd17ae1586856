"""Results are data: a fit becomes rows of raw values once, and terminal, page and JSON draw the same rows."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clickmix as cm
from clickmix.judging.checks import checked
from clickmix.report import Column, Page, Rows, Section, fit_results, page_html
from clickmix.report.rows import Estimate, command_text, json_text, letters, number_text, percent, text_lines
from oracles_report import text
from simulation import simulated


@pytest.fixture(scope="module")
def fit() -> cm.MixtureFit:
    counts = simulated(eta=1, clicks=30_000, seed=0, queries=400, positions=12).counts()
    return checked(cm.MixtureCorrection().fit(counts), counts)


ROWS = Rows(
    (
        Column("place", "text"),
        Column("clicks", "count", rank=2),
        Column("rate", "rate", rank=1),
        Column("needed", "count", rank=3),
        Column("verdict", "text"),
    ),
    (
        ("position 1", 12345, Estimate(0.5, 0.01), math.inf, "separated"),
        ("寿司 2", 0, Estimate(6.5e-103), None, "one rate"),
    ),
)


def test_json_has_raw_values_and_null_for_what_is_unknown_or_infinite() -> None:
    first = {"place": "position 1", "clicks": 12345, "rate": {"value": 0.5, "margin": 0.01}, "needed": None}
    second = {"place": "寿司 2", "clicks": 0, "rate": {"value": 6.5e-103, "margin": None}, "needed": None}
    assert json.loads(json_text(ROWS.json())) == [first | {"verdict": "separated"}, second | {"verdict": "one rate"}]


def test_the_terminal_shows_every_column_where_there_is_room() -> None:
    assert text_lines(ROWS, width=80) == [
        "place       clicks      rate      needed  verdict",
        "position 1  12,345   50% ±1%  >1,000,000  separated",
        "寿司 2           0  <0.0001%           -  one rate",
    ]


def test_columns_are_dropped_by_rank_and_named() -> None:
    assert text_lines(ROWS, width=40) == [
        "place       clicks      rate  verdict",
        "position 1  12,345   50% ±1%  separated",
        "寿司 2           0  <0.0001%  one rate",
        "A wider terminal shows 1 more column:",
        "needed.",
    ]
    assert text_lines(ROWS, width=21) == [
        "place       verdict",
        "position 1  separated",
        "寿司 2      one rate",
        "A wider terminal",
        "shows 3 more columns:",
        "clicks, rate, needed.",
    ]


# 31: 8 letters of a text, a gap, and the longest number, which is never cut
@given(st.lists(st.tuples(st.text(max_size=60), st.integers(0, 10**15)), max_size=5), st.integers(31, 120))
def test_no_row_is_wider_than_the_terminal_or_takes_two_lines(rows: list[tuple[str, int]], width: int) -> None:
    table = Rows((Column("name", "text"), Column("count", "count")), tuple(rows))
    lines = text_lines(table, width=width)
    assert len(lines) == len(rows) + 1
    assert max(map(letters, lines)) <= width
    assert all(line.isprintable() for line in lines)


def test_a_fit_gives_a_row_for_each_of_its_places(fit: cm.MixtureFit) -> None:
    rows = fit_results(fit).places.json()
    assert [row["place"] for row in rows] == [f"position {k}" for k in range(1, 13)]
    for row, group in zip(rows, fit.groups, strict=True):
        assert row["documents"] == group.documents
        assert row["lowest_rate"]["value"] == group.mixture.rates[0]
        assert row["highest_rate"]["value"] == group.mixture.rates[-1]
        assert row["needed"] == cm.impressions_for(group.mixture)
        assert row["verdict"] == group.mixture.verdict


def test_the_margin_of_a_rate_that_nothing_pins_down_is_wide(fit: cm.MixtureFit) -> None:
    (first, *others), mixture = fit.groups, fit.groups[0].mixture
    unknown = replace(mixture, rates=(mixture.rates[0], 1 - 1e-9), standard_errors=(0.02, 100.0))
    row = fit_results(replace(fit, groups=(replace(first, mixture=unknown), *others))).places.json()[0]
    assert row["highest_rate"]["margin"] == pytest.approx(0.5)
    rate = mixture.rates[0]
    assert row["lowest_rate"]["margin"] == pytest.approx(1.96 * 0.02 * rate * (1 - rate), rel=1e-3)


def test_what_was_not_looked_for_is_named(fit: cm.MixtureFit) -> None:
    assert fit_results(fit).not_checked == ()
    rising = tuple(check for check in fit.checks if check.violation is cm.Violation.RISING)
    few = fit_results(replace(fit, checks=rising))
    assert few.not_checked == (str(cm.Violation.CASCADE), str(cm.Violation.OUTLIERS))
    assert few.json()["not_checked"] == list(few.not_checked)


def test_a_fit_is_described_in_short_sentences(fit: cm.MixtureFit) -> None:
    assert fit_results(fit).notes[0] == "One model was fitted to all places."
    moved = replace(fit, moving=0.35, prior="flat")
    assert fit_results(moved).notes[0] == (
        "One model was fitted to all places, flat prior. 35% of documents were seen at several places."
    )
    assert max(len(note) for note in fit_results(moved).notes) < 160


def test_places_fitted_together_have_the_same_values_and_group() -> None:
    position = np.repeat([1, 2, 3], [60, 40, 5])
    clicks = np.random.default_rng(0).binomial(50, np.where(np.arange(105) % 3 == 0, 0.8, 0.1) / position)
    counts = cm.Counts.from_arrays(np.arange(105), np.arange(105), position, np.full(105, 50), clicks)
    first, second, third = fit_results(cm.MixtureCorrection().fit(counts)).places.json()
    assert (first["group"], second["group"], third["group"]) == (1, 2, 2)
    assert second["lowest_rate"] == third["lowest_rate"] != first["lowest_rate"]
    assert (second["documents"], third["documents"]) == (40, 5)
    assert third["verdict"] == "too few documents"


def test_checks_say_pass_note_or_fail_with_their_size(fit: cm.MixtureFit) -> None:
    rows = fit_results(fit).checks.json()
    assert [row["violation"] for row in rows] == [str(check.violation) for check in fit.checks]
    for row, check in zip(rows, fit.checks, strict=True):
        expected = "fail" if check.found else "note" if check.seen else "pass"
        assert (row["outcome"], row["statistic"], row["limit"]) == (expected, check.statistic, check.limit)


def test_json_of_a_fit_has_the_verdict_by_its_name_for_machines(fit: cm.MixtureFit) -> None:
    document = json.loads(json_text(fit_results(fit).json()))
    assert document["verdict"] == str(cm.judge(fit).judgement).replace(" ", "-")
    assert document["expected_error"] == fit.error
    assert len(document["places"]) == 12
    assert len(document["checks"]) == len(fit.checks)


def test_terminal_and_page_show_the_same_texts(fit: cm.MixtureFit) -> None:
    places = fit_results(fit).places
    shown = text(page_html(Page("t", sections=[Section("s", rows=[places])])))
    for line in text_lines(places, width=200):
        assert re.sub(r"\s+", " ", line) in shown


@given(st.floats(0, 1))
def test_shares_are_written_without_exponents(share: float) -> None:
    written = percent(share)
    assert re.fullmatch(r"[<>]?\d+(\.\d+)?%", written)
    assert (written == "0%", written == "100%") == (share == 0, share == 1)


@given(st.floats(-1e15, 1e15))
def test_numbers_are_written_without_exponents(value: float) -> None:
    assert re.fullmatch(r"[<>]?-?[\d,]+(\.\d+)?", number_text(value))


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20), max_size=5))
def test_a_command_never_shows_a_folder(words: list[str]) -> None:
    assert "/" not in command_text([f"/secret/{word}" for word in words])
    assert "secret" not in command_text([f"--model=/secret/{word}/x" for word in words])


def test_a_long_command_is_cut() -> None:
    shown = command_text(["clickmix", "debias", *(f"/logs/day-{i:04}.parquet" for i in range(1000))])
    assert shown.startswith("clickmix debias day-0000.parquet day-0001.parquet ")
    assert (len(shown), shown[-1]) == (401, "…")
