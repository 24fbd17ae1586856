"""No correction: the plain click-through rate, for comparison.   Counts -> Labels"""

from __future__ import annotations

from dataclasses import dataclass

from clickmix.corrections.click_rates import PlacedCells, position_rates
from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.counts.counts import SUMS, Counts, TakesCounts
from clickmix.types import Floats, Progress


@CORRECTIONS.register("none", help="The plain click-through rate.")
@dataclass(frozen=True)
class NoCorrection(TakesCounts):
    """relevance = clicks / impressions over all positions, ignoring bias.

    >>> from clickmix import Counts
    >>> counts = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 2], [100, 100], [60, 20])
    >>> NoCorrection().label(counts).relevance.tolist()
    [0.6, 0.2]
    """

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> NoCorrection:
        """Nothing to fit."""
        return self

    def label(self, counts: Counts) -> Labels:
        """The click-through rate of every document."""
        return Labels(
            counts,
            "SELECT query_id, doc_id, CAST(clicks AS DOUBLE) / impressions AS relevance, impressions, clicks FROM ("
            f"SELECT query_id, doc_id, {SUMS} FROM {counts.table} GROUP BY query_id, doc_id)",
        )

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """The click rate of the position: no correction says nothing about documents."""
        return position_rates(seen)[asked.place]
