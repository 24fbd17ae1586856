"""The dynamic Bayesian network as published: a clicked document satisfies, or people read on.   Counts -> Labels

Chapelle, Zhang: A Dynamic Bayesian Network Click Model for Web Search Ranking, WWW 2009. People click an examined
document with its attraction, and are satisfied by a clicked one with its satisfaction. If they are not satisfied, they
examine the next document with the continuation, the same for all. EM finds the most likely values
(`click_models/reading.py`). Relevance is attraction * satisfaction: P(satisfied | examined). If clicks do not show a
document's satisfaction, because nothing attractive is below them, it gets the mean satisfaction of a click.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from clickmix.corrections.click_models.attraction import expected_shares
from clickmix.corrections.click_models.clicked_lists import ClickedLists, read_clicked_lists, read_down, seen_lists
from clickmix.corrections.click_models.document_labels import document_labels
from clickmix.corrections.click_models.reading import Reading
from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.types import Floats, Progress

NAME = "dbn"


@CORRECTIONS.register(NAME, help="Attraction x satisfaction in the dynamic Bayesian network; needs session_id.")
@dataclass(frozen=True)
class DynamicBayesianNetwork(TakesCounts):
    """Settings of the network: it has converged when a step gains at most `tolerance` of the likelihood."""

    needs_lists: ClassVar[Literal["clicks"]] = "clicks"
    title: ClassVar[str] = "dynamic Bayesian network"

    tolerance: float = 1e-7
    max_steps: int = 2000

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> DynamicBayesianFit:
        """Estimate how often people who are not satisfied go on."""
        lists = read_clicked_lists(counts, correction=NAME)
        reading = self.read(lists, None)
        return DynamicBayesianFit(self, reading.continuation, reading.ascent.converged, counts, lists, reading)

    def read(self, lists: ClickedLists, continuation: float | None) -> Reading:
        """Run EM on lists; estimate the continuation unless it is given."""
        reading = lists.reading_counts(cells=lists.document, number_of_cells=len(lists.doc_id))
        return reading.fit(continuation=continuation, tolerance=self.tolerance, max_steps=self.max_steps)


@dataclass(frozen=True, eq=False)
class DynamicBayesianFit(TakesCounts):
    """`continuation`: P(people examine the next document | they are not satisfied)."""

    settings: DynamicBayesianNetwork
    continuation: float
    converged: bool
    _counts: Counts
    _lists: ClickedLists
    reading: Reading

    @property
    def summary(self) -> str:
        """How the fit went, in a sentence."""
        how = "converged" if self.converged else "was still improving when it was stopped"
        steps = len(self.reading.ascent.log_likelihoods) - 1
        return f"The dynamic Bayesian network {how} after {steps} steps. Its continuation is {self.continuation:.3f}."

    def label(self, counts: Counts) -> Labels:
        """The most likely attraction times satisfaction of every document."""
        lists, reading = self._lists, self.reading
        if counts is not self._counts:
            lists = read_clicked_lists(counts, correction=NAME)
            reading = self.settings.read(lists, self.continuation)
        relevance = reading.attraction * satisfaction(reading)
        return document_labels(counts, lists.query_id, lists.doc_id, correction=NAME, relevance=relevance)

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """P(click) from the top down, with the expected attraction and satisfaction of the documents."""
        reading = self.settings.read(seen_lists(seen), self.continuation)
        expected, counts, codes = reading.expectation, reading.counts, np.arange(seen.documents)
        one, decided = np.ones(len(codes)), counts.passed + counts.ended
        attraction = expected_shares(codes, one, counts.document_clicks, expected.examined, size=len(codes))
        satisfies = expected_shares(codes, one, decided - expected.wanted_more, decided, size=len(codes))
        of = asked.document
        return read_down(asked, attraction[of], (attraction * satisfies)[of], continuation=self.continuation)


def satisfaction(reading: Reading) -> Floats:
    """P(satisfied | clicked) of every document; the mean over clicks if no click shows it."""
    counts, known = reading.counts, reading.known_cells
    decided = np.where(known, counts.passed + counts.ended, 0.0)
    found = 1 - reading.wanting_more
    mean = float(found @ decided / decided.sum()) if decided.any() else 0.5
    return np.where(known, found, mean)
