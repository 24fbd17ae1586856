"""The position-based click model as published, by EM: P(click at k) = attraction * examination_k.   Counts -> Labels

Craswell et al.: An Experimental Comparison of Click Position-Bias Models, WSDM 2008. Relevance is the attraction of a
document: the most likely one, given the examination. Examination is fitted by plain EM without trust, whose labels are
others: `plain-em --no-trust` weighs clicks by 1 / examination (IPS). Both agree on documents that stay at one position;
on those that move, a click deep down counts for more with IPS, and scatters more.

Clicks fix only products, so examination is 1 where it is highest. A document that nobody clicked has attraction 0.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from clickmix.corrections.correction import CORRECTIONS, check_positions_only
from clickmix.corrections.labels import Labels
from clickmix.corrections.parameters import BiasParameters, check_fits
from clickmix.corrections.plain_em import PlainEM
from clickmix.counts.counts import Counts
from clickmix.engines.choose import embedded
from clickmix.types import Columns, Floats, Progress

NAME = "pbm"
HALVINGS = 50  # of the interval from 0 to 1: beyond what labels can show
_table_numbers = itertools.count(1)


@CORRECTIONS.register(NAME, help="The attraction of the position-based click model, by EM.")
@dataclass(frozen=True)
class PositionBasedModel:
    """Settings of the position-based model: EM stops when a step gains no more than `tolerance` of the likelihood."""

    saves_model: ClassVar[bool] = True
    title: ClassVar[str] = "position-based model"

    tolerance: float = 1e-9
    max_steps: int = 2000

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> PositionBasedFit:
        """Estimate the examination of every position, from documents that move."""
        check_positions_only(counts, correction=NAME)
        embedded(counts.engine, of=NAME)
        em = PlainEM(trust=False, tolerance=self.tolerance, max_steps=self.max_steps).fit(counts, progress=progress)
        return PositionBasedFit(em.parameters, em.log_likelihoods, em.converged)


@dataclass(frozen=True, eq=False)
class PositionBasedFit:
    """The examination of every position, as alpha of the parameters, and the log-likelihood on the way."""

    parameters: BiasParameters
    log_likelihoods: tuple[float, ...]
    converged: bool

    @property
    def summary(self) -> str:
        """How it went, in a sentence."""
        how = "converged" if self.converged else "was still improving when it was stopped"
        return f"EM {how} after {len(self.log_likelihoods) - 1} steps. Examination is 1 where it is highest."

    def write(self, path: str | Path) -> None:
        """Write a parameters file."""
        self.parameters.write(path)

    def label(self, counts: Counts) -> Labels:
        """The most likely attraction of every document."""
        check_fits(self.parameters, counts, correction=NAME)
        table = f"attraction_{next(_table_numbers)}"
        embedded(counts.engine, of=NAME).register(table, _attractions(counts.cells(), self.parameters.alpha))
        return Labels(
            counts,
            "SELECT query_id, doc_id, max(relevance) AS relevance, CAST(sum(impressions) AS BIGINT) AS impressions, "
            f"CAST(sum(clicks) AS BIGINT) AS clicks FROM {counts.table} AS cells JOIN {table} AS attractions "
            "USING (query_id, doc_id) GROUP BY query_id, doc_id",
        )


def _attractions(cells: Columns, examination: Floats) -> Columns:
    """query_id, doc_id and relevance of the documents of some cells, in the order of query and document.

    Attraction a is where sum over a document's cells of c - (n - c) a g / (1 - a g) is 0, g the examination. The sum
    falls from the clicks at a = 0; if it is still above 0 at a = 1, attraction is 1.
    """
    query, doc = cells["query_id"], cells["doc_id"]
    new = np.ones(len(query), dtype=np.bool_)
    new[1:] = (query[1:] != query[:-1]) | (doc[1:] != doc[:-1])
    document = np.cumsum(new) - 1
    g = examination[cells["position"].astype(np.int64) - 1]
    skips = (cells["impressions"] - cells["clicks"]).astype(np.float64)
    clicks = np.bincount(document, cells["clicks"])
    low, high = np.zeros(len(clicks)), np.ones(len(clicks))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        p = middle[document] * g
        rising = clicks > np.bincount(document, skips * p / (1 - p))
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    attraction = np.where(clicks > 0, (low + high) / 2, 0.0)
    return {"query_id": query[new], "doc_id": doc[new], "relevance": attraction}
