r"""Reading from the top: EM for people who examine results one after the other.   lists, clicks -> parameters

People examine the first result. They click an examined result with its attraction a. After a click they are satisfied
and stop, or want more with probability g, which depends on a cell: the position, or the document. People who are not
satisfied examine the next result with the continuation c.

People examined everything down to their last click. Below it, with T_k the probability of no click from k on if k is
examined, and k the first result below the last click:

    T_k = (1 - a_k) (1 - c + c T_k+1), and 1 past the end of the list
    P(no click below) = 1 - g + g F_k, F_k = 1 - c + c T_k;  before the first click it is T_1

Given no further click, people who examined the result above k went on to k with probability c T_k / F_k, wherever the
last click was. So one walk down a list serves the sessions of all its last clicks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clickmix.corrections.click_models.em import Point, run_em
from clickmix.corrections.squarem import Ascent
from clickmix.types import Floats, Ints

Booleans = NDArray[np.bool_]
BLOCK = 8_192  # lists at a time: intermediate results stay in the cache
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
START_CONTINUATION = 0.9


@dataclass(frozen=True, eq=False)
class Expectation:
    """The E-step: expected examined impressions by document, wanting more by cell, and steps to the next result."""

    examined: Floats
    wanted_more: Floats
    continued: float
    could_continue: float
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class ReadingCounts:
    """All that a fit needs from the sessions, list by list.

    Tables (results, lists) from the top: codes of `documents`, -1 past the end of a list; codes of `cells`, on which
    wanting more depends; and `clicks`. `last` (1 + results, lists) counts sessions by their last click, 0: none.
    """

    documents: Ints
    cells: Ints
    clicks: Floats
    last: Floats
    number_of_documents: int
    number_of_cells: int

    @cached_property
    def in_list(self) -> Booleans:
        """(results, lists): whether there is a result."""
        return np.asarray(self.documents >= 0)

    @cached_property
    def followed(self) -> Booleans:
        """(results, lists): whether there is a result below."""
        below = np.zeros_like(self.in_list)
        below[:-1] = self.in_list[1:]
        return below

    def by_document(self, values: Floats) -> Floats:
        """Sums over the results of each document."""
        totals = np.bincount(self._document_bins, values.ravel(), self.number_of_documents + 1)
        return np.asarray(totals[1:], dtype=np.float64)

    def by_cell(self, values: Floats) -> Floats:
        """Sums over the results of each cell."""
        return np.bincount(self._cell_bins, values.ravel(), self.number_of_cells + 1)[1:].astype(np.float64)

    @cached_property
    def _document_bins(self) -> Ints:
        return np.asarray(self.documents.ravel() + 1)

    @cached_property
    def _cell_bins(self) -> Ints:
        return np.asarray(np.where(self.in_list, self.cells + 1, 0).ravel())

    @cached_property
    def document_clicks(self) -> Floats:
        """Clicks by document."""
        return self.by_document(self.clicks)

    @cached_property
    def certain(self) -> Floats:
        """Impressions by document that were surely examined: those with a click at or below them."""
        return self.by_document(np.cumsum(self.last[:0:-1], axis=0)[::-1])

    @cached_property
    def shown(self) -> Floats:
        """Impressions by document."""
        return self.by_document(np.broadcast_to(self.last.sum(axis=0), self.in_list.shape))

    @cached_property
    def passed(self) -> Floats:
        """Clicks by cell with another click below."""
        return self.by_cell(self.clicks - self.last[1:])

    @cached_property
    def ended(self) -> Floats:
        """Last clicks by cell that have a result below."""
        return self.by_cell(self.last[1:] * self.followed)

    @cached_property
    def certain_steps(self) -> float:
        """Steps to the next result that people surely took: those above the last click."""
        return float(np.arange(len(self.documents)) @ self.last[1:].sum(axis=1))

    def fit(
        self, *, continuation: float | None, wanting_more: Floats | None = None, tolerance: float, max_steps: int
    ) -> Reading:
        """The most likely parameters; the continuation and wanting more are fitted unless they are given."""
        D = self.number_of_documents
        clicks, decided = self.document_clicks, self.passed + self.ended

        def em(parameters: Floats) -> tuple[Floats, float]:
            """attraction = clicks / examined; g = wanted more / clicks; c = steps taken / steps possible."""
            expected = self.expected(parameters[:D], parameters[D:-1], float(parameters[-1]))
            happened = np.r_[clicks, expected.wanted_more, expected.continued]
            possible = np.r_[expected.examined, decided, expected.could_continue]
            if continuation is not None:
                possible[-1] = 0.0  # stays as it is
            if wanting_more is not None:
                possible[D:-1] = 0.0
            after = np.divide(happened, possible, out=parameters.copy(), where=possible > 0)
            return np.minimum(after, 1.0), expected.log_likelihood  # only rounding puts ratios above 1

        # Start as if people examined half of what is below their last click: closer than starting at 1/2 everywhere.
        attraction = (clicks + 0.5) / ((self.certain + self.shown) / 2 + 1)
        wanted = (self.passed + 0.5) / (decided + 1) if wanting_more is None else wanting_more
        start = np.r_[attraction, wanted, START_CONTINUATION if continuation is None else continuation]
        ascent = run_em(em, start, tolerance=tolerance, max_steps=max_steps)
        found = ascent.end.probabilities
        return Reading(self, ascent, found[:D], found[D:-1], float(found[-1]))

    def expected(self, a: Floats, g: Floats, c: float) -> Expectation:
        """The E-step: P(examined), P(wanted more) and steps taken, given the clicks."""
        from scipy.special import xlog1py, xlogy  # here, because --help loads this module

        with np.errstate(divide="ignore", invalid="ignore"):
            log_likelihood = (
                np.sum(xlogy(self.document_clicks, a) + xlog1py(self.certain - self.document_clicks, -a))
                + np.sum(xlogy(self.passed, g))
                + xlogy(self.certain_steps, c)
            )
        examined, wanted = np.empty(self.documents.shape), np.empty(self.documents.shape)
        attraction = np.append(a, 0.0)  # for code -1: nothing attracts past the end

        def walk(lists: slice) -> float:
            examined[:, lists], wanted[:, lists], part = self._walk(attraction, g, c, lists)
            return part

        with ThreadPoolExecutor(CORES) as threads:  # numpy lets other threads run
            log_likelihood += sum(threads.map(walk, self.blocks()))  # map keeps the order: always the same bytes
        below = float(examined.sum())
        return Expectation(
            examined=self.certain + self.by_document(examined),
            wanted_more=self.passed + self.by_cell(wanted),
            continued=self.certain_steps + below - float(examined[0].sum()),
            could_continue=self.certain_steps + float(wanted.sum()) + float((examined * self.followed).sum()),
            log_likelihood=float(log_likelihood),
        )

    def blocks(self) -> Iterator[slice]:
        """Slices that cover all lists."""
        return (slice(first, first + BLOCK) for first in range(0, self.documents.shape[1], BLOCK))

    def _walk(self, attraction: Floats, g: Floats, c: float, lists: slice) -> tuple[Floats, Floats, float]:
        """Walk some lists up and down: examined below the last click, wanted more after it, log-likelihood below it."""
        from scipy.special import xlogy

        documents, last, followed = self.documents[:, lists], self.last[:, lists], self.followed[:, lists]
        K, L = documents.shape
        T = np.ones((K + 1, L))
        skips = 1 - attraction[documents]
        for k in reversed(range(K)):
            T[k] = skips[k] * (1 - c + c * T[k + 1])
        goes_on = c * T[1:]
        follows = 1 - c + goes_on
        wants = g[self.cells[:, lists]] * followed
        unclicked = 1 - wants + wants * follows
        share = np.divide(last[1:], unclicked, out=np.zeros((K, L)), where=unclicked > 0) * wants
        enters = share * goes_on
        stays = np.divide(goes_on, follows, out=np.zeros((K, L)), where=follows > 0) * followed
        examined = np.empty((K, L))
        examined[0] = last[0] * (T[0] > 0)
        for k in range(1, K):
            examined[k] = examined[k - 1] * stays[k - 1] + enters[k - 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_likelihood = float(np.sum(xlogy(last[1:], unclicked)) + np.sum(xlogy(last[0], T[0])))
        return examined, share * follows, log_likelihood


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
    def _attractive(self) -> Booleans:
        """(results, lists): results that attract at all."""
        return np.asarray(np.append(self.attraction, 0.0)[self.counts.documents] > 0)

    @property
    def known_cells(self) -> Booleans:
        """Cells that show wanting more: a click before another, or a last click with something attractive below."""
        counts = self.counts
        below = np.zeros_like(self._attractive)
        below[:-1] = np.logical_or.accumulate(self._attractive[:0:-1], axis=0)[::-1]
        known: Booleans = (counts.passed > 0) | (counts.by_cell((counts.last[1:] > 0) & below) > 0)
        return known

    @property
    def continuation_known(self) -> bool:
        """Whether the log shows the continuation: a step surely taken, or one that leads to something attractive."""
        below = np.cumsum(self.counts.last, axis=0)[1:-1] > 0  # some last click is above the second result, ...
        return bool(self.counts.certain_steps > 0 or (self._attractive[1:] & below).any())
