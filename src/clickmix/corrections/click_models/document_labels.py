"""Labels from columns that were computed in Python.   columns -> Labels"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from clickmix.corrections.correction import Labels
from clickmix.counts.counts import SUMS, Counts
from clickmix.engines.engine import embedded
from clickmix.types import Floats


def document_labels(
    counts: Counts, query_id: NDArray[Any], doc_id: NDArray[Any], *, correction: str, **columns: Floats
) -> Labels:
    """Labels with these columns, one value per document: `relevance`, and perhaps `low` and `high`."""
    table = embedded(counts.engine, of=correction).take({"query_id": query_id, "doc_id": doc_id, **columns})
    more = "".join(f", max({column}) AS {column}" for column in columns if column != "relevance")
    return Labels(
        counts,
        f"SELECT query_id, doc_id, max(relevance) AS relevance, {SUMS}{more} FROM {counts.table} AS cells "
        f"JOIN {table} AS computed USING (query_id, doc_id) GROUP BY query_id, doc_id",
    )
