"""The tables of docs/sure.md are the figures of benchmarks/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import clickmix as cm

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sure.md").read_text(encoding="utf-8").splitlines()
ORDER = ("RISING", "GRADES", "CASCADE", "BETWEEN", "BEYOND")


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
    """A row of the table of verdicts."""
    found = [row["found"].get(str(cm.Violation[name]), 0) for name in ORDER]
    return "| " + " | ".join(map(str, (kind, row["verdicts"].get("violates the assumptions", 0), *found))) + " |"


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
    assert f"predicted {rows[0]}, measured {rows[1]}, the prior alone {rows[2]}" in "\n".join(PAGE)


VERDICTS = figures("verdicts")
KINDS = [(group, kind) for group in ("clean", "planted", "subtle") for kind in VERDICTS[group]]


@pytest.mark.parametrize(("group", "kind"), KINDS)
def test_verdicts(group: str, kind: str) -> None:
    name = kind if group == "planted" else f"{group}: {kind}"
    assert verdict_line(name, VERDICTS[group][kind]) in PAGE


@pytest.mark.parametrize("kind", VERDICTS["clean"])
def test_clean_logs_were_quiet_in_95_of_100(kind: str) -> None:
    assert VERDICTS["clean"][kind]["verdicts"].get("violates the assumptions", 0) <= 5


@pytest.mark.parametrize("kind", VERDICTS["planted"])
def test_planted_violations_were_flagged_in_95_of_100(kind: str) -> None:
    assert VERDICTS["seeds"] == 100
    assert VERDICTS["planted"][kind]["verdicts"]["violates the assumptions"] >= 95
