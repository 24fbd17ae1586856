"""Draw the paper's toy example (Remark 1): click rates of documents examined alike, nearly alike, and far from alike.

Writes docs/pictures/remark1.svg: the same bytes every time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import measuring  # noqa: F401  # makes the tests' logs importable
from clickmix.report import Axis, Bars, Figure, Panel, figure_svg
from clickmix.storage.atomic import write_atomically
from remark1 import EXAMINED, toy

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "remark1.svg"
OTHERS = {0.8: "alike", 0.4: "separable", 0.1: "they overlap"}
BINS = np.linspace(0, 1, 81)


def draw() -> Figure:
    """A histogram of click rates for each second set."""
    panels = []
    for other, words in OTHERS.items():
        _, relevant, rates = toy(other)
        marks = [
            Bars("not relevant", BINS, np.histogram(rates[~relevant], BINS)[0], "blue"),
            Bars("relevant", BINS, np.histogram(rates[relevant], BINS)[0], "vermillion"),
        ]
        panels.append(Panel(Axis(f"documents; examined {EXAMINED} and {other}: {words}", low=0), marks))
    return Figure("Click rates of documents in one group", Axis("click-through rate at position 4", 0, 1), panels)


if __name__ == "__main__":
    write_atomically(PICTURE, figure_svg(draw(), standalone=True).encode())
