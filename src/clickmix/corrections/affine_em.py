r"""The E- and M-steps of EM for alpha and beta, on counts.   cells, relevance -> parameters, targets

Relevance R is drawn again at every impression, with the document's probability r. At position k people click with
probability z1 = alpha + beta if relevant, z0 = beta if not. The data are counts: n impressions and c clicks of a cell.

    E   P(R | click)    = r z1 / (r z1 + (1 - r) z0)
        P(R | no click) = r (1 - z1) / (r (1 - z1) + (1 - r) (1 - z0))
    M   z1 = sum c P(R | click) / sum [c P(R | click) + (n - c) P(R | no click)], over the cells of position k;
        z0 the same with 1 - P
        target of a document = sum [c P(R | click) + (n - c) P(R | no click)] / sum n, over its cells

If z1 came out below z0, the best fit with z1 >= z0 has both equal: alpha is as small as allowed. Without trust (IPS),
people always click relevant documents that they examine and never others: z0 = 0, and z1 is the examination theta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.corrections.correction import check_positions_only
from clickmix.corrections.parameters import LEAST_ALPHA, BiasParameters
from clickmix.counts.counts import Counts
from clickmix.engines.engine import embedded
from clickmix.errors import InputError
from clickmix.registry import Option
from clickmix.types import Floats, Ints

# Where the authors of the paper start, at every position.
START_ALPHA, START_BETA = 1 - 1e-3, 1e-6
CERTAIN = 1e-9  # predicted relevance stays this far from 0 and 1
LEAST_SKIPS, LEAST_CLICKS = 1e-16, 1e-300  # avoids division by 0 and log(0) for rates rounded to 1 and 0
TRUST = Option("trust", "Whether people also click documents that are not relevant (AC), or never do (IPS).", type=bool)
BLOCK = 16_384  # cells at a time: intermediate results stay in the cache, which is three times as fast


@dataclass(frozen=True, eq=False)
class CodedCells:
    """A log for EM, one row per document and position: codes of both from 0, impressions, clicks.

    `query_id` and `doc_id` name the documents, those of a query together.
    """

    query_id: NDArray[Any]
    doc_id: NDArray[Any]
    document: Ints
    position: Ints
    impressions: Floats
    clicks: Floats

    @property
    def documents(self) -> int:
        """How many documents."""
        return len(self.doc_id)

    @property
    def positions(self) -> int:
        """How many positions, down to the last one shown."""
        return int(self.position.max()) + 1

    @cached_property
    def position_totals(self) -> tuple[Floats, Floats]:
        """Clicks and impressions of each position."""
        return self.by_position(self.clicks), self.by_position(self.impressions)

    def blocks(self) -> Iterator[slice]:
        """Slices that cover all cells."""
        return (slice(first, first + BLOCK) for first in range(0, len(self.clicks), BLOCK))

    def by_position(self, values: Floats) -> Floats:
        """Sums over the cells of each position."""
        return np.asarray(np.bincount(self.position, values, self.positions), dtype=np.float64)

    def by_document(self, values: Floats) -> Floats:
        """Sums over the cells of each document."""
        return np.asarray(np.bincount(self.document, values, self.documents), dtype=np.float64)


def read_cells(counts: Counts, *, correction: str, every_position: bool = True) -> CodedCells:
    """Read all cells of a log; `every_position` refuses a log that skips one. `correction` is named in messages."""
    check_positions_only(counts, correction=correction)
    embedded(counts.engine, of=correction)
    columns = counts.cells()
    query, doc = columns["query_id"], columns["doc_id"]
    new = np.ones(len(query), dtype=np.bool_)
    new[1:] = (query[1:] != query[:-1]) | (doc[1:] != doc[:-1])  # cells come in the order of query and document
    cells = CodedCells(
        query[new],
        doc[new],
        np.cumsum(new) - 1,
        columns["position"].astype(np.int64) - 1,
        columns["impressions"].astype(np.float64),
        columns["clicks"].astype(np.float64),
    )
    unseen = np.flatnonzero(cells.position_totals[1] == 0)
    if every_position and len(unseen):
        raise InputError(
            f"Position {unseen[0] + 1} was never shown but position {cells.positions} was, so its parameters cannot be "
            "estimated. Use a log with every position down to the last."
        )
    return cells


def start_parameters(positions: int, *, trust: bool) -> BiasParameters:
    """Where EM starts; without trust, beta is 0 and stays 0."""
    return BiasParameters(np.full(positions, START_ALPHA), np.full(positions, START_BETA if trust else 0.0))


def e_step(cells: CodedCells, relevance: Floats, parameters: BiasParameters) -> tuple[Floats, Floats]:
    """Per cell, the expected relevant clicks and skips: c P(R | click) and (n - c) P(R | no click)."""
    certain = np.clip(relevance, CERTAIN, 1 - CERTAIN)
    z0 = parameters.beta
    z1 = np.minimum(parameters.alpha + z0, 1.0)
    relevant_clicks, relevant_skips = np.empty_like(cells.clicks), np.empty_like(cells.clicks)
    for rows in cells.blocks():
        r, k = certain[cells.document[rows]], cells.position[rows]
        c, n = cells.clicks[rows], cells.impressions[rows]
        clicked = r * z1[k]
        rate = clicked + (1 - r) * z0[k]  # never 0: neither r nor z1 is
        relevant_clicks[rows] = c * (clicked / rate)
        relevant_skips[rows] = (n - c) * np.minimum((r - clicked) / np.maximum(1 - rate, LEAST_SKIPS), 1.0)
    return relevant_clicks, relevant_skips


def m_step(cells: CodedCells, clicked: Floats, skipped: Floats, *, trust: bool) -> BiasParameters:
    """The parameters that make the expected counts of the E-step most likely."""
    relevant_clicks, relevant = cells.by_position(clicked), cells.by_position(clicked + skipped)
    z1 = _ratio(relevant_clicks, relevant)
    if not trust:
        return BiasParameters(np.clip(z1, LEAST_ALPHA, 1.0), np.zeros(cells.positions))
    clicks, shown = cells.position_totals
    z0 = _ratio(np.maximum(clicks - relevant_clicks, 0.0), shown - relevant)
    tied = z1 - z0 < LEAST_ALPHA
    z0 = np.where(tied, np.minimum(_ratio(clicks, shown), 1 - LEAST_ALPHA), z0)
    return BiasParameters(np.where(tied, LEAST_ALPHA, np.minimum(z1, 1.0) - z0), z0)


def targets(cells: CodedCells, clicked: Floats, skipped: Floats) -> Floats:
    """The expected share of relevant impressions of each document."""
    return cells.by_document(clicked + skipped) / cells.by_document(cells.impressions)


def log_likelihood(cells: CodedCells, relevance: Floats, parameters: BiasParameters) -> float:
    """sum of c log p + (n - c) log(1 - p) with p = alpha r + beta."""
    certain, total = np.clip(relevance, CERTAIN, 1 - CERTAIN), 0.0
    for rows in cells.blocks():
        r, k = certain[cells.document[rows]], cells.position[rows]
        total += _terms(cells.clicks[rows], cells.impressions[rows], parameters.alpha[k] * r + parameters.beta[k])
    return total


def log_likelihood_of_positions(cells: CodedCells) -> float:
    """The log-likelihood of one click rate per position, whatever the document."""
    clicks, shown = cells.position_totals
    return _terms(clicks, shown, clicks / shown)


def _terms(c: Floats, n: Floats, p: Floats) -> float:
    # Rates of 0 and 1 occur, with 0 clicks or 0 skips: then the term is 0.
    log_p, log_skip = np.log(np.maximum(p, LEAST_CLICKS)), np.log1p(-np.minimum(p, 1 - LEAST_SKIPS))
    return float((c * log_p + (n - c) * log_skip).sum())


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole, at most 1; 0 where whole is 0."""
    return np.minimum(np.divide(part, whole, out=np.zeros_like(part), where=whole > 0), 1.0)
