"""Query weights for LambdaMART.   examples -> one weight per query

LambdaMART divides the gradients of a query by its ideal DCG, I. In a query without relevant documents, labels are small
and differ by little more than chance; the division makes these differences weigh as much as those between a relevant
document and the others. A weight of I undoes the division, so that training optimises DCG, not nDCG. But with several
grades, queries without the highest grade then count for little. The weight (I N)^2 / ((I N)^2 + g^2), where N is the
sum of relevance and g the gain of a surely relevant document, is near 0 if no document is relevant, 1/2 if one is, and
near 1 if several are somewhat relevant. I alone cannot distinguish the last two cases.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from clickmix.features.examples import Examples
from clickmix.types import Floats

Weighting = Literal["none", "ideal-dcg", "saturating"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
TRUNCATION = 30  # LightGBM's: pairs without one of the best 30 documents do not count, nor does ideal DCG beyond


def ideal_dcg(examples: Examples, worth: Floats) -> Floats:
    """Per query: I = sum over positions k <= 30 of gain(k) / log2(1 + k), documents sorted by falling gain."""
    order = np.lexsort((-worth, examples.query))
    k = np.arange(len(worth)) - examples.offsets[:-1][examples.query] + 1
    terms = np.where(k <= TRUNCATION, worth[order] / np.log2(1 + k), 0.0)
    return np.asarray(np.bincount(examples.query, terms), dtype=np.float64)


def query_weights(examples: Examples, worth: Floats, *, weighting: Weighting, highest: float) -> Floats:
    """Per query: 1, I or (I N)^2 / ((I N)^2 + g^2), g = `highest` gain, divided by the mean over queries."""
    weights = ideal_dcg(examples, worth)
    if weighting == "none":
        return np.ones_like(weights)
    if weighting == "saturating":
        found = (weights * np.bincount(examples.query, examples.relevance)) ** 2
        weights = found / (found + highest**2)
    return np.asarray(weights / weights.mean())
