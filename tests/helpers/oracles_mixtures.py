"""Slow and obvious versions of what mixtures/ computes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom


def enumerated(
    cells: Sequence[Sequence[tuple[int, int, int]]], prior: Sequence[float], rates: Sequence[tuple[float, ...]]
) -> tuple[float, np.ndarray[Any, Any]]:
    """Log-likelihood and grade x document posteriors, by summing over all assignments of grades to documents.

    `cells[d]` lists (group, impressions, clicks) of document d; `rates[g]` are the rates of the grades in group g.
    """
    total, posterior = 0.0, np.zeros((len(prior), len(cells)))
    for assignment in itertools.product(range(len(prior)), repeat=len(cells)):
        weight = 1.0
        for document, grade in enumerate(assignment):
            weight *= prior[grade]
            for group, n, c in cells[document]:
                weight *= binom.pmf(c, n, rates[group][grade])
        total += weight
        for document, grade in enumerate(assignment):
            posterior[grade, document] += weight
    return float(np.log(total)), posterior / total
