"""Counts whose documents move, and bias parameters for their positions."""

from __future__ import annotations

import numpy as np

from clickmix.corrections.parameters import BiasParameters
from clickmix.counts.counts import Counts

BIAS = BiasParameters(0.5 / np.arange(1, 7), 0.1 / np.arange(1, 7))


def moving_counts(seed: int = 0, *, queries: int = 60, documents: int = 8, device: bool = False) -> Counts:
    """Documents seen at two or three of six positions, on two devices if asked."""
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(queries):
        for document in range(documents):
            relevant = rng.random() < 0.3
            for position in rng.choice(6, rng.integers(2, 4), replace=False) + 1:
                n = 1 + rng.poisson(30)
                rows.append((query, document, position, n, rng.binomial(n, (0.6 if relevant else 0.1) / position)))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    context = {"device": rng.choice(["phone", "desk"], len(rows))} if device else {}
    return Counts.from_arrays(*columns, **context)
