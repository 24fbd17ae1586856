"""User: what the three user models share.   relevance of result lists -> click probabilities, simulated sessions"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from clickmix.errors import InputError, SettingError
from clickmix.lab.users.sessions import Booleans, Sessions, concatenate
from clickmix.lab.users.simulation import Goal, list_chances, simulate_chunks
from clickmix.lab.users.trust import Trust
from clickmix.types import Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class User(ABC):
    """Someone who looks at ranked results and clicks.

    `relevance` is always an array (lists, positions) of numbers from 0 to 1, NaN past the end of a shorter list.
    """

    trust: Trust

    @property
    def positions(self) -> int:
        """Down to which position this user is described."""
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

    def click_probabilities(self, relevance: npt.ArrayLike, *, clicks: npt.ArrayLike | None = None) -> Floats:
        """P(click) at each position of each list; with `clicks`, P(click | the clicks above it in the same row)."""
        a = self.attraction(relevance)
        if clicks is None:
            p = self._marginal(np.nan_to_num(a))
        else:
            c = np.asarray(clicks)
            if c.shape != a.shape:
                raise InputError(f"clicks has shape {c.shape}, relevance {a.shape}: give one session for each list.")
            unclear = ~np.isin(c, (0, 1))
            if unclear.any():
                row, k = np.argwhere(unclear)[0]
                raise InputError(f"Row {row} of clicks, position {k + 1}, is {c[row, k]}, expected 0 or 1.")
            p = self._conditional(np.nan_to_num(a), c.astype(np.bool_))
        return np.where(np.isnan(a), np.nan, p)

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
        """Sessions over these lists: so many `sessions`, or as many as it takes to reach so many `clicks`.

        Each session sees a list drawn uniformly, or in proportion to `weights`. The session that reaches the
        clicks is kept whole. Document codes number the entries of `relevance` row by row.
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
        a = self.attraction(relevance)
        return simulate_chunks(self._draw, a, goal=goal, chances=list_chances(weights, lists=len(a)), rng=rng)

    def _check_clicks_happen(self, relevance: npt.ArrayLike, weights: npt.ArrayLike | None) -> None:
        if self.clicks_per_session(relevance, weights=weights) == 0:
            raise SettingError("This user never clicks on these lists, so no number of clicks is ever reached.")

    @abstractmethod
    def _marginal(self, a: Floats) -> Floats:
        """P(click) for attraction a (lists, positions)."""

    @abstractmethod
    def _conditional(self, a: Floats, clicks: Booleans) -> Floats:
        """P(click | clicks above) for attraction a and clicks, both (sessions, positions)."""

    @abstractmethod
    def _draw(self, attraction: Floats, seen: Ints, rng: np.random.Generator) -> Booleans:
        """Clicks (positions, sessions) of sessions that see these lists, for attraction (positions, lists)."""


def check_relevance(relevance: Floats) -> None:
    """An array (lists, positions) of numbers from 0 to 1, NaN only past the end of a list, no empty list."""
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
            f"Row {row} of relevance, position {k + 1}, is NaN. NaN may stand only past the end of a list, "
            "and a list has at least one result."
        )
