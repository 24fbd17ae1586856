"""Whether two halves of a log give the same labels.   labels, labels -> Agreement

Documents seen in both halves are compared, each weighted by its impressions in the half where it has fewer: what people
see often matters most, and a document seen once in a half says little there. Labels of both halves follow the position,
so part of the correlation says only that documents stay where they are; `beyond_position` leaves the mean label of each
position out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.corrections.labels import Labels
from clickmix.types import Floats


@dataclass(frozen=True)
class Agreement:
    """Labels of two halves: correlation, the same beyond position, mean absolute difference; over `documents`.

    A correlation is None where one half gives every document the same label.
    """

    documents: int
    correlation: float | None
    beyond_position: float | None
    difference: float


def agreement(first: Labels, second: Labels) -> Agreement | None:
    """How far the labels of two halves agree; None where no document is in both. Both live in one engine."""
    engine, tables = first.counts.engine, (first.counts.table, second.counts.table)
    seen = " UNION ALL ".join(f"SELECT query_id, doc_id, position, impressions FROM {table}" for table in tables)
    columns = engine.fetch(
        "SELECT a.relevance AS one, b.relevance AS other, least(a.impressions, b.impressions) AS weight, place "
        f"FROM ({first.sql}) AS a JOIN ({second.sql}) AS b USING (query_id, doc_id) JOIN (SELECT query_id, doc_id, "
        "CAST(round(sum(CAST(position AS DOUBLE) * impressions) / sum(impressions)) AS BIGINT) AS place "
        f"FROM ({seen}) GROUP BY query_id, doc_id) USING (query_id, doc_id) ORDER BY query_id, doc_id"
    )
    one, other, weight = (np.asarray(columns[key], dtype=np.float64) for key in ("one", "other", "weight"))
    if not len(one):
        return None
    place = np.unique(columns["place"], return_inverse=True)[1]
    shown = np.bincount(place, weight)
    one_beyond, other_beyond = (
        values - (np.bincount(place, weight * values) / shown)[place] for values in (one, other)
    )
    return Agreement(
        len(one),
        _correlation(one, other, weight),
        _correlation(one_beyond, other_beyond, weight),
        float(weight @ np.abs(one - other) / weight.sum()),
    )


def _correlation(a: Floats, b: Floats, weight: Floats) -> float | None:
    w = weight / weight.sum()
    a, b = a - w @ a, b - w @ b
    spread = float(np.sqrt((w @ a**2) * (w @ b**2)))
    return float(w @ (a * b)) / spread if spread > 1e-12 else None
