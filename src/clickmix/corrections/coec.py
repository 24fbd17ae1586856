"""Clicks over expected clicks (COEC): those of the average document at the same positions.   Counts -> Labels

    positions       estimate = C / sum over a document's cells of n m_k
    best-position   estimate = C / (N m_b): all impressions charged to the best position b, as OpenSearch does
where m_k is the log's click-through rate at position k, and C and N are the document's clicks and impressions. An
estimate of 1 means as many clicks as the average document gets there. Labels are from 0 to 1, so clipping to 1 makes
all better documents equal; `estimate` and clipping to 20 keep them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from clickmix.corrections.click_rates import PlacedCells, position_rates
from clickmix.corrections.clipping import CLIP, Clip, checked_clip, clip_title, relevance_sql
from clickmix.corrections.correction import CORRECTIONS, Labels, check_positions_only
from clickmix.corrections.empirical_bayes import check_known
from clickmix.counts.counts import SUMS, Counts, TakesCounts
from clickmix.engines.sql import listed
from clickmix.errors import SettingError
from clickmix.types import Floats, Progress

Charge = Literal["positions", "best-position"]
CHARGES: tuple[Charge, ...] = get_args(Charge)


@dataclass(frozen=True)
class ClicksOverExpected(TakesCounts):
    """Settings of COEC: whether to charge impressions to their positions or to the document's best position.

    >>> from clickmix import Counts
    >>> counts = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 2], [100, 100], [60, 20])
    >>> ClicksOverExpected().fit(counts).label(counts).relevance.tolist()
    [1.0, 1.0]
    """

    charge: Charge = "positions"
    clip: Clip = "one"

    def __post_init__(self) -> None:
        checked_clip(self.clip)
        if self.charge not in CHARGES:
            raise SettingError(f"charge {self.charge!r}: expected one of {', '.join(CHARGES)}.")

    @property
    def title(self) -> str:
        """The name in tables."""
        return clip_title("coec" if self.charge == "positions" else "coec by best position", self.clip)

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> FittedClicksOverExpected:
        """Compute the click-through rate of each position of the log."""
        check_positions_only(counts, correction="coec")
        rows = counts.engine.rows(
            f"SELECT position, CAST(sum(clicks) AS BIGINT), CAST(sum(impressions) AS BIGINT) FROM {counts.table} "
            "GROUP BY position ORDER BY position"
        )
        return FittedClicksOverExpected(self, {position: clicks / shown for position, clicks, shown in rows})


@dataclass(frozen=True)
class FittedClicksOverExpected(TakesCounts):
    """COEC with the click-through rate of every position of a log."""

    settings: ClicksOverExpected
    rates: Mapping[int, float]

    def label(self, counts: Counts) -> Labels:
        """Clicks over expected clicks of every document; 0 if no clicks are expected."""
        check_positions_only(counts, correction="coec")
        check_known(counts, self.rates, correction="coec")
        rows = listed(f"({position}, CAST({rate!r} AS DOUBLE))" for position, rate in self.rates.items())
        return Labels(
            counts,
            f"WITH rates(position, rate) AS (VALUES {rows}) "
            f"SELECT query_id, doc_id, {relevance_sql(self.settings.clip)} AS relevance, impressions, clicks, estimate "
            "FROM (SELECT query_id, doc_id, CASE WHEN expected > 0 THEN clicks / expected ELSE 0.0 END AS estimate, "
            f"impressions, clicks FROM ({self._expected(counts)}) AS documents) AS estimates",
        )

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """The click rate of the asked position times the estimate, which is 1 for documents that were not seen."""
        rate = position_rates(seen)
        charged = rate[seen.place]
        if self.settings.charge == "best-position":
            best = np.full(seen.documents, len(rate))
            np.minimum.at(best, seen.document, seen.place)  # without context, places are positions in order
            charged = rate[best[seen.document]]
        expected = seen.by_document(seen.impressions * charged)
        estimate = np.where(expected > 0, seen.by_document(seen.clicks) / np.maximum(expected, 1e-300), 1.0)
        return np.asarray(np.minimum(rate[asked.place] * estimate[asked.document], 1.0))

    def _expected(self, counts: Counts) -> str:
        """SQL: impressions, clicks and expected clicks of every document. Decimals add up the same in any order."""
        cells = counts.table
        if self.settings.charge == "best-position":
            return (
                "SELECT query_id, doc_id, impressions, clicks, impressions * rate AS expected FROM ("
                f"SELECT query_id, doc_id, min(position) AS position, {SUMS} FROM {cells} GROUP BY query_id, doc_id"
                ") AS best JOIN rates USING (position)"
            )
        return (
            f"SELECT query_id, doc_id, {SUMS}, CAST(sum(CAST(impressions * rate AS DECIMAL(38, 12))) AS DOUBLE) "
            f"AS expected FROM {cells} AS cells JOIN rates USING (position) GROUP BY query_id, doc_id"
        )


@CORRECTIONS.register(
    "coec", help="Clicks divided by those of the average document at the same positions.", options=(CLIP,)
)
def _coec(*, clip: Clip = "one") -> ClicksOverExpected:
    return ClicksOverExpected("positions", clip)


@CORRECTIONS.register(
    "coec-best-position",
    help="The same, with all impressions charged to the document's best position.",
    options=(CLIP,),
)
def _coec_best_position(*, clip: Clip = "one") -> ClicksOverExpected:
    return ClicksOverExpected("best-position", clip)
