"""The position-based click model as published: P(click at k) = attraction * examination_k.   Counts -> Labels

Craswell et al.: An Experimental Comparison of Click Position-Bias Models, WSDM 2008. Relevance is the most likely
attraction of a document. The log-likelihood is concave in the logarithms of attraction and examination, so it has one
top. EM creeps towards it. Here every document's attraction is solved for, and only the examination is searched, by its
slopes: the same top in seconds.

`plain-em --no-trust` finds the same examination, but weighs clicks by 1 / examination (IPS). Both give documents that
stay at one position the same label. For those that move, a click deep down counts for more with IPS, and scatters more.

Clicks fix only products, so examination is 1 where it is highest. A document that nobody clicked has attraction 0.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from clickmix.corrections.affine_em import Cells, read_cells
from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.labels import Labels
from clickmix.corrections.parameters import LEAST_ALPHA, BiasParameters, check_fits
from clickmix.corrections.plain_em import check_linked
from clickmix.counts.counts import Counts
from clickmix.engines.choose import embedded
from clickmix.types import Floats, Progress

NAME = "pbm"
MOST_CERTAIN = 1 - 1e-12  # no click probability is nearer to 1, where the likelihood of a skip ends
NODES, PRIOR_STEPS = 32, 30  # of the attraction that documents may have, and EM steps for how many have it
PRECISION, MOST_STEPS = 1e-14, 60  # of attraction; 60 halvings reach it from anywhere
FLAT = 1e-6  # slopes per impression that count as 0
_table_numbers = itertools.count(1)


@CORRECTIONS.register(NAME, help="The attraction of documents in the position-based click model.")
@dataclass(frozen=True)
class PositionBasedModel:
    """The position-based model; there is nothing to set."""

    saves_model: ClassVar[bool] = True
    title: ClassVar[str] = "position-based model"

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> PositionBasedFit:
        """Estimate the examination of every position, from documents that move."""
        cells = read_cells(counts, correction=NAME)
        check_linked(cells, trust=False, correction=NAME)
        clicked = _clicked(cells)
        if not len(clicked.clicks):  # one position, and no clicks
            return PositionBasedFit(BiasParameters.of_examination([1.0]), 0, True)
        return _climbed(clicked)


@dataclass(frozen=True, eq=False)
class PositionBasedFit:
    """The examination of every position, as alpha of the parameters; after how many steps, and whether at the top."""

    parameters: BiasParameters
    steps: int
    converged: bool

    @property
    def summary(self) -> str:
        """How it went, in a sentence."""
        how = "converged" if self.converged else "was still improving when it was stopped"
        return f"The position-based model {how} after {self.steps} steps. Examination is 1 where it is highest."

    def write(self, path: str | Path) -> None:
        """Write a parameters file."""
        self.parameters.write(path)

    def label(self, counts: Counts) -> Labels:
        """The most likely attraction of every document."""
        check_fits(self.parameters, counts, correction=NAME)
        cells = read_cells(counts, correction=NAME, every_position=False)
        attraction = _attraction(cells, self.parameters.alpha, start=np.full(cells.documents, 0.5))
        table = f"attraction_{next(_table_numbers)}"
        columns = {"query_id": cells.query_id, "doc_id": cells.doc_id, "relevance": attraction}
        embedded(counts.engine, of=NAME).register(table, columns)
        return Labels(
            counts,
            "SELECT query_id, doc_id, max(relevance) AS relevance, CAST(sum(impressions) AS BIGINT) AS impressions, "
            f"CAST(sum(clicks) AS BIGINT) AS clicks FROM {counts.table} AS cells JOIN {table} AS attractions "
            "USING (query_id, doc_id) GROUP BY query_id, doc_id",
        )

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """Examination times the expected attraction of the document, given its clicks and how attraction is spread.

        The most likely attraction is 0 for most documents, and a click on one of them would be impossible. So the
        spread of attraction over documents is fitted to what was seen, on a grid, and each document starts from it.
        """
        alpha = self.parameters.alpha
        examination = np.array([alpha[min(place.position, len(alpha)) - 1] for place in seen.places])
        nodes = np.linspace(0.5, NODES - 0.5, NODES) ** 2 / NODES**2  # denser where most documents are
        logs = np.empty((NODES, seen.documents))
        for node, attraction in enumerate(nodes):
            p = np.clip(attraction * examination, LEAST_ALPHA**2, MOST_CERTAIN)
            click, skip = np.log(p)[seen.place], np.log1p(-p)[seen.place]
            logs[node] = seen.by_document(seen.clicks * click + (seen.impressions - seen.clicks) * skip)
        likelihood = np.exp(logs - logs.max(axis=0))
        weights = np.full(NODES, 1 / NODES)
        for _ in range(PRIOR_STEPS):
            weights = weights * (likelihood / (weights @ likelihood)).mean(axis=1)
        posterior = weights[:, None] * likelihood
        attraction = (nodes @ posterior) / posterior.sum(axis=0)
        return np.asarray(examination[asked.place] * attraction[asked.document])


def _clicked(cells: Cells) -> Cells:
    """The cells of documents that were clicked: others have attraction 0 and say nothing about examination."""
    kept = cells.by_document(cells.clicks) > 0
    rows, codes = kept[cells.document], np.cumsum(kept) - 1
    return replace(
        cells,
        query_id=cells.query_id[kept],
        doc_id=cells.doc_id[kept],
        document=codes[cells.document[rows]],
        position=cells.position[rows],
        impressions=cells.impressions[rows],
        clicks=cells.clicks[rows],
    )


def _climbed(cells: Cells) -> PositionBasedFit:
    """Where the likelihood is highest, with the best attraction for every examination."""
    from scipy.optimize import minimize

    shown = cells.impressions.sum()
    attraction = np.full(cells.documents, 0.5)

    def loss(log_examination: Floats) -> tuple[float, Floats]:
        nonlocal attraction
        examination = np.exp(log_examination)
        attraction = _attraction(cells, examination, start=attraction)
        p = np.minimum(attraction[cells.document] * examination[cells.position], MOST_CERTAIN)
        skips = cells.impressions - cells.clicks
        value = (cells.clicks * np.log(p) + skips * np.log1p(-p)).sum()
        return -float(value) / shown, -cells.by_position(cells.clicks - skips * p / (1 - p)) / shown

    clicks, impressions = cells.position_totals
    rates = np.maximum(clicks / impressions, LEAST_ALPHA)
    bounds = [(np.log(LEAST_ALPHA), 0.0)] * cells.positions
    best = minimize(
        loss,
        np.log(np.maximum(rates / rates.max(), LEAST_ALPHA)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 0, "gtol": 1e-9},
    )
    # At a bound, a slope that leads out of it is none.
    slopes = np.where((best.x >= 0) & (best.jac < 0), 0.0, best.jac)
    examination = np.exp(best.x - best.x.max())
    return PositionBasedFit(
        BiasParameters.of_examination(np.maximum(examination, LEAST_ALPHA)),
        int(best.nit),
        bool(np.abs(slopes).max() < FLAT),
    )


def _attraction(cells: Cells, examination: Floats, *, start: Floats) -> Floats:
    """The most likely attraction a of every document: where sum of c - (n - c) p / (1 - p) is 0, p = a examination.

    Newton in log a, halving the interval that holds the answer where a step would leave it. The sum falls with a; where
    it is above 0 at a = 1, the answer is 1.
    """
    g, d = examination[cells.position], cells.document
    clicks, skips = cells.by_document(cells.clicks), cells.impressions - cells.clicks

    def excess_and_slope(a: Floats) -> tuple[Floats, Floats]:
        p = np.minimum(a[d] * g, MOST_CERTAIN)
        odds = skips * p / (1 - p)
        return clicks - cells.by_document(odds), cells.by_document(odds / (1 - p))

    always = excess_and_slope(np.ones(cells.documents))[0] >= 0
    low, high = np.zeros(cells.documents), np.ones(cells.documents)
    a = np.clip(start, LEAST_ALPHA, 1 - LEAST_ALPHA)
    for _ in range(MOST_STEPS):
        excess, slope = excess_and_slope(a)
        low, high = np.where(excess > 0, a, low), np.where(excess > 0, high, a)
        after = a * np.exp(np.clip(excess / np.maximum(slope, LEAST_ALPHA**2), -5, 5))
        after = np.where((after > low) & (after < high), after, (low + high) / 2)
        moved, a = np.abs(after - a), after
        if not (moved[~always & (clicks > 0)] > PRECISION).any():
            break
    return np.where(clicks == 0, 0.0, np.where(always, 1.0, a))
