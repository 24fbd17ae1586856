"""The figures on judgments in docs/evidence.md are those of the result file, and keep what they promise."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pages import ROOT, figures

PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
NUMBERS = ("10", "20", "50", "100", "200")
LOGS = ("CLARA2", "TREC 2014")


def cell(found: list[float]) -> str:
    mean, low, high = (f"{value:.3f}".removeprefix("0") for value in found)
    return f"{mean} ({low} to {high})"


def row(log: str, number: str, of: dict[str, Any]) -> str:
    values = [of[f"{measure} {way}"] for measure in ("ndcg", "same_place") for way in ("without", "with judgments")]
    before = [f"{of[f'{measure} without'][0]:.3f}".removeprefix("0") for measure in ("ndcg", "same_place")]
    return f"| {log} | {number} | {before[0]} | {cell(values[1])} | {before[1]} | {cell(values[3])} |"


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("number", NUMBERS)
def test_the_table_is_the_result(log: str, number: str) -> None:
    assert row(log, number, figures("judgments")[log][number]) in PAGE


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("measure", ["ndcg", "same_place"])
def test_judgments_never_make_labels_worse(log: str, number: str, measure: str) -> None:
    assert figures("judgments")[log][number][f"{measure} gain over without"][0] > -0.003


def test_fifty_judged_queries_decide_clara() -> None:
    """On average not below production order; above click-through rate at the same position, of 95 % of resamples."""
    of = figures("judgments")["CLARA2"]["50"]
    assert of["ndcg gain over production order"][0] >= 0
    assert of["same_place gain over click-through rate, low"][0] > 0


def test_the_time_is_the_one_on_file() -> None:
    seconds = figures("judgments")["CLARA2"]["seconds judgments add, all queries judged"]
    assert seconds < 10
    shown = re.search(r"all 978 judged queries of CLARA2 take\s+(\d+\.\d) seconds", PAGE)
    assert shown
    assert float(shown[1]) == pytest.approx(seconds, abs=0.05)


USERS = {
    "everywhere": "half of the sessions of every query look at nothing",
    "by query": "5 to 95 % of a query's sessions look at nothing",
    "by document": "5 to 95 % of a document's sessions look at nothing",
    "answer": "half of the relevant documents answer on the page, and are clicked as rarely as others",
}
ENOUGH = 0.01  # of error to gain: of less, a share says nothing


@pytest.mark.parametrize("world", USERS)
@pytest.mark.parametrize("mixture", ["auto", "binomial"])
def test_simulated_users_are_the_result(world: str, mixture: str) -> None:
    of = figures("judgments")["simulated users"][world][mixture]
    errors = [f"{sum(of[way]) / len(of[way]):.3f}"[1:] for way in ("without", "with judgments", "who knows")]
    way = f"{of['way']:.0%}".replace("%", " %") if of["to gain"] >= ENOUGH else "nothing to gain"
    assert f"| {USERS[world]} | `{mixture}` | {' | '.join(errors)} | {way} |" in PAGE


@pytest.mark.parametrize(("world", "mixture"), [("by query", "binomial"), ("answer", "auto"), ("answer", "binomial")])
def test_fifty_judged_queries_lead_half_of_the_way(world: str, mixture: str) -> None:
    of = figures("judgments")["simulated users"][world][mixture]
    assert of["to gain"] >= ENOUGH
    assert of["way"] >= 0.5


@pytest.mark.parametrize("world", ["everywhere", "by query"])
def test_auto_needs_no_judgments_to_see_that_queries_differ(world: str) -> None:
    assert figures("judgments")["simulated users"][world]["auto"]["to gain"] < ENOUGH
