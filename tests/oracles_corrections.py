"""Slow and obvious versions of the corrections that the paper compares with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clickmix.corrections import BiasParameters
from clickmix.counts import Counts

Cell = tuple[int, int, int]  # position, impressions, clicks


def documents(counts: Counts) -> dict[tuple[Any, Any], list[Cell]]:
    """The cells of every document, in order of query and document."""
    cells = counts.cells()
    found: dict[tuple[Any, Any], list[Cell]] = {}
    for row in zip(*(column.tolist() for column in cells.values()), strict=True):
        found.setdefault(row[:2], []).append(row[2:])
    return {key: found[key] for key in sorted(found)}


def affine_estimate(cells: Sequence[Cell], bias: BiasParameters) -> float:
    """The mean over impressions, one by one, of (click - beta) / alpha."""
    terms = [
        ((1 if i < clicks else 0) - bias.beta[k - 1]) / bias.alpha[k - 1]
        for k, impressions, clicks in cells
        for i in range(impressions)
    ]
    return float(sum(terms)) / len(terms)


def position_rates(cells: Sequence[Cell]) -> dict[int, float]:
    """The click-through rate at each position."""
    return {
        k: sum(c for j, _, c in cells if j == k) / sum(n for j, n, _ in cells if j == k)
        for k in {k for k, _, _ in cells}
    }


def expected_clicks(cells: Sequence[Cell], rates: dict[int, float], *, best: bool) -> float:
    """What the average document would have got."""
    first = min(k for k, _, _ in cells)
    return sum(n * rates[first if best else k] for k, n, _ in cells)
