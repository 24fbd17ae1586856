"""Query weights for LambdaMART.   examples -> one weight per query

LambdaMART divides the gradients of a query by its ideal DCG, I. In a query without relevant documents labels are small
and differ by little more than chance; the division makes these differences weigh as much as those between a relevant
document and the others. A weight that grows with I takes the division back: wholly (I); in part (I^(1/2)); or only
where I is small beside M, its mean over queries, while queries with relevant documents weigh about the same
(I^2 / (I^2 + M^2)).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from clickmix.rankers.examples import Examples, Floats

Weighting = Literal["none", "saturating", "root-ideal-dcg", "ideal-dcg"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
TRUNCATION = 30  # LightGBM's: pairs without a document among the best 30 do not count, nor does ideal DCG beyond


def ideal_dcg(examples: Examples, worth: Floats) -> Floats:
    """I = sum over positions k <= 30 of gain(k) / log2(1 + k), documents in the order of falling gains; per query."""
    order = np.lexsort((-worth, examples.query))
    k = np.arange(len(worth)) - examples.offsets[:-1][examples.query] + 1
    terms = np.where(k <= TRUNCATION, worth[order] / np.log2(1 + k), 0.0)
    return np.asarray(np.bincount(examples.query, terms), dtype=np.float64)


def query_weights(examples: Examples, worth: Floats, *, weighting: Weighting) -> Floats:
    """One weight per query, 1 on average: 1, I^2 / (I^2 + M^2), I^(1/2) or I."""
    ideal = ideal_dcg(examples, worth)
    weights = {
        "none": np.ones(len(ideal)),
        "saturating": ideal**2 / (ideal**2 + ideal.mean() ** 2),
        "root-ideal-dcg": np.sqrt(ideal),
        "ideal-dcg": ideal,
    }[weighting]
    return np.asarray(weights / weights.mean())
