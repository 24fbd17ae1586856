r"""Reading from the top: counts and EM for people who examine results one after the other.   sessions -> parameters

They examine position 1. An examined result is clicked with its attraction a. After a click they are satisfied, and
stop, or want more with probability g, which depends on a cell: the position, or the document. Whoever is not satisfied
examines the next result with the continuation c.

Down to the last click everything was examined. Below it, with T_k the probability of no click from k on if k is
examined, and k the first position below the last click:

    T_k = (1 - a_k) (1 - c + c T_k+1), and 1 past the end of the list
    P(no click below) = 1 - g c + g c T_k;  before the first click g c is 1
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import xlog1py, xlogy

from clickmix.corrections.squarem import Ascent
from clickmix.lab.users.em import Point, run_em
from clickmix.lab.users.fitting import check_clicked
from clickmix.lab.users.sessions import Booleans, Sessions, totals
from clickmix.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Expectation:
    """What the E-step expects: examined impressions by document, wanting more by cell, and steps to the next result."""

    examined: Floats
    wanted_more: Floats
    continued: float
    could_continue: float
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class ReadingCounts:
    """All that a fit needs of the sessions; those with the same list and last click are one row.

    By position and row: `documents`, and `below`, which marks results below the last click. By row: the position of
    the `last` click (0: none), its `cell`, the number of `sessions`. By document: `clicks`, `certain` (impressions
    surely examined) and `shown`. By cell: `passed` (clicks with another below) and `ended` (last clicks with a result
    below). `certain_steps` counts steps to the next result that were surely taken.
    """

    documents: Ints
    below: Booleans
    last: Ints
    cell: Ints
    sessions: Ints
    clicks: Floats
    certain: Floats
    shown: Floats
    passed: Floats
    ended: Floats
    certain_steps: float

    @classmethod
    def of(cls, sessions: Sessions, cells: Ints) -> ReadingCounts:
        """Count sessions; `cells` (lists, positions) is the cell of a click at each place."""
        K, D = sessions.positions, int(sessions.lists.max()) + 1
        positions = np.arange(1, K + 1)
        last_click = (sessions.clicks * positions).max(axis=1)
        pairs, n = np.unique(sessions.seen * (K + 1) + last_click, return_counts=True)
        seen, last = pairs // (K + 1), pairs % (K + 1)
        documents = sessions.lists[seen].T
        in_list = documents >= 0
        below = (positions[:, None] > last) & in_list
        above = (positions[:, None] <= last) & in_list
        weights = np.broadcast_to(n, below.shape)
        clicked = last > 0
        cell = np.where(clicked, cells[seen, last - 1], 0)
        size = int(cells.max()) + 1

        counts, shown = sessions.counts(), sessions.lists >= 0
        check_clicked(int(counts.clicks.sum()))
        certain = totals(documents[above], weights[above], size=D)
        last_clicks = totals(cell[clicked], n[clicked], size=size)
        ended = clicked & below.any(axis=0)
        return cls(
            documents=documents,
            below=below,
            last=last,
            cell=cell,
            sessions=n,
            clicks=totals(sessions.lists[shown], counts.clicks[shown], size=D),
            certain=certain,
            shown=certain + totals(documents[below], weights[below], size=D),
            passed=totals(cells[shown], counts.clicks[shown], size=size) - last_clicks,
            ended=totals(cell[ended], n[ended], size=size),
            certain_steps=float(n[clicked] @ (last[clicked] - 1)),
        )

    def fit(self, *, continuation: float | None, tolerance: float, max_steps: int) -> Reading:
        """The most likely parameters; the continuation, too, where it is not given."""
        D, C = len(self.clicks), len(self.passed)

        def em(parameters: Floats) -> tuple[Floats, float]:
            """attraction = clicks / examined; g = wanted more / clicks; c = steps taken / steps possible."""
            expected = self.expected(parameters[:D], parameters[D:-1], float(parameters[-1]))
            happened = np.r_[self.clicks, expected.wanted_more, expected.continued]
            possible = np.r_[expected.examined, self.passed + self.ended, expected.could_continue]
            if continuation is not None:
                possible[-1] = 0.0  # stays as it is
            after = np.divide(happened, possible, out=parameters.copy(), where=possible > 0)
            return np.minimum(after, 1.0), expected.log_likelihood  # ratios of sums are above 1 by rounding only

        start = np.full(D + C + 1, 0.5)
        if continuation is not None:
            start[-1] = continuation
        ascent = run_em(em, start, tolerance=tolerance, max_steps=max_steps)
        found = ascent.end.probabilities
        return Reading(self, ascent, found[:D], found[D:-1], float(found[-1]))

    def expected(self, a: Floats, g: Floats, c: float) -> Expectation:
        """The E-step: P(examined), P(wanted more) and steps taken, given the clicks."""
        K, rows = self.below.shape
        n = self.sessions
        examined = np.zeros((K, rows))
        attracts = np.where(self.below, a[self.documents], 0.0)
        T = np.ones((K + 1, rows))
        for k in reversed(range(K)):
            T[k] = (1 - attracts[k]) * (1 - c + c * T[k + 1])
        first_T = T[self.last, np.arange(rows)]
        wants = np.where(self.last > 0, g[self.cell], 1.0) * self.goes_on_below
        enters = np.where(self.last > 0, wants * c, wants)
        unclicked = 1 - enters + enters * first_T
        for k in range(K):
            follows = 1 - c + c * T[k]
            stayed = np.divide(c * T[k], follows, out=np.zeros(rows), where=follows > 0)
            begins = np.divide(enters * T[k], unclicked, out=np.zeros(rows), where=unclicked > 0)
            examined[k] = np.where(self.last == k, begins, stayed * examined[k - 1] if k else 0.0)
            examined[k] *= self.below[k]
        wanted = wants * (1 - c + c * first_T)
        wanted = n * np.divide(wanted, unclicked, out=np.zeros(rows), where=unclicked > 0) * (self.last > 0)
        examined *= n
        entered = float(examined[0] @ (self.last == 0)) if K else 0.0
        with np.errstate(divide="ignore"):
            log_likelihood = (
                np.sum(xlogy(self.clicks, a) + xlog1py(self.certain - self.clicks, -a))
                + np.sum(xlogy(self.passed, g))
                + xlogy(self.certain_steps, c)
                + np.sum(n * np.log(unclicked))
            )
        below = float(examined.sum())
        return Expectation(
            examined=self.certain + totals(self.documents[self.below], examined[self.below], size=len(a)),
            wanted_more=self.passed + totals(self.cell, wanted, size=len(g)),
            continued=self.certain_steps + below - entered,
            could_continue=self.certain_steps + float(wanted.sum()) + below - float(examined[self.ends].sum()),
            log_likelihood=float(log_likelihood),
        )

    @cached_property
    def goes_on_below(self) -> Booleans:
        """(rows,): whether there is a result below the last click."""
        return np.asarray(self.below.any(axis=0))

    @cached_property
    def ends(self) -> Booleans:
        """(positions, rows): the last result of each list, where it is below the last click."""
        next_below = np.vstack([self.below[1:], np.zeros((1, self.below.shape[1]), dtype=np.bool_)])
        return np.asarray(self.below & ~next_below)


@dataclass(frozen=True, eq=False)
class Reading:
    """The most likely attraction by document, wanting more by cell, and continuation."""

    counts: ReadingCounts
    ascent: Ascent[Point]
    attraction: Floats
    wanting_more: Floats
    continuation: float

    @cached_property
    def expectation(self) -> Expectation:
        """The E-step with these parameters."""
        return self.counts.expected(self.attraction, self.wanting_more, self.continuation)

    @cached_property
    def _attractive_below(self) -> Booleans:
        """(positions, rows): results below the last click that attract at all."""
        return np.asarray(self.counts.below & (self.attraction[self.counts.documents] > 0))

    @property
    def known_cells(self) -> Booleans:
        """Where wanting more shows: a click followed by another, or a last click with something attractive below."""
        counts = self.counts
        telling = self._attractive_below.any(axis=0) & (counts.last > 0)
        known: Booleans = (counts.passed > 0) | (totals(counts.cell, telling, size=len(counts.passed)) > 0)
        return known

    @property
    def continuation_known(self) -> bool:
        """Whether the continuation shows: a step surely taken, or something attractive that it leads to."""
        return bool(self.counts.certain_steps > 0 or self._attractive_below[1:].any())
