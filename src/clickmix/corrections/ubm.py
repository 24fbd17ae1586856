"""The user browsing model as published: examination depends on the nearest click above.   Counts -> Labels

Dupret, Piwowarski: A User Browsing Model to Predict Search Engine Click Data from Past Observations, SIGIR 2008.
P(click at k | last click above at j) = attraction * examination_kj, j = 0 for none. Relevance is the most likely
attraction. This is the position-based model with pairs (k, j) instead of positions, fitted in the same way
(`click_models/attraction.py`).

A pair that shares no clicked documents with the others, even through third pairs, has its own scale of examination: it
stays near its share of clicks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from clickmix.corrections.affine_em import CodedCells
from clickmix.corrections.click_models.attraction import (
    attraction_interval,
    expected_shares,
    fit_examination,
    most_likely_attraction,
)
from clickmix.corrections.click_models.clicked_lists import asked_table, read_clicked_lists, seen_lists
from clickmix.corrections.click_models.document_labels import document_labels
from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.corrections.plain_em import check_linked
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.types import Floats, Ints, Progress

NAME = "ubm"


@CORRECTIONS.register(NAME, help="The attraction of documents in the user browsing model; needs session_id.")
@dataclass(frozen=True)
class UserBrowsingModel(TakesCounts):
    """The user browsing model; there is nothing to set."""

    needs_lists: ClassVar[Literal["clicks"]] = "clicks"
    title: ClassVar[str] = "user browsing model"

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> UserBrowsingFit:
        """Estimate examination by position and last click, from documents that move or follow different clicks."""
        cells, pairs = read_clicked_lists(counts, correction=NAME).browsing_cells()
        check_linked(replace(cells, position=pairs[cells.position, 0] - 1), trust=False, correction=NAME)
        found = fit_examination(cells)
        return UserBrowsingFit(_filled(found.of_place, pairs), found.steps, found.converged, counts, cells, pairs)


@dataclass(frozen=True, eq=False)
class UserBrowsingFit(TakesCounts):
    """`examination` (positions, positions): a row for each position k from 1, a column for each last click j from 0.

    Pairs that the log says nothing about take the mean of their position. Impossible pairs (j >= k) are NaN.
    """

    examination: Floats
    steps: int
    converged: bool
    _counts: Counts
    _cells: CodedCells
    _pairs: Ints

    @property
    def summary(self) -> str:
        """How the fit went, in a sentence."""
        how = "converged" if self.converged else "was still improving when it was stopped"
        return f"The user browsing model {how} after {self.steps} steps. Examination is 1 where it is highest."

    def label(self, counts: Counts) -> Labels:
        """The most likely attraction of every document, with its interval."""
        cells, pairs = self._cells, self._pairs
        if counts is not self._counts:
            cells, pairs = read_clicked_lists(counts, correction=NAME).browsing_cells()
        attraction = most_likely_attraction(cells, self._of(pairs))
        ends = attraction_interval(cells, self._of(pairs), attraction)
        return document_labels(counts, cells.query_id, cells.doc_id, correction=NAME, relevance=attraction, **ends)

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """P(click) from the top down: a sum over the positions of the last click above, with expected attraction."""
        cells, pairs = seen_lists(seen).browsing_cells()
        shown = (cells.document, self._of(pairs)[cells.position], cells.clicks, cells.impressions)
        attraction = expected_shares(*shown, size=seen.documents)
        at, shape = asked_table(asked)
        attracts, position = np.zeros(shape), np.ones(shape, dtype=np.int64)
        attracts[at], position[at] = attraction[asked.document], asked.position
        rates = np.zeros(shape)
        last = np.zeros((shape[0] + 1, shape[1]))  # P(last click so far is on this result), 0 for none
        last[0] = 1.0
        above = np.vstack([np.zeros(shape[1], dtype=np.int64), position])
        for k in range(shape[0]):
            examination = self._of(np.stack([np.broadcast_to(position[k], (k + 1, shape[1])), above[: k + 1]], axis=-1))
            clicked = last[: k + 1] * examination * attracts[k]
            rates[k] = clicked.sum(axis=0)
            last[: k + 1] -= clicked
            last[k + 1] = rates[k]
        return np.asarray(rates[at])

    def _of(self, pairs: Ints) -> Floats:
        """The examination of pairs (position, last click) in the last axis; deeper ones use the deepest known."""
        deepest = len(self.examination)
        k = np.minimum(pairs[..., 0], deepest)
        return np.asarray(self.examination[k - 1, np.minimum(pairs[..., 1], k - 1)])


def _filled(of_pair: Floats, pairs: Ints) -> Floats:
    """The examination of all pairs; unknown ones take the mean of their position, or of the one above."""
    deepest = int(pairs[:, 0].max())
    examination = np.full((deepest, deepest), np.nan)
    examination[pairs[:, 0] - 1, np.minimum(pairs[:, 1], pairs[:, 0] - 1)] = of_pair
    mean = float(np.nanmean(of_pair))
    for k in range(deepest):
        known = examination[k, : k + 1][~np.isnan(examination[k, : k + 1])]
        mean = known.mean() if len(known) else mean
        examination[k, : k + 1] = np.nan_to_num(examination[k, : k + 1], nan=mean)
    return examination
