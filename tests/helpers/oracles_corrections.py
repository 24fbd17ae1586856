"""Slow and obvious versions of the corrections that the paper compares with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from clickmix.corrections.parameters import BiasParameters
from clickmix.counts.counts import Counts

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


Impression = tuple[int, int, bool]  # document, position (from 0), clicked


def enumerated_em(
    impressions: Sequence[Impression], relevance: Sequence[float], z1: Sequence[float], z0: Sequence[float]
) -> tuple[list[float], list[float], list[float], float]:
    """One step of EM by summing over all ways in which impressions can be relevant: new z1, z0, targets; likelihood.

    The M-step's answers are ratios of expected counts; targets are expected shares of relevant impressions.
    """
    total = 0.0
    shown = [[0.0, 0.0] for _ in z1]  # per position: not relevant, relevant
    clicked = [[0.0, 0.0] for _ in z1]
    relevant = [0.0] * len(relevance)
    for assignment in itertools.product((0, 1), repeat=len(impressions)):
        weight = 1.0
        for (document, k, click), R in zip(impressions, assignment, strict=True):
            rate = z1[k] if R else z0[k]
            weight *= (relevance[document] if R else 1 - relevance[document]) * (rate if click else 1 - rate)
        total += weight
        for (document, k, click), R in zip(impressions, assignment, strict=True):
            shown[k][R] += weight
            clicked[k][R] += weight * click
            relevant[document] += weight * R
    each = [sum(1 for document, _, _ in impressions if document == d) for d in range(len(relevance))]
    return (
        [c[1] / n[1] for c, n in zip(clicked, shown, strict=True)],
        [c[0] / n[0] for c, n in zip(clicked, shown, strict=True)],
        [expected / total / count for expected, count in zip(relevant, each, strict=True)],
        math.log(total),
    )
