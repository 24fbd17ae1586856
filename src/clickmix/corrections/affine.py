"""Affine correction (AC) with given parameters, the paper's Ideal-AC if they are the true ones.   Counts -> Labels

    estimate = sum over a document's cells of (c - n beta_k) / alpha_k, divided by the sum of n
with n impressions and c clicks at position k: the mean over impressions of (click - beta_k) / alpha_k. With the true
parameters it is unbiased wherever the document was shown; it can be below 0 or above 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clickmix.corrections.clipping import CLIP, Clip, checked_clip, clip_title, relevance_sql
from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.corrections.parameters import PARAMETERS, BiasParameters, check_fits, given_bias
from clickmix.counts.counts import SUMS, Counts, TakesCounts
from clickmix.engines.sql import listed
from clickmix.types import Progress


@dataclass(frozen=True)
class AffineCorrection(TakesCounts):
    """relevance = (click-through rate - beta) / alpha, with known alpha and beta of every position.

    >>> from clickmix import Counts, BiasParameters
    >>> counts = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 2], [100, 100], [60, 20])
    >>> AffineCorrection(BiasParameters([0.5, 0.4], [0.2, 0.1])).label(counts).relevance.round(2).tolist()
    [0.8, 0.25]
    """

    parameters: BiasParameters
    clip: Clip = "one"

    def __post_init__(self) -> None:
        checked_clip(self.clip)

    @property
    def title(self) -> str:
        """The name in tables."""
        return clip_title("affine", self.clip)

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> AffineCorrection:
        """Nothing to fit: the parameters are given."""
        return self

    def label(self, counts: Counts) -> Labels:
        """Estimate and clipped relevance of every document."""
        return affine_labels(counts, self.parameters, clip=self.clip, correction="affine")


@CORRECTIONS.register(
    "affine", help="(click-through rate - beta) / alpha, with parameters you supply.", options=(PARAMETERS, CLIP)
)
def _affine(*, parameters: Any = None, clip: Clip = "one") -> AffineCorrection:
    return AffineCorrection(given_bias(parameters), clip)


def affine_labels(counts: Counts, parameters: BiasParameters, *, clip: Clip, correction: str) -> Labels:
    """Labels by affine correction; `correction` names it in messages."""
    check_fits(parameters, counts, correction=correction)
    rows = listed(
        f"({k}, CAST({alpha!r} AS DOUBLE), CAST({beta!r} AS DOUBLE))"
        for k, (alpha, beta) in enumerate(zip(parameters.alpha.tolist(), parameters.beta.tolist(), strict=True), 1)
    )
    # Sums of decimals, because sums of floats depend on the order of rows.
    term = "CAST((cells.clicks - cells.impressions * beta) / alpha AS DECIMAL(38, 12))"
    return Labels(
        counts,
        f"WITH parameters(position, alpha, beta) AS (VALUES {rows}) "
        f"SELECT query_id, doc_id, {relevance_sql(clip)} AS relevance, impressions, clicks, estimate FROM ("
        f"SELECT query_id, doc_id, CAST(sum({term}) AS DOUBLE) / sum(cells.impressions) AS estimate, {SUMS} "
        f"FROM {counts.table} AS cells JOIN parameters USING (position) GROUP BY query_id, doc_id) AS documents",
    )
