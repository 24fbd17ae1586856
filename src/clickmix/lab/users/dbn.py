"""DynamicBayesian: people read down until a result they clicked satisfies them.   relevance <-> clicks

O. Chapelle, Y. Zhang: A Dynamic Bayesian Network Click Model for Web Search Ranking, WWW 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from clickmix.errors import InputError, SettingError
from clickmix.lab.families import USERS
from clickmix.lab.users.fitting import UserFit
from clickmix.lab.users.sessions import Booleans, Sessions
from clickmix.lab.users.trust import Trust
from clickmix.lab.users.user import TOP, User, check_relevance
from clickmix.registry import Option
from clickmix.types import Floats, Ints

NORMALISATION = (
    "In this model everybody examines position 1, so the attraction of a document is its click rate at position 1. "
    "Trust cannot be separated from attraction without documents of two known relevances at a position, so it is "
    "part of attraction."
)
# P(satisfied | clicked): how often a navigational user stops after a click, as in simulations of the literature.
SATISFIED_RELEVANT, SATISFIED_IRRELEVANT = 0.9, 0.2
CONTINUATION = 0.9  # the value that Chapelle and Zhang found best


@dataclass(frozen=True, kw_only=True, eq=False)
class DynamicBayesian(User):
    """People examine results from the top, and stop if a result they clicked satisfies them.

    A clicked result satisfies with probability s = `satisfied_irrelevant` + (`satisfied_relevant` -
    `satisfied_irrelevant`) * relevance. People who are not satisfied, or did not click, examine the next result with
    probability `continuation`.

    `relevance` can also be an array (2, lists, positions): how relevant a result looks, which draws the click, and how
    relevant it is, which satisfies.

    >>> user = DynamicBayesian(continuation=0.5, trust=Trust.perfect(2))
    >>> user.click_probabilities([[0.0, 1.0]]).tolist()
    [[0.0, 0.5]]
    """

    continuation: float
    satisfied_relevant: float = 1.0
    satisfied_irrelevant: float = 0.0

    # The continuation of every user of this model; None: each has its own.
    fixed_continuation: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        for name in ("continuation", "satisfied_relevant", "satisfied_irrelevant"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise SettingError(f"{name}={value:g}: expected a probability from 0 to 1.")

    @classmethod
    def of(cls, *, continuation: float, trust: Trust) -> Self:
        """A user who is satisfied by a clicked result if and only if it is relevant."""
        return cls(continuation=continuation, trust=trust)

    @classmethod
    def fit(cls, sessions: Sessions, *, tolerance: float = 1e-10, max_steps: int = 2000) -> UserFit:
        """Attraction and satisfaction by document, and continuation, that make these sessions most likely."""
        counts = sessions.reading_counts(sessions.lists)
        reading = counts.fit(continuation=cls.fixed_continuation, tolerance=tolerance, max_steps=max_steps)
        known, trust = reading.known_cells, Trust.perfect(sessions.positions)
        continuation_known = cls.fixed_continuation is not None or reading.continuation_known
        possible = reading.expectation.could_continue
        careful = (reading.continuation * possible + 0.5) / (possible + 1)
        return UserFit(
            user=cls.of(continuation=reading.continuation, trust=trust),
            attraction=np.where(counts.shown > 0, reading.attraction, np.nan),
            examined=reading.expectation.examined,
            log_likelihoods=reading.ascent.log_likelihoods,
            converged=reading.ascent.converged,
            normalisation=NORMALISATION,
            unidentified=() if continuation_known else ("continuation",),
            predictor=cls.of(continuation=careful, trust=trust),
            satisfaction=np.where(known, 1 - reading.wanting_more, np.nan),
            clicked=np.where(known, counts.passed + counts.ended, 0.0),
        )

    def traits(self, relevance: npt.ArrayLike) -> Floats:
        """(2, lists, positions): attraction and satisfaction."""
        r = np.asarray(relevance, dtype=np.float64)
        if r.ndim == 3 and len(r) != 2:
            raise InputError(
                f"relevance has shape {r.shape}, expected (lists, positions), or (2, lists, positions): how relevant "
                "results look, and how relevant they are."
            )
        looks, actual = r if r.ndim == 3 else (r, r)
        attraction = self.attraction(looks)
        check_relevance(actual)
        low, high = self.satisfied_irrelevant, self.satisfied_relevant
        return np.stack([attraction, low + (high - low) * actual])

    def _marginal(self, traits: Floats) -> Floats:
        """examined_1 = 1; examined_k+1 = examined_k continuation (1 - a_k s_k); P(click at k) = examined_k a_k."""
        a, s = traits
        examined = np.ones_like(a)
        examined[:, 1:] = np.cumprod(self.continuation * (1 - a[:, :-1] * s[:, :-1]), axis=1)
        p: Floats = examined * a
        return p

    def _conditional(self, traits: Floats, clicks: Booleans) -> Floats:
        """Examined next: continuation (1 - s) after a click; else continuation x (1 - a) / (1 - x a), x = examined."""
        a, s = traits
        p: Floats = np.empty_like(a)
        examined = np.ones(len(a))
        for k in range(a.shape[1]):
            p[:, k] = examined * a[:, k]
            unclicked = np.divide(examined - p[:, k], 1 - p[:, k], out=np.zeros(len(a)), where=p[:, k] < 1)
            examined = self.continuation * np.where(clicks[:, k], 1 - s[:, k], unclicked)
        return p

    def _draw(self, traits: Floats, seen: Ints, rng: np.random.Generator) -> Booleans:
        attraction, satisfaction = traits
        clicks = np.empty((len(attraction), len(seen)), dtype=np.bool_)
        examined = np.ones(len(seen), dtype=np.bool_)
        for k, (a, s) in enumerate(zip(attraction, satisfaction, strict=True)):
            u = rng.random(len(seen))
            np.less(u, a.take(seen), out=clicks[k])
            # The same draw decides whether the person goes on: u is uniform on [0, a) after a click, on [a, 1) without.
            goes_on = u >= (a * (1 - self.continuation * (1 - s))).take(seen)
            if self.continuation < 1:
                goes_on &= u < (a + (1 - a) * self.continuation).take(seen)
            clicks[k] &= examined
            examined &= goes_on
        return clicks


@USERS.register(
    "dbn",
    help="reads from the top until a clicked result satisfies, or patience ends",
    options=(Option("continuation", "P(examine the next result | not satisfied); default: 0.9.", float), TOP),
)
def dynamic_bayesian(*, continuation: float = CONTINUATION, top: int = 10) -> DynamicBayesian:
    """A user with the paper's trust."""
    return DynamicBayesian(
        continuation=continuation,
        satisfied_relevant=SATISFIED_RELEVANT,
        satisfied_irrelevant=SATISFIED_IRRELEVANT,
        trust=Trust.paper(top),
    )
