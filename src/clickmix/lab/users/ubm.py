"""UserBrowsing: how far people look depends on where they last clicked.   relevance <-> clicks"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.errors import SettingError
from clickmix.lab.families import USERS
from clickmix.lab.users.fitting import UserFit, shrunk
from clickmix.lab.users.pbm import NORMALISATION
from clickmix.lab.users.products import CellCounts, fit_factors, linked_cells
from clickmix.lab.users.sessions import Booleans, Sessions, last_click_above
from clickmix.lab.users.trust import Trust
from clickmix.lab.users.user import TOP, User, check_known
from clickmix.types import Floats, Ints

# Learned by the paper's authors from the Yandex relevance prediction log, for lists of ten.
EXAMINATION = (  # a row for each position: after no click, then after a last click at position 1, 2, ...
    (0.9680,),
    (0.3495, 0.5321),
    (0.1770, 0.1915, 0.6651),
    (0.1023, 0.0913, 0.2719, 0.6290),
    (0.0652, 0.0514, 0.1507, 0.2849, 0.6204),
    (0.0424, 0.0299, 0.0862, 0.1584, 0.2787, 0.5749),
    (0.0293, 0.0185, 0.0536, 0.0941, 0.1635, 0.2640, 0.5426),
    (0.0218, 0.0127, 0.0361, 0.0628, 0.1059, 0.1643, 0.2710, 0.5404),
    (0.0171, 0.0093, 0.0257, 0.0437, 0.0734, 0.1171, 0.1784, 0.2877, 0.5724),
    (0.0154, 0.0083, 0.0214, 0.0352, 0.0568, 0.0878, 0.1310, 0.2098, 0.3267, 0.6514),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class UserBrowsing(User):
    """People examine position k with a probability that depends on k and on the position of the last click above it.

    P(click at k | clicks above) = examination[k, j] * attraction, with j the position of the last click above k, 0
    for none. `examination` (positions, positions) has a row for each k and a column for each j = 0 ... k-1; other
    columns are ignored (NaN). People judge each result they examine independently.

    >>> user = UserBrowsing(examination=[[1.0, 0.0], [0.5, 0.8]], trust=Trust.perfect(2))
    >>> user.click_probabilities([[1.0, 1.0]]).tolist()
    [[1.0, 0.8]]
    """

    examination: Floats

    examination_of_mixtures = "ubm"

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
    def fit(cls, sessions: Sessions, *, tolerance: float = 1e-10, max_steps: int = 2000) -> UserFit:
        """Examination by position and last click, and attraction by document, that make these sessions most likely.

        Cells that the log says nothing about take their position's mean.
        """
        K = sessions.positions
        counts = _cell_counts(sessions)
        linked = linked_cells(counts, positions=K)
        factors = fit_factors(counts, tolerance=tolerance, max_steps=max_steps)
        examination = np.where(linked, factors.examination.reshape(K, K), np.nan)
        attracted = np.where(linked, factors.attracted.reshape(K, K), 0.0)
        careful = np.array([shrunk(row, n) for row, n in zip(examination, attracted, strict=True)])
        named = [(k + 1, j) for k, j in np.argwhere(~linked) if j <= k]
        return UserFit(
            user=cls(examination=np.where(linked, examination, careful), trust=Trust.perfect(K)),
            attraction=factors.attraction,
            examined=factors.examined,
            log_likelihoods=factors.ascent.log_likelihoods,
            converged=factors.ascent.converged,
            normalisation=NORMALISATION,
            unidentified=tuple(f"examination at position {k} after a last click at {j}" for k, j in named),
            predictor=cls(examination=careful, trust=Trust.perfect(K)),
        )

    def _marginal(self, traits: Floats) -> Floats:
        """Sum over j of P(last click above k is at j) examination[k, j] a_k."""
        (a,) = traits
        p: Floats = np.zeros_like(a)
        last = np.zeros_like(a)  # column j: P(last click so far is at position j), 0 for none
        last[:, 0] = 1.0
        for k in range(a.shape[1]):
            clicked = last[:, : k + 1] * self.examination[k, : k + 1] * a[:, k, None]
            p[:, k] = clicked.sum(axis=1)
            last[:, : k + 1] -= clicked
            if k + 1 < a.shape[1]:
                last[:, k + 1] = p[:, k]
        return p

    def _conditional(self, traits: Floats, clicks: Booleans) -> Floats:
        (a,) = traits
        p: Floats = a * self.examination[np.arange(a.shape[1]), last_click_above(clicks)]
        return p

    def _draw(self, traits: Floats, seen: Ints, rng: np.random.Generator) -> Booleans:
        (attraction,) = traits
        clicks = np.empty((len(attraction), len(seen)), dtype=np.bool_)
        last = np.zeros(len(seen), dtype=np.intp)
        for k, a in enumerate(attraction):
            p = a.take(seen)
            p *= self.examination[k].take(last)
            np.less(rng.random(len(seen)), p, out=clicks[k])
            np.putmask(last, clicks[k], k + 1)
        return clicks


@USERS.register("ubm", help="examines a position depending on where the last click above it was", options=(TOP,))
def paper_user_browsing(*, top: int = len(EXAMINATION)) -> UserBrowsing:
    """The paper's user; its lists have 10 results."""
    trust = Trust.paper(top)
    check_known("ubm", top=top, known=len(EXAMINATION))
    examination = np.full((top, top), np.nan)
    examination[np.tril_indices(top)] = np.concatenate(EXAMINATION[:top])
    return UserBrowsing(examination=examination, trust=trust)


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
