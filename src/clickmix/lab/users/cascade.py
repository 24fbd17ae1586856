"""Cascade: people read down to the first result that attracts them, click it and stop.   relevance <-> clicks

N. Craswell, O. Zoeter, M. Taylor, B. Ramsey: An Experimental Comparison of Click Position-Bias Models, WSDM 2008.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlog1py, xlogy

from clickmix.lab.families import USERS
from clickmix.lab.users.fitting import UserFit
from clickmix.lab.users.sessions import Booleans, Sessions, check_clicked, last_click_above, totals
from clickmix.lab.users.trust import Trust
from clickmix.lab.users.user import TOP, User
from clickmix.types import Floats, Ints

NORMALISATION = (
    "In this model everybody examines position 1 and stops at the first click, so sessions are used down to their "
    "first click, and the attraction of a document is its click rate there. Trust cannot be separated from attraction "
    "without documents of two known relevances at a position, so it is part of attraction."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cascade(User):
    """People examine results from the top, one after the other, and stop at their first click.

    A session has one click or none; a second click has probability 0.

    >>> Cascade(trust=Trust.perfect(2)).click_probabilities([[1.0, 1.0]]).tolist()
    [[1.0, 0.0]]
    """

    examination_of_mixtures = "dcm"  # for people who never go on after a click

    @classmethod
    def fit(cls, sessions: Sessions, *, tolerance: float = 1e-10, max_steps: int = 2000) -> UserFit:
        """Attraction by document = first clicks / impressions down to the first click; needs no steps."""
        D = int(sessions.lists.max()) + 1
        documents = sessions.documents
        examined = (last_click_above(sessions.clicks) == 0) & (documents >= 0)
        n = totals(documents[examined], np.ones(int(examined.sum())), size=D)
        clicks = totals(documents[examined], sessions.clicks[examined], size=D)
        check_clicked(int(clicks.sum()))
        attraction = np.divide(clicks, n, out=np.full(D, np.nan), where=n > 0)
        user = cls(trust=Trust.perfect(sessions.positions))
        a = np.nan_to_num(attraction)
        return UserFit(
            user=user,
            attraction=attraction,
            examined=n,
            log_likelihoods=(float(np.sum(xlogy(clicks, a) + xlog1py(n - clicks, -a))),),
            converged=True,
            normalisation=NORMALISATION,
            unidentified=(),
            predictor=user,
        )

    def _marginal(self, traits: Floats) -> Floats:
        """P(click at k) = a_k times the product of 1 - a above it."""
        (a,) = traits
        examined = np.ones_like(a)
        examined[:, 1:] = np.cumprod(1 - a[:, :-1], axis=1)
        p: Floats = examined * a
        return p

    def _conditional(self, traits: Floats, clicks: Booleans) -> Floats:
        (a,) = traits
        return np.where(last_click_above(clicks) > 0, 0.0, a)

    def _draw(self, traits: Floats, seen: Ints, rng: np.random.Generator) -> Booleans:
        (attraction,) = traits
        clicks = np.empty((len(attraction), len(seen)), dtype=np.bool_)
        examined = np.ones(len(seen), dtype=np.bool_)
        for k, a in enumerate(attraction):
            np.less(rng.random(len(seen)), a.take(seen), out=clicks[k])
            clicks[k] &= examined
            examined ^= clicks[k]
        return clicks


@USERS.register("cascade", help="reads from the top and stops at the first click", options=(TOP,))
def cascade(*, top: int = 10) -> Cascade:
    """A user with the paper's trust."""
    return Cascade(trust=Trust.paper(top))
