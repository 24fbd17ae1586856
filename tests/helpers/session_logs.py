"""A small log with sessions."""

from __future__ import annotations

import numpy as np

from logs import Table


def session_log(*, sessions: int = 120, seed: int = 0) -> Table:
    """Sessions of 3 queries, each query with a few lists of up to 5 results; some sessions miss positions."""
    rng = np.random.default_rng(seed)
    rows = []
    for session in range(sessions):
        query = int(rng.integers(3))
        documents = np.random.default_rng([query, int(rng.integers(4))]).permutation(8)[: int(rng.integers(3, 6))]
        kept = [(k, int(d)) for k, d in enumerate(documents, 1) if k != 2 or session % 10]
        rows += [(f"query {query}", d, k, int(rng.random() < 0.5 / k), session) for k, d in kept]
    names = ("query_id", "doc_id", "position", "clicked", "session_id")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
