"""Draws what judgments add to clicks: docs/pictures/judgments.svg, from benchmarks/results/judgments.json.

python benchmarks/draw_judgments.py       the same bytes every time
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clickmix.report import Axis, Figure, Line, Panel, figure_svg
from clickmix.storage.atomic import write_atomically

HERE = Path(__file__).parents[1]
PICTURE = HERE / "docs" / "pictures" / "judgments.svg"
MEASURES = {"ndcg": "nDCG@10", "same_place": "AUC at the same position"}
WAYS = ("with judgments", "without", "production order", "click-through rate")


def draw(figures: dict[str, Any]) -> Figure:
    """A panel for each log and measure; intervals hold 95 % of the draws."""
    panels = []
    for log in ("CLARA2", "TREC 2014"):
        curve = {int(number): found for number, found in figures[log].items() if number.isdigit()}
        for measure, words in MEASURES.items():
            lines = []
            for way in WAYS:
                mean, low, high = zip(*(curve[number][f"{measure} {way}"] for number in sorted(curve)), strict=True)
                ends = (low, high) if way == "with judgments" else ((), ())
                lines.append(Line(way, sorted(curve), mean, *ends))
            panels.append(Panel(Axis(f"{words}, {log}"), lines))
    return Figure("Agreement with judgments that were not given", Axis("judged queries", log=True), panels)


if __name__ == "__main__":
    results = json.loads((HERE / "benchmarks" / "results" / "judgments.json").read_text(encoding="utf-8"))
    write_atomically(PICTURE, figure_svg(draw(results["figures"]), standalone=True).encode())
