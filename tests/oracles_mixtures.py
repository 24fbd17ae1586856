"""Slow and obvious versions of what mixtures/ computes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom


def enumerated(
    cells: Sequence[Sequence[tuple[int, int, int]]], prior: float, rates: Sequence[tuple[float, float]]
) -> tuple[float, list[float]]:
    """Log-likelihood and posterior of each document, by summing over all assignments of relevance to documents.

    `cells[d]` lists (group, impressions, clicks) of document d; `rates[g]` are the two rates of group g.
    """
    total, relevant = 0.0, [0.0] * len(cells)
    for assignment in itertools.product((0, 1), repeat=len(cells)):
        weight = 1.0
        for document, r in enumerate(assignment):
            weight *= prior if r else 1 - prior
            for group, n, c in cells[document]:
                weight *= binom.pmf(c, n, rates[group][r])
        total += weight
        relevant = [so_far + weight * r for so_far, r in zip(relevant, assignment, strict=True)]
    return float(np.log(total)), [value / total for value in relevant]
