"""The tables of docs/sure.md are the figures of benchmarks/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sure.md").read_text(encoding="utf-8").splitlines()
VERDICT_ORDER = ("trustworthy", "needs more data", "usable", "do not use")
CHECKS = (
    "clicks depend on the documents above",
    "a few queries are clicked far more than others",
    "every impression was written several times",
    "at some places, documents of the same grade differ in appeal",
)


def figures(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())["figures"]


def needed_line(row: dict[str, Any]) -> str:
    """A row of the table of impressions needed."""
    rates, needed = " and ".join(f"{rate:.3g}" for rate in row["rates"]), row["impressions_needed"]
    parts = (
        f"{row['eta']:g}",
        row["position"],
        rates,
        f"{row['omega']:.3g}",
        f"{row['error_of_15']:.3f}",
        f"{row['separation_of_15']:.0%}",
        f"{needed['0.1']:,}",
        f"{needed['0.05']:,}",
        f"{row['constant']:.2g}",
    )
    return "| " + " | ".join(map(str, parts)) + " |"


def verdict_line(kind: str, row: dict[str, Any]) -> str:
    """A row of the tables of verdicts."""
    parts = (
        kind,
        f"{row['median']['movement']:.3f}",
        f"{row['measured_over_limit']:.3f}",
        *(row["verdicts"].get(verdict, 0) for verdict in VERDICT_ORDER),
        *(row["found"].get(violation, 0) for violation in CHECKS),
        row["flagged"],
    )
    return "| " + " | ".join(map(str, parts)) + " |"


@pytest.mark.parametrize("row", figures("sure")["rows"], ids=lambda row: f"{row['eta']:g}-{row['position']}")
def test_impressions_needed(row: dict[str, Any]) -> None:
    assert needed_line(row) in PAGE


def predicted_line(row: dict[str, Any]) -> str:
    """A row of the table of predicted and measured errors."""
    pairs = "; ".join(f"{predicted:.3f}, {measured:.3f}" for predicted, measured in row["predicted_and_measured"])
    return f"| {row['queries']:,} | {row['eta']:g} | {row['clicks']:,} | {pairs} |"


@pytest.mark.parametrize("row", figures("sure")["predicted"], ids=lambda row: f"{row['eta']:g}-{row['clicks']}")
def test_predicted_errors(row: dict[str, Any]) -> None:
    assert predicted_line(row) in PAGE


def test_where_nothing_can_be_known() -> None:
    rows = ["; ".join(f"{error:.3f}" for error in column) for column in zip(*figures("sure")["hopeless"], strict=True)]
    assert f"predicted {rows[0]}, measured {rows[1]}, the prior alone {rows[2]}" in " ".join(PAGE)


VERDICTS = figures("verdicts")
KINDS = [(group, kind) for group in ("clean", "planted") for kind in VERDICTS[group]]


@pytest.mark.parametrize(("group", "kind"), KINDS)
def test_verdicts(group: str, kind: str) -> None:
    assert VERDICTS[group][kind]["logs"] == 100
    assert verdict_line(kind, VERDICTS[group][kind]) in PAGE


@pytest.mark.parametrize("kind", VERDICTS["clean"])
def test_clean_logs_were_flagged_in_at_most_3_of_100(kind: str) -> None:
    assert VERDICTS["clean"][kind]["flagged"] <= 3


def test_one_clean_log_in_a_hundred_was_flagged() -> None:
    flagged = sum(row["flagged"] for row in VERDICTS["clean"].values())
    logs = sum(row["logs"] for row in VERDICTS["clean"].values())
    assert flagged <= 0.01 * logs
    assert f"In all, {flagged} of {logs:,} clean logs are flagged ({flagged / logs:.1%})." in " ".join(PAGE)


@pytest.mark.parametrize("kind", VERDICTS["planted"])
def test_what_moves_labels_was_found_in_90_of_100_and_what_does_not_was_not(kind: str) -> None:
    """Appeal is part of the model: labels are near the limit, and there is nothing to find."""
    row = VERDICTS["planted"][kind]
    if row["median"]["movement"] < 0.01:
        assert row["flagged"] == 0
    if row["median"]["movement"] >= 0.05 and row["measured_over_limit"] > 1.06:
        assert row["with_a_violation"] >= 90
