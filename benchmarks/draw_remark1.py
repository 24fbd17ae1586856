"""Draw the paper's toy example (Remark 1): click rates of documents examined alike, nearly alike, and far from alike.

Writes docs/remark1.svg: the same bytes every time.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import measuring  # noqa: F401  # makes the tests' logs importable
from remark1 import EXAMINED, toy

PICTURE = Path(__file__).parents[1] / "docs" / "remark1.svg"
OTHERS = {0.8: "alike", 0.4: "the paper's example, separable", 0.1: "too far apart, they overlap"}
COLOURS = ("#0072b2", "#e69f00")


def draw() -> Figure:
    """A histogram of click rates for each second set."""
    figure = Figure(figsize=(9, 2.8), layout="constrained")
    panels = figure.subplots(1, len(OTHERS), sharex=True)
    bins = np.linspace(0, 1, 81)
    for panel, (other, words) in zip(panels, OTHERS.items(), strict=True):
        _, relevant, rates = toy(other)
        parts, names = (rates[~relevant], rates[relevant]), ("not relevant", "relevant")
        panel.hist(parts, bins=bins, stacked=True, histtype="stepfilled", color=COLOURS, label=names)
        panel.set_title(f"examined {EXAMINED} and {other}:\n{words}")
        panel.title.set_fontsize(9)
        panel.set_xlabel("click-through rate at position 4")
    panels[0].set_ylabel("documents")
    panels[0].legend()
    return figure


if __name__ == "__main__":
    mpl.rcParams.update({"svg.hashsalt": "remark1", "svg.fonttype": "none"})
    draw().savefig(PICTURE, format="svg", metadata={"Date": None})
