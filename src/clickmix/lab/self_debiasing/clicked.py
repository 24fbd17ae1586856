"""Result lists with their clicks, and single sessions drawn from them.   counts by list -> sessions"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickmix.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class ClickedLists:
    """Features of documents, and the lists people saw: `rows` (lists, positions) of the features, -1 past the end.

    `impressions` (lists,) says how often each list was seen, `clicks` (lists, positions) how often each result of it
    was clicked.
    """

    features: NDArray[np.float32]
    rows: Ints
    impressions: Ints
    clicks: Ints

    def sessions(self, most: int, *, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """At most so many sessions of each list: the list of each, and its clicks (sessions, positions).

        Under the position-based model clicks at different positions are independent. So sessions are drawn from the
        counts, one after the other and without replacement. Those without a click are left out: a ranker learns
        nothing from them.
        """
        left, clicks_left = self.impressions.copy(), self.clicks.copy()
        lists, clicks = [], []
        for _ in range(most):
            some = np.flatnonzero(left > 0)
            if not len(some):
                break
            clicked = rng.random((len(some), self.rows.shape[1])) * left[some, None] < clicks_left[some]
            clicks_left[some] -= clicked
            left[some] -= 1
            kept = clicked.any(axis=1)
            lists.append(some[kept])
            clicks.append(clicked[kept])
        return np.concatenate(lists), np.concatenate(clicks)


def session_rows(lists: ClickedLists, seen: Ints, clicks: NDArray[np.bool_]) -> tuple[Ints, Ints, Floats, Ints]:
    """Sessions as rows: of the features, the position from 0, clicked or not; and how many rows each session has."""
    rows = lists.rows[seen]
    shown = rows >= 0
    position = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    return rows[shown], position[shown], clicks[shown].astype(np.float64), shown.sum(axis=1)
