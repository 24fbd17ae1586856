"""Products: click rate = attraction of the document * examination of its cell.   counts -> both factors

A cell is whatever examination depends on: the position, or the position and the nearest click above it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import xlog1py, xlogy

from clickmix.corrections.click_models.em import Point, Step, run_em
from clickmix.corrections.squarem import Ascent
from clickmix.errors import InputError
from clickmix.lab.users.sessions import Booleans, check_clicked, totals
from clickmix.types import Floats, Ints

DENSE = 4  # with up to this many pairs of document and cell per row, a table of all pairs is quicker than sorting


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Impressions and clicks, one row per document and cell, for `documents` documents and `cells` cells."""

    document: Ints
    cell: Ints
    impressions: Floats
    clicks: Floats
    documents: int
    cells: int

    @classmethod
    def of(
        cls, document: Ints, cell: Ints, impressions: Ints, clicks: Ints, *, documents: int, cells: int
    ) -> CellCounts:
        """Add up rows with the same document and cell; leave out those never shown."""
        pair = document.astype(np.int64) * cells + cell
        if (size := documents * cells) <= DENSE * len(pair):
            pairs = np.arange(size)
        else:
            pairs, pair = np.unique(pair, return_inverse=True)
        n, c = totals(pair, impressions, size=len(pairs)), totals(pair, clicks, size=len(pairs))
        pairs, n, c = pairs[n > 0], n[n > 0], c[n > 0]
        return cls(
            document=pairs // cells, cell=pairs % cells, impressions=n, clicks=c, documents=documents, cells=cells
        )

    def of_clicked_documents(self) -> CellCounts:
        """The same without documents that nobody clicked: they have attraction 0 and say nothing about examination."""
        kept = totals(self.document, self.clicks, size=self.documents)[self.document] > 0
        return replace(
            self,
            document=self.document[kept],
            cell=self.cell[kept],
            impressions=self.impressions[kept],
            clicks=self.clicks[kept],
        )

    def connected(self) -> Booleans:
        """Which cells are linked with cell 0 by clicked documents shown in both, directly or through other cells."""
        counts = self.of_clicked_documents()
        size = self.cells + self.documents
        edges = coo_array((np.ones(len(counts.cell)), (counts.cell, self.cells + counts.document)), shape=(size, size))
        _, component = connected_components(edges, directed=False)
        linked: Booleans = component[: self.cells] == component[0]
        return linked


def linked_cells(counts: CellCounts, *, positions: int) -> Booleans:
    """(positions, cells of each position): which are connected with cell 0; refuses a position with none."""
    check_clicked(int(counts.clicks.sum()))
    linked = counts.connected().reshape(positions, -1)
    unlinked = np.flatnonzero(~np.any(linked, axis=1)) + 1
    if len(unlinked):
        raise InputError(
            f"Position(s) {', '.join(map(str, unlinked))}: no clicked document links them with position 1, so how "
            "often they are examined cannot be separated from how attractive their documents are. Fit a log in which "
            "documents move, or leave these positions out."
        )
    return linked


@dataclass(frozen=True, eq=False)
class Factors:
    """Both factors, and the expected impressions each rests on: those examined, and those that attract."""

    attraction: Floats
    examined: Floats
    examination: Floats
    attracted: Floats
    ascent: Ascent[Point]


def fit_factors(counts: CellCounts, *, tolerance: float, max_steps: int) -> Factors:
    """The most likely factors with examination 1 in cell 0.

    The log-likelihood is concave in log attraction and log examination, so there is only one maximum.
    """
    D = counts.documents
    start = np.full(D + counts.cells, 0.5)
    start[D] = 1.0
    path = run_em(_em_step(counts.of_clicked_documents()), start, tolerance=tolerance, max_steps=max_steps)
    n = counts.impressions
    shown = totals(counts.document, n, size=D)
    clicked = totals(counts.document, counts.clicks, size=D)
    attraction = np.where(shown > 0, np.where(clicked > 0, path.end.probabilities[:D], 0.0), np.nan)
    examination = path.end.probabilities[D:]
    return Factors(
        attraction=attraction,
        examined=totals(counts.document, n * examination[counts.cell], size=D),
        examination=examination,
        attracted=totals(counts.cell, n * attraction[counts.document], size=counts.cells),
        ascent=path,
    )


def _em_step(counts: CellCounts) -> Step:
    """One EM step on (a of each document, g of each cell), with p = a g the click rate of a row.

    A clicked result was examined and attracted. Without a click, P(attracted) = a (1 - g) / (1 - p) and P(examined) =
    g (1 - a) / (1 - p).
    """
    d, cell, n, c = counts.document, counts.cell, counts.impressions, counts.clicks
    D = counts.documents
    shown = np.r_[totals(d, n, size=D), totals(cell, n, size=counts.cells)]

    def step(parameters: Floats) -> tuple[Floats, float]:
        a, g = parameters[:D][d], parameters[D:][cell]
        p = a * g
        unclicked = np.divide(n - c, 1 - p, out=np.zeros(len(p)), where=n > c)
        attracted = totals(d, c + unclicked * a * (1 - g), size=D)
        examined = totals(cell, c + unclicked * g * (1 - a), size=counts.cells)
        after = np.divide(np.r_[attracted, examined], shown, out=parameters.copy(), where=shown > 0)
        after[D] = 1.0  # EM would stay there, except for rounding
        return after, float(np.sum(xlogy(c, p) + xlog1py(n - c, -p)))

    return step
