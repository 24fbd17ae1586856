"""DependentClick: people read down, and after each click decide whether to go on.   relevance <-> clicks"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.errors import SettingError
from clickmix.lab.families import USERS
from clickmix.lab.users.fitting import UserFit, shrunk
from clickmix.lab.users.sessions import Booleans, Sessions
from clickmix.lab.users.trust import Trust, probabilities
from clickmix.lab.users.user import TOP, User, check_known
from clickmix.types import Floats, Ints

NORMALISATION = (
    "In this model everybody examines position 1 and goes on until a click, so the attraction of a document is its "
    "click rate at position 1. Trust cannot be separated from going on without documents of two known relevances at a "
    "position, so it is part of both."
)
# Learned by the paper's authors from the Yandex relevance prediction log, for lists of ten.
GOING_ON = (0.2978, 0.4449, 0.4540, 0.4548, 0.4352, 0.4129, 0.3888, 0.3442, 0.2560)


@dataclass(frozen=True, kw_only=True, eq=False)
class DependentClick(User):
    """People examine results from the top, one after the other, and stop only after a click.

    After a click at position k they go on to k + 1 with probability `going_on`[k]; without a click they always do.
    There is one entry for each position but the last.

    >>> user = DependentClick(going_on=[0.5], trust=Trust.perfect(2))
    >>> user.click_probabilities([[1.0, 1.0]]).tolist()
    [[1.0, 0.5]]
    """

    going_on: Floats

    examination_of_mixtures = "dcm"

    def __post_init__(self) -> None:
        object.__setattr__(self, "going_on", probabilities(self.going_on, name="probability to go on after a click"))
        if len(self.going_on) != self.positions - 1:
            raise SettingError(
                f"Going on after a click is given for {len(self.going_on)} positions, trust for {self.positions}. "
                "Expected one entry for each position but the last."
            )

    @classmethod
    def fit(cls, sessions: Sessions, *, tolerance: float = 1e-10, max_steps: int = 2000) -> UserFit:
        """Going on by position and attraction by document that make these sessions most likely."""
        K = sessions.positions
        counts = sessions.reading_counts(np.broadcast_to(np.arange(K), sessions.lists.shape))
        reading = counts.fit(continuation=1.0, tolerance=tolerance, max_steps=max_steps)
        going_on, known = reading.wanting_more[: K - 1], reading.known_cells[: K - 1]
        careful = shrunk(going_on, np.where(known, (counts.passed + counts.ended)[: K - 1], 0))
        trust = Trust.perfect(K)
        return UserFit(
            user=cls(going_on=np.where(known, going_on, careful), trust=trust),
            attraction=np.where(counts.shown > 0, reading.attraction, np.nan),
            examined=reading.expectation.examined,
            log_likelihoods=reading.ascent.log_likelihoods,
            converged=reading.ascent.converged,
            normalisation=NORMALISATION,
            unidentified=tuple(f"going on after a click at position {k + 1}" for k in np.flatnonzero(~known)),
            predictor=cls(going_on=careful, trust=trust),
        )

    def _marginal(self, traits: Floats) -> Floats:
        """examined_1 = 1; examined_k+1 = examined_k (1 - a_k (1 - going_on_k)); P(click at k) = examined_k a_k."""
        (a,) = traits
        K = a.shape[1]
        examined = np.ones_like(a)
        examined[:, 1:] = np.cumprod(1 - a[:, :-1] * (1 - self.going_on[: K - 1]), axis=1)
        p: Floats = examined * a
        return p

    def _conditional(self, traits: Floats, clicks: Booleans) -> Floats:
        """After a click, examined = going_on; after none, examined (1 - a) / (1 - examined a), by Bayes' rule."""
        (a,) = traits
        p: Floats = np.empty_like(a)
        examined = np.ones(len(a))
        for k in range(a.shape[1]):
            p[:, k] = examined * a[:, k]
            if k < len(self.going_on):
                unclicked = np.divide(examined - p[:, k], 1 - p[:, k], out=np.zeros(len(a)), where=p[:, k] < 1)
                examined = np.where(clicks[:, k], self.going_on[k], unclicked)
        return p

    def _draw(self, traits: Floats, seen: Ints, rng: np.random.Generator) -> Booleans:
        (attraction,) = traits
        clicks = np.empty((len(attraction), len(seen)), dtype=np.bool_)
        examined = np.ones(len(seen), dtype=np.bool_)
        for k, a in enumerate(attraction):
            u, p = rng.random(len(seen)), a.take(seen)
            np.less(u, p, out=clicks[k])
            clicks[k] &= examined
            if k < len(self.going_on):
                # After a click, u is uniform on [0, p): the same draw decides whether the person goes on.
                stops = u >= p * self.going_on[k]
                stops &= clicks[k]
                examined ^= stops
        return clicks


@USERS.register("dcm", help="reads from the top; after a click goes on or stops, by position", options=(TOP,))
def paper_dependent_click(*, top: int = len(GOING_ON) + 1) -> DependentClick:
    """The paper's user; its lists have 10 results."""
    trust = Trust.paper(top)
    check_known("dcm", top=top, known=len(GOING_ON) + 1)
    return DependentClick(going_on=np.array(GOING_ON[: top - 1]), trust=trust)
