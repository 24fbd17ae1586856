"""UserBrowsing: how far people look on depends on where they last clicked.   relevance <-> clicks"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.errors import SettingError
from clickmix.lab.users.fitting import Fit, shrunk
from clickmix.lab.users.products import CellCounts, Factors, fit_factors, linked_cells
from clickmix.lab.users.sessions import Booleans, Sessions, last_click_above
from clickmix.lab.users.trust import Trust
from clickmix.lab.users.user import User
from clickmix.types import Floats, Ints

NORMALISATION = (
    "Clicks show only examination times attraction, so examination at position 1 is set to 1 and the attraction of a "
    "document is its click rate there. Trust cannot be told from examination without documents of two known "
    "relevances at a position, so it is part of both."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class UserBrowsing(User):
    """People examine position k with a probability that depends on k and on the position of the last click above it.

    P(click at k | clicks above) = examination[k, j] * attraction, with j the position of the last click above k, 0
    for none. `examination` (positions, positions) has a row for each k and a column for each j = 0 ... k-1; what
    stands right of them is ignored (NaN). The click's own result is judged by itself.
    """

    examination: Floats

    def __post_init__(self) -> None:
        gamma = np.array(self.examination, dtype=np.float64)
        if gamma.shape != (self.positions, self.positions):
            raise SettingError(
                f"Examination has shape {gamma.shape}, trust is given for {self.positions} positions. Expected a row "
                "for each position and a column for each last click above it, 0 for none."
            )
        gamma[np.triu_indices(len(gamma), 1)] = np.nan
        bad = np.tri(len(gamma), dtype=np.bool_) & ~((gamma >= 0) & (gamma <= 1))
        if bad.any():
            k, j = np.argwhere(bad)[0]
            after = f"a last click at {j}" if j else "no click"
            raise SettingError(
                f"The examination at position {k + 1} after {after} is {gamma[k, j]:g}, "
                "expected a probability from 0 to 1."
            )
        gamma.setflags(write=False)
        object.__setattr__(self, "examination", gamma)

    @classmethod
    def fit(cls, sessions: Sessions, *, tolerance: float = 1e-11, max_steps: int = 5000) -> Fit:
        """Examination by position and last click, and attraction by document, that make these sessions most likely."""
        counts = _cell_counts(sessions)
        linked = linked_cells(counts, positions=sessions.positions)
        factors = fit_factors(counts, tolerance=tolerance, max_steps=max_steps)
        return _fit(cls, factors, linked)

    def _marginal(self, a: Floats) -> Floats:
        """Sum over j of P(last click above k is at j) examination[k, j] a_k."""
        p = np.zeros_like(a)
        last = np.zeros_like(a)  # column j: P(last click so far is at position j), 0 for none
        last[:, 0] = 1.0
        for k in range(a.shape[1]):
            clicked = last[:, : k + 1] * self.examination[k, : k + 1] * a[:, k, None]
            p[:, k] = clicked.sum(axis=1)
            last[:, : k + 1] -= clicked
            if k + 1 < a.shape[1]:
                last[:, k + 1] = p[:, k]
        return p

    def _conditional(self, a: Floats, clicks: Booleans) -> Floats:
        p: Floats = a * self.examination[np.arange(a.shape[1]), last_click_above(clicks)]
        return p

    def _draw(self, attraction: Floats, seen: Ints, rng: np.random.Generator) -> Booleans:
        clicks = np.empty((len(attraction), len(seen)), dtype=np.bool_)
        last = np.zeros(len(seen), dtype=np.intp)
        for k, a in enumerate(attraction):
            p = a.take(seen)
            p *= self.examination[k].take(last)
            np.less(rng.random(len(seen)), p, out=clicks[k])
            np.putmask(last, clicks[k], k + 1)
        return clicks


def _cell_counts(sessions: Sessions) -> CellCounts:
    """Impressions and clicks per document, position and last click above; cell = (position - 1) K + last click."""
    K = sessions.positions
    documents = sessions.documents
    shown = documents >= 0
    cell = (np.arange(K) * K + last_click_above(sessions.clicks))[shown]
    clicks = sessions.clicks[shown].astype(np.int64)
    return CellCounts.of(
        documents[shown], cell, np.ones_like(clicks), clicks, documents=int(sessions.lists.max()) + 1, cells=K * K
    )


def _fit(cls: type[UserBrowsing], factors: Factors, linked: Booleans) -> Fit:
    """Cells the log says nothing about take their position's mean."""
    K = len(linked)
    examination = np.where(linked, factors.examination.reshape(K, K), np.nan)
    attracted = np.where(linked, factors.attracted.reshape(K, K), 0.0)
    careful = np.array([shrunk(row, n) for row, n in zip(examination, attracted, strict=True)])
    named = [(k + 1, j) for k, j in np.argwhere(~linked) if j <= k]
    return Fit(
        user=cls(examination=np.where(linked, examination, careful), trust=Trust.perfect(K)),
        attraction=factors.attraction,
        examined=factors.examined,
        log_likelihoods=factors.ascent.log_likelihoods,
        converged=factors.ascent.converged,
        normalisation=NORMALISATION,
        unidentified=tuple(f"examination at position {k} after a last click at {j}" for k, j in named),
        predictor=cls(examination=careful, trust=Trust.perfect(K)),
    )
