"""The click-through rate, ties broken by the mean position.   Counts -> Labels

    relevance = (rate + T / mean position) / (1 + T), T = 1e-12
with the rate C / N of a document and its mean position over impressions. Many documents have the same rate, most often
0; of those, the one that the production ranker put higher is better. The term cannot reorder different rates of
documents with up to 900,000 impressions each: those are at least 1 / (N N') > T apart. With more impressions, rates
nearer than T, which no log can tell apart, are sorted by position.

32-bit labels lose the term. It is meant for sorting documents, not for rankers that learn from labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.counts.counts import SUMS, Counts, TakesCounts
from clickmix.types import Progress

TIE = 1e-12


@CORRECTIONS.register("ctr-then-rank", help="The click-through rate, with ties in the order of mean positions.")
@dataclass(frozen=True)
class RateThenRank(TakesCounts):
    """The click-through rate, then the mean position; there is nothing to set."""

    title: ClassVar[str] = "click-through rate, then position"

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> RateThenRank:
        """There is nothing to fit."""
        return self

    def label(self, counts: Counts) -> Labels:
        """The click-through rate of every document, and a trace of its mean position."""
        # Decimals, because the product can overflow integers, and sums of floats depend on the order of rows.
        depth = "CAST(sum(CAST(impressions AS DECIMAL(19, 0)) * CAST(position AS DECIMAL(19, 0))) AS DOUBLE)"
        return Labels(
            counts,
            f"SELECT query_id, doc_id, (CAST(clicks AS DOUBLE) / impressions + {TIE!r} * (impressions / depth)) / "
            f"(1.0 + {TIE!r}) AS relevance, impressions, clicks FROM ("
            f"SELECT query_id, doc_id, {depth} AS depth, {SUMS} FROM {counts.table} GROUP BY query_id, doc_id"
            ") AS documents",
        )
