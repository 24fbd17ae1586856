"""User: what all user models share.   relevance of result lists -> click probabilities, simulated sessions

To add a user model, write one file here: a subclass of `User`, and a function that makes one, registered in `USERS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from clickmix.errors import InputError, SettingError
from clickmix.lab.users.sessions import Booleans, ListCounts, Sessions, concatenate
from clickmix.lab.users.simulation import Goal, list_chances, simulate_chunks
from clickmix.lab.users.trust import Trust
from clickmix.registry import Option
from clickmix.types import Floats, Ints

if TYPE_CHECKING:
    from clickmix.lab.users.fitting import UserFit


@dataclass(frozen=True, kw_only=True, eq=False)
class User(ABC):
    """Someone who looks at ranked results and clicks.

    `relevance` is always an array (lists, positions) of numbers from 0 to 1, NaN past the end of a shorter list.

    >>> from clickmix.lab.users import preset
    >>> preset("ubm").click_probabilities([[1.0, 0.0]]).shape
    (1, 2)
    """

    trust: Trust

    # The `examination` of MixtureCorrection that assumes the same about people, if there is one.
    examination_of_mixtures: ClassVar[Literal["pbm", "dcm", "ubm"] | None] = None

    @classmethod
    @abstractmethod
    def fit(cls, sessions: Sessions, *, tolerance: float = 1e-10, max_steps: int = 2000) -> UserFit:
        """The user of this model that makes these sessions most likely."""

    @property
    def alpha(self) -> Floats:
        """How much the click rate at each position grows from relevance 0 to 1, whatever was clicked above."""
        raise SettingError(
            f"{type(self).__name__} has no alpha and beta: its click rate at a position depends on the results above."
        )

    @property
    def beta(self) -> Floats:
        """The click rate of an irrelevant result at each position, whatever was clicked above."""
        return self.alpha  # the same refusal

    @property
    def positions(self) -> int:
        """The last position that this user is described for."""
        return self.trust.positions

    def attraction(self, relevance: npt.ArrayLike) -> Floats:
        """P(click | examined) of each result: e0_k + (e1_k - e0_k) * relevance; NaN past the end of a list."""
        r = np.asarray(relevance, dtype=np.float64)
        check_relevance(r)
        if r.shape[1] > self.positions:
            raise InputError(
                f"The lists go down to position {r.shape[1]}, but this user is described for {self.positions} "
                "positions. Cut the lists, or describe a user for more positions."
            )
        return self.trust.attraction(r)

    def traits(self, relevance: npt.ArrayLike) -> Floats:
        """(traits, lists, positions): what the model needs to know about each result; here only its attraction."""
        return self.attraction(relevance)[None]

    def click_probabilities(self, relevance: npt.ArrayLike, *, clicks: npt.ArrayLike | None = None) -> Floats:
        """P(click) at each position of each list; with `clicks`, P(click | the clicks above it in the same row)."""
        traits = self.traits(relevance)
        past_the_end = np.isnan(traits[0])
        if clicks is None:
            p = self._marginal(np.nan_to_num(traits))
        else:
            c, shape = np.asarray(clicks), past_the_end.shape
            if c.shape != shape:
                raise InputError(f"clicks has shape {c.shape}, relevance {shape}: expected one session for each list.")
            unclear = ~np.isin(c, (0, 1))
            if unclear.any():
                row, k = np.argwhere(unclear)[0]
                raise InputError(f"Row {row} of clicks, position {k + 1}, is {c[row, k]}, expected 0 or 1.")
            p = self._conditional(np.nan_to_num(traits), c.astype(np.bool_))
        return np.where(past_the_end, np.nan, p)

    def clicks_per_session(self, relevance: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> float:
        """Expected clicks in a session whose list is drawn uniformly, or in proportion to `weights`."""
        by_list = np.nansum(self.click_probabilities(relevance), axis=1)
        return float(by_list @ list_chances(weights, lists=len(by_list)))

    def simulate(
        self,
        relevance: npt.ArrayLike,
        *,
        sessions: int | None = None,
        clicks: int | None = None,
        weights: npt.ArrayLike | None = None,
        rng: np.random.Generator,
    ) -> Sessions:
        """Sessions over these lists: `sessions` of them, or as many as it takes to reach `clicks`.

        Each session sees a list drawn uniformly, or in proportion to `weights`. The session that reaches the clicks is
        complete. Document codes number the entries of `relevance` row by row.
        """
        chunks = self.simulate_chunks(relevance, sessions=sessions, clicks=clicks, weights=weights, rng=rng)
        return concatenate(chunks)

    def simulate_chunks(
        self,
        relevance: npt.ArrayLike,
        *,
        sessions: int | None = None,
        clicks: int | None = None,
        weights: npt.ArrayLike | None = None,
        rng: np.random.Generator,
    ) -> Iterator[Sessions]:
        """The sessions of `simulate`, in chunks of at most 262,144, so that memory does not grow with the log."""
        goal = Goal.of(sessions=sessions, clicks=clicks)
        if goal.unit == "clicks":
            self._check_clicks_happen(relevance, weights)
        traits = self.traits(relevance)
        chances = list_chances(weights, lists=traits.shape[1])
        return simulate_chunks(self._draw, traits, goal=goal, chances=chances, rng=rng)

    def simulate_counts(
        self,
        relevance: npt.ArrayLike,
        *,
        sessions: int | None = None,
        clicks: int | None = None,
        weights: npt.ArrayLike | None = None,
        rng: np.random.Generator,
    ) -> ListCounts:
        """The counts of `simulate(...)`, in bounded memory."""
        chunks = self.simulate_chunks(relevance, sessions=sessions, clicks=clicks, weights=weights, rng=rng)
        total = next(chunks).counts()
        for chunk in chunks:
            total = total + chunk.counts()
        return total

    def _check_clicks_happen(self, relevance: npt.ArrayLike, weights: npt.ArrayLike | None) -> None:
        if self.clicks_per_session(relevance, weights=weights) == 0:
            raise SettingError("This user never clicks on these lists, so no number of clicks is ever reached.")

    @abstractmethod
    def _marginal(self, traits: Floats) -> Floats:
        """P(click) (lists, positions), for traits (traits, lists, positions)."""

    @abstractmethod
    def _conditional(self, traits: Floats, clicks: Booleans) -> Floats:
        """P(click | clicks above) (sessions, positions), for traits (traits, sessions, positions)."""

    @abstractmethod
    def _draw(self, traits: Floats, seen: Ints, rng: np.random.Generator) -> Booleans:
        """Clicks (positions, sessions) of sessions that see these lists, for traits (traits, positions, lists)."""


TOP = Option("top", "Length of the result lists; 20 for pbm, 10 for the others.", int)  # an option of every user


def check_known(name: str, *, top: int, known: int) -> None:
    """Refuse lists that are longer than the known parameters."""
    if top > known:
        raise SettingError(
            f"The user {name} is known down to position {known}, found lists of {top}. Cut the lists to {known} "
            "results, or fit a user to longer ones."
        )


def check_relevance(relevance: Floats) -> None:
    """Refuse anything but an array (lists, positions) of numbers from 0 to 1, with NaN only past the end of a list."""
    if relevance.ndim != 2 or relevance.size == 0:
        raise InputError(f"relevance has shape {relevance.shape}, expected (lists, positions), at least one of each.")
    padded = np.isnan(relevance)
    bad = ~padded & ((relevance < 0) | (relevance > 1))
    if bad.any():
        row, k = np.argwhere(bad)[0]
        raise InputError(
            f"Row {row} of relevance, position {k + 1}, is {relevance[row, k]:g}, expected a number from 0 to 1."
        )
    misplaced = padded & ~np.c_[padded[:, 1:], np.ones(len(padded), dtype=np.bool_)]
    misplaced[:, 0] |= padded[:, 0]
    if misplaced.any():
        row, k = np.argwhere(misplaced)[0]
        raise InputError(
            f"Row {row} of relevance, position {k + 1}, is NaN. NaN is allowed only past the end of a list, "
            "and a list has at least one result."
        )
