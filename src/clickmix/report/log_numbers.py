"""A log in a few numbers for its report. The engine computes them where the counts are.   counts, labels -> report"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.corrections.correction import Labels
from clickmix.engines.engine import Engine
from clickmix.types import Ints

BINS = 20  # bins of labels and click-through rates between 0 and 1
EXAMPLES = 5
LEAST_MOVE = 0.2  # least distance between click-through rate and label that is worth showing
DOUBT = 10  # impressions without a click, added so that one click of one impression is not a rate of 100%


@dataclass(frozen=True)
class LabelTable:
    """Labels in a table of the engine, and whether they have intervals."""

    engine: Engine
    name: str
    intervals: bool


@dataclass(frozen=True)
class LabelBins:
    """How many documents have a label, and a click-through rate, in each of the equal bins between 0 and 1."""

    labels: Ints
    rates: Ints
    mean: float
    interval: float | None  # mean width of the labels' intervals, where the correction gives them

    @property
    def documents(self) -> int:
        """All documents."""
        return int(self.labels.sum())

    @property
    def low(self) -> float:
        """The share of labels below 0.1."""
        return float(self.labels[: BINS // 10].sum() / self.documents)

    @property
    def high(self) -> float:
        """The share of labels of 0.9 or more."""
        return float(self.labels[-BINS // 10 :].sum() / self.documents)

    @property
    def sure(self) -> float:
        """The share of labels near 0 or 1."""
        return self.low + self.high


@dataclass(frozen=True)
class FarLabel:
    """A document whose label is far from its click-through rate."""

    query_id: Any
    doc_id: Any
    relevance: float
    impressions: int
    clicks: int
    interval: tuple[float, float] | None = None


@contextlib.contextmanager
def labels_at_hand(labels: Labels) -> Iterator[LabelTable]:
    """Keep the labels of shown documents in a table of the engine, so that they are computed only once."""
    engine = labels.counts.engine
    table = engine.keep(f"SELECT * FROM ({labels.sql}) AS labels WHERE impressions > 0")
    try:
        yield LabelTable(engine, table, "low" in engine.types(table))
    finally:
        engine.forget(table)


def read_label_bins(labels: LabelTable) -> LabelBins:
    """Ask the engine how labels are distributed, and the click-through rates of the same documents."""
    # Decimals: sums of floats depend on the order of rows.
    width = "sum(CAST(high - low AS DECIMAL(38, 12)))" if labels.intervals else "0"
    rate = _bin("CAST(clicks AS DOUBLE) / impressions")
    rows = labels.engine.rows(
        f"SELECT {_bin('relevance')} AS label_bin, {rate} AS rate_bin, count(*), "
        f"sum(CAST(relevance AS DECIMAL(38, 12))), {width} FROM {labels.name} "
        "GROUP BY label_bin, rate_bin ORDER BY label_bin, rate_bin"
    )
    bins = np.array([[int(label), int(rate_in), int(documents)] for label, rate_in, documents, _, _ in rows])
    labels_in, rates_in = (np.bincount(bins[:, i], bins[:, 2], BINS).astype(np.int64) for i in (0, 1))
    documents = int(bins[:, 2].sum())
    mean, interval = (sum(float(row[i]) for row in rows) / documents for i in (3, 4))
    return LabelBins(labels_in, rates_in, mean, interval if labels.intervals else None)


def read_far_labels(labels: LabelTable, *, among: str = "TRUE") -> tuple[list[FarLabel], list[FarLabel]]:
    """The labels furthest from click-through rates: much clicked but not relevant, little clicked but relevant.

    `among` is an SQL condition that chooses queries.
    """
    down = f"CAST(clicks AS DOUBLE) / (impressions + {DOUBT}) - relevance"
    up = "relevance - CAST(clicks AS DOUBLE) / impressions"
    return _furthest(labels, down, f"relevance < 0.5 AND {among}"), _furthest(
        labels, up, f"relevance >= 0.5 AND {among}"
    )


def _furthest(labels: LabelTable, distance: str, where: str) -> list[FarLabel]:
    ends = "low, high" if labels.intervals else "NULL, NULL"
    rows = labels.engine.rows(
        f"SELECT query_id, doc_id, relevance, impressions, clicks, {ends} FROM {labels.name} "
        f"WHERE {where} AND {distance} >= {LEAST_MOVE} "
        f"ORDER BY round(CAST({distance} AS DECIMAL(38, 12)), 6) DESC, query_id, doc_id LIMIT {EXAMPLES}"
    )
    return [
        FarLabel(query, doc, float(relevance), int(n), int(c), None if low is None else (float(low), float(high)))
        for query, doc, relevance, n, c, low, high in rows
    ]


def _bin(expression: str) -> str:
    return f"CAST(least(greatest(floor(({expression}) * {BINS}), 0), {BINS - 1}) AS BIGINT)"


def thinned(count: int, most: int) -> Sequence[int]:
    """Which of `count` things to show if only `most` fit: the first close together, the later ones further apart.

    >>> list(thinned(5, 8)), list(thinned(100, 6))
    ([0, 1, 2, 3, 4], [0, 2, 5, 15, 39, 99])
    """
    if count <= most:
        return range(count)
    spread = np.geomspace(1, count, most)
    chosen = np.maximum(np.round(spread).astype(int) - 1, np.arange(most))
    return [int(i) for i in chosen]
