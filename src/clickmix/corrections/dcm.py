"""The dependent click model as published: people read down, and after a click go on or stop.   Counts -> Labels

Guo, Liu, Wang: Efficient Multiple-Click Models in Web Search, WSDM 2009. People click an examined document with its
attraction, which is the label. After a click they go on with a probability that depends on its position; without a
click they always go on. EM finds the most likely values (`click_models/reading.py`). The paper's own shortcut assumes
that everybody without a later click stopped; here some went on and found nothing.
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

NAME = "dcm"


@CORRECTIONS.register(NAME, help="The attraction of documents in the dependent click model; needs session_id.")
@dataclass(frozen=True)
class DependentClickModel(TakesCounts):
    """Settings of the model: it has converged when a step gains at most `tolerance` of the likelihood."""

    needs_lists: ClassVar[Literal["clicks"]] = "clicks"
    title: ClassVar[str] = "dependent click model"

    tolerance: float = 1e-7
    max_steps: int = 2000

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> DependentClickFit:
        """Estimate how often people go on after a click at each position."""
        lists = read_clicked_lists(counts, correction=NAME)
        reading = self.read(lists, None)
        return DependentClickFit(self, reading.wanting_more, reading.ascent.converged, counts, lists, reading)

    def read(self, lists: ClickedLists, going_on: Floats | None) -> Reading:
        """Run EM on lists; estimate `going_on` of each position unless it is given."""
        positions = int(lists.position.max())
        if going_on is not None:  # deeper positions use the deepest known one
            going_on = going_on[np.minimum(np.arange(positions), len(going_on) - 1)]
        reading = lists.reading_counts(cells=lists.position - 1, number_of_cells=positions)
        return reading.fit(continuation=1.0, wanting_more=going_on, tolerance=self.tolerance, max_steps=self.max_steps)


@dataclass(frozen=True, eq=False)
class DependentClickFit(TakesCounts):
    """`going_on`: P(people examine the next document | a click at this position), from position 1 on."""

    settings: DependentClickModel
    going_on: Floats
    converged: bool
    _counts: Counts
    _lists: ClickedLists
    reading: Reading

    @property
    def summary(self) -> str:
        """How the fit went, in a sentence."""
        how = "converged" if self.converged else "was still improving when it was stopped"
        return f"The dependent click model {how} after {len(self.reading.ascent.log_likelihoods) - 1} steps."

    def label(self, counts: Counts) -> Labels:
        """The most likely attraction of every document."""
        lists, reading = self._lists, self.reading
        if counts is not self._counts:
            lists = read_clicked_lists(counts, correction=NAME)
            reading = self.settings.read(lists, self.going_on)
        return document_labels(counts, lists.query_id, lists.doc_id, correction=NAME, relevance=reading.attraction)

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """P(click) from the top down, with the expected attraction of the documents."""
        reading = self.settings.read(seen_lists(seen), self.going_on)
        examined, clicks = reading.expectation.examined, reading.counts.document_clicks
        codes = np.arange(seen.documents)
        attraction = expected_shares(codes, np.ones(len(codes)), clicks, examined, size=len(codes))
        clicked = attraction[asked.document]
        going_on = self.going_on[np.minimum(asked.position, len(self.going_on)) - 1]
        return read_down(asked, clicked, clicked * (1 - going_on))
