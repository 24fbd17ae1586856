"""The figures on features in docs/evidence.md are those of the result file, and keep what they promise."""

from __future__ import annotations

from typing import Any

import pytest

from pages import ROOT, figures

PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
ROWS, MANY = figures("features")["rows"], figures("features")["many runs"]
NAMES = {"mq2008": "MQ2008", "synthetic": "synthetic"}
CLEAR = 0.01  # errors of the limit below it come from a few documents


def decimals(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".")


def named(row: dict[str, Any]) -> str:
    return f"{row['collection']}, {row['clicks']:,}, {row['eta']}"


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_table_is_the_result(row: dict[str, Any]) -> None:
    (line,) = (
        line
        for line in PAGE.splitlines()
        if line.startswith(f"| {NAMES[row['collection']]} | {row['clicks']:,} | {row['eta']} |")
    )
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    errors = [decimals(row[f"error over limit, {way}"]) for way in ("without", "with")]
    if cells[4] != "clicks say all":
        assert cells[4:6] == [f"{errors[0]} → **{errors[1]}**", f"{row['runs with less error']} of {row['runs']}"]
    assert cells[7] == f"{row['coverage with']:.1%}".replace("%", " %")
    assert cells[8] == " → ".join(decimals(row[f"width {way}"]) for way in ("without", "with"))


@pytest.mark.parametrize("row", MANY, ids=named)
def test_features_help_where_clicks_say_nearly_all(row: dict[str, Any]) -> None:
    off = [row[f"squared errors, {way}"] for way in ("limit", "without", "with")]
    change, error = row["change per run"], row["change per run, standard error"]
    assert off[2] < min(off[:2])
    assert change < -1.96 * error
    assert (
        f"| {row['clicks']:,} | {row['eta']} | {off[0]:.1f} | {off[1]:.1f} | **{off[2]:.1f}** | "
        f"{row['runs with less error']} of {row['runs']} | {decimals(change)} ± {decimals(error)} |"
    ) in PAGE


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_features_keep_their_promises(row: dict[str, Any]) -> None:
    """Rankers never lose significantly; intervals hold the truth, and are no wider."""
    assert row["ndcg gain"] > 0 or row["p"] > 0.05
    assert row["coverage with"] >= 0.93
    assert row["width with"] <= row["width without"]
