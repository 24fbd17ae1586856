"""No correction: the click-through rate as it is, for comparison.   Counts -> Labels"""

from __future__ import annotations

from dataclasses import dataclass

from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.labels import Labels
from clickmix.counts.counts import Counts
from clickmix.types import Progress


@CORRECTIONS.register("none", help="The click-through rate as it is.")
@dataclass(frozen=True)
class NoCorrection:
    """relevance = clicks / impressions, all positions together: what a log says if nobody thinks about bias."""

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> NoCorrection:
        """There is nothing to fit."""
        return self

    def label(self, counts: Counts) -> Labels:
        """The click-through rate of every document."""
        return Labels(
            counts,
            "SELECT query_id, doc_id, CAST(clicks AS DOUBLE) / impressions AS relevance, impressions, clicks FROM ("
            "SELECT query_id, doc_id, CAST(sum(impressions) AS BIGINT) AS impressions, "
            f"CAST(sum(clicks) AS BIGINT) AS clicks FROM {counts.table} GROUP BY query_id, doc_id)",
        )
