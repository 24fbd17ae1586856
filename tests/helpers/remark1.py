"""The paper's toy example (Remark 1): one position, two sets of queries that are examined differently."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickmix.counts.counts import Counts
from clickmix.lab.users import Trust

POSITION = 4
EXAMINED = 0.8  # of the first set; the paper's second has 0.4


def toy(
    other: float, *, documents: int = 4_000, impressions: int = 200, relevant: float = 0.3, seed: int = 0
) -> tuple[Counts, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Counts of documents at position 4, half of them examined with probability .8 and half with `other`.

    Also their relevance, and their click rates as drawn.
    """
    rng = np.random.default_rng(seed)
    trust = Trust.paper(POSITION)
    examined = np.where(rng.random(documents) < 0.5, EXAMINED, other)
    relevance = rng.random(documents) < relevant
    clicked = np.where(relevance, trust.relevant[-1], trust.irrelevant[-1])
    clicks = rng.binomial(impressions, examined * clicked)
    ids = np.arange(documents)
    counts = Counts.from_arrays(ids, ids, np.full(documents, POSITION), np.full(documents, impressions), clicks)
    return counts, relevance, clicks / impressions
