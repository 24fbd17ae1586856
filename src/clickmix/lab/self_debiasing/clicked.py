"""Result lists with their clicks, and the sessions behind them.   counts by list -> sessions"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickmix.types import Ints


@dataclass(frozen=True, eq=False)
class FeatureLists:
    """Features of documents, and the lists people saw: `rows` (lists, positions) of the features, -1 past the end.

    `impressions` (lists,) is how often each list was seen, `clicks` (lists, positions) how often each result was
    clicked.
    """

    features: NDArray[np.float32]
    rows: Ints
    impressions: Ints
    clicks: Ints

    def sessions(self, *, rng: np.random.Generator) -> SessionKinds:
        """All sessions with a click; those with the same clicks are counted together.

        Under the position-based model, clicks at different positions are independent. So sessions are drawn from the
        counts, one after the other and without replacement. Sessions without a click are left out: a ranker learns
        nothing from them.
        """
        left, clicks_left = self.impressions.copy(), self.clicks.copy()
        found = []
        for _ in range(int(left.max(initial=0))):
            some = np.flatnonzero(left > 0)
            clicked = rng.random((len(some), self.rows.shape[1])) * left[some, None] < clicks_left[some]
            clicks_left[some] -= clicked
            left[some] -= 1
            kept = clicked.any(axis=1)
            found.append(np.column_stack([some[kept], np.packbits(clicked[kept], axis=1)]))
        packed = np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)
        order = np.lexsort(packed.T[::-1])
        packed = packed[order]
        first = np.flatnonzero(np.r_[True, (packed[1:] != packed[:-1]).any(axis=1)] if len(packed) else [])
        clicks = np.unpackbits(packed[first, 1:].astype(np.uint8), axis=1, count=self.rows.shape[1])
        return SessionKinds(packed[first, 0], clicks.astype(np.bool_), np.diff(np.r_[first, len(packed)]))


@dataclass(frozen=True, eq=False)
class SessionKinds:
    """Kinds of sessions: the `list` seen, the `clicks` in it (kinds, positions), and the number of sessions."""

    list: Ints
    clicks: NDArray[np.bool_]
    number: Ints
