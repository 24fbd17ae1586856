"""The position-based click model as published: P(click at k) = attraction * examination_k.   Counts -> Labels

Craswell et al.: An Experimental Comparison of Click Position-Bias Models, WSDM 2008. Relevance is the most likely
attraction of a document; `click_models/attraction.py` says how it is found.

`plain-em --no-trust` finds the same examination, but weighs clicks by 1 / examination (IPS). Both give documents that
stay at one position the same label. For those that move, a click deep down counts for more with IPS, so labels scatter
more.

Clicks fix only products, so examination is 1 where it is highest. A document that nobody clicked has attraction 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from clickmix.corrections.affine_em import CodedCells, read_cells
from clickmix.corrections.click_models.attraction import (
    attraction_interval,
    expected_shares,
    fit_examination,
    most_likely_attraction,
)
from clickmix.corrections.click_models.document_labels import document_labels
from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.corrections.parameters import BiasParameters, check_fits
from clickmix.corrections.plain_em import check_linked
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.types import Floats, Progress

NAME = "pbm"


@CORRECTIONS.register(NAME, help="The attraction of documents in the position-based click model.")
@dataclass(frozen=True)
class PositionBasedModel(TakesCounts):
    """The position-based model; there is nothing to set."""

    saves_model: ClassVar[bool] = True
    title: ClassVar[str] = "position-based model"

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> PositionBasedFit:
        """Estimate the examination of every position, from documents that move."""
        cells = read_cells(counts, correction=NAME)
        check_linked(cells, trust=False, correction=NAME)
        found = fit_examination(cells)
        parameters = BiasParameters.of_examination(found.of_place)
        return PositionBasedFit(parameters, found.steps, found.converged, counts, cells)


@dataclass(frozen=True, eq=False)
class PositionBasedFit(TakesCounts):
    """The examination of every position (alpha of the parameters), the number of steps, and whether they converged."""

    parameters: BiasParameters
    steps: int
    converged: bool
    _counts: Counts
    _cells: CodedCells

    @property
    def summary(self) -> str:
        """How the fit went, in a sentence."""
        how = "converged" if self.converged else "was still improving when it was stopped"
        return f"The position-based model {how} after {self.steps} steps. Examination is 1 where it is highest."

    def write(self, path: str | Path) -> None:
        """Write a parameters file."""
        self.parameters.write(path)

    def label(self, counts: Counts) -> Labels:
        """The most likely attraction of every document, with its interval."""
        cells = self._cells
        if counts is not self._counts:
            check_fits(self.parameters, counts, correction=NAME)
            cells = read_cells(counts, correction=NAME, every_position=False)
        attraction = most_likely_attraction(cells, self.parameters.alpha)
        ends = attraction_interval(cells, self.parameters.alpha, attraction)
        return document_labels(counts, cells.query_id, cells.doc_id, correction=NAME, relevance=attraction, **ends)

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """Examination times the document's expected attraction, given its clicks and how attraction is spread."""
        alpha = self.parameters.alpha
        examination = np.array([alpha[min(place.position, len(alpha)) - 1] for place in seen.places])
        shown = (seen.document, examination[seen.place], seen.clicks, seen.impressions)
        attraction = expected_shares(*shown, size=seen.documents)
        return np.asarray(examination[asked.place] * attraction[asked.document])
