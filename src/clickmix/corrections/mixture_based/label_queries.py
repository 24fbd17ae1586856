"""Labels if queries differ: all documents of a query show its attention.   Counts -> Labels

The engine sends the cells of some queries at a time, as numbers, and gets their labels back.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from clickmix.corrections.correction import Labels
from clickmix.counts.counts import Counts
from clickmix.engines.sql import aliases, listed
from clickmix.groups.places import Histogram, Place, read_histogram
from clickmix.groups.sample import cells_query, number_kinds, part_of_queries
from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.label import Documents, label_documents
from clickmix.mixtures.log_model import LogModel
from clickmix.types import Columns

MOST_CELLS = 8_000_000  # cells at a time: about half a gigabyte
NUMPY_HAS = {sign + size + "INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")} | {"INTEGER", "UINTEGER"}


def label_queries(model: LogModel, counts: Counts, place_of: Callable[[Place], int]) -> Labels:
    """Labels of all documents; `place_of` gives the number of the model's place for a place of the log."""
    engine, keys = counts.engine, listed([*aliases(counts.keys), "impressions", "clicks"])
    histogram, kinds = read_histogram(counts), number_kinds(counts)
    known = _kinds(model, histogram, place_of)
    # Only DuckDB gives ids that are numbers back in the same type; other ids are numbered.
    types = engine.types(counts.table)
    keep_ids = engine.embedded is not None and {types["query_id"], types["doc_id"]} <= NUMPY_HAS
    documents = None if keep_ids else _numbered(counts)
    source = (
        cells_query(counts) if documents is None else f"{cells_query(counts)} JOIN {documents} USING (query_id, doc_id)"
    )
    query, document = ("query_id", "doc_id") if documents is None else ("query", "document")
    parts = -(-int(histogram.documents.sum()) // MOST_CELLS)
    tables = []
    for part in range(parts):
        found = engine.fetch(
            f"SELECT {query} AS query, {document} AS document, kind FROM {source} JOIN {kinds} USING ({keys}) "
            f"{part_of_queries(counts, part, parts)} ORDER BY query, document"
        )
        if len(found["kind"]):
            tables.append(engine.take(_labelled(model, known, found)))
            if parts > 1:  # the engine can put it on disk
                tables[-1] = engine.keep(f"SELECT * FROM {tables[-1]}")
    labelled = " UNION ALL ".join(f"SELECT * FROM {table}" for table in tables)
    ids = "query AS query_id, document AS doc_id" if documents is None else "query_id, doc_id"
    named = f"({labelled}) AS labelled" + ("" if documents is None else f" JOIN {documents} USING (query, document)")
    return Labels(counts, f"SELECT {ids}, relevance, impressions, clicks, low, high FROM {named}")


def _numbered(counts: Counts) -> str:
    """A table with a number for each query and document."""
    return counts.engine.keep(
        "SELECT *, row_number() OVER (ORDER BY query_id, doc_id) - 1 AS document, "
        "dense_rank() OVER (ORDER BY query_id) - 1 AS query FROM "
        f"(SELECT DISTINCT query_id, doc_id FROM {counts.table}) AS documents"
    )


def _kinds(model: LogModel, histogram: Histogram, place_of: Callable[[Place], int]) -> Cells:
    """Every (place, impressions, clicks) as a pattern of one cell."""
    place = np.array([place_of(each) for each in histogram.places])[histogram.place]
    every = np.arange(len(place))
    n, c, documents = (
        column.astype(np.float64) for column in (histogram.impressions, histogram.clicks, histogram.documents)
    )
    return Cells(model.model.places, every, place, n, c, every, every, documents, len(every))


def _labelled(model: LogModel, kinds: Cells, columns: Columns) -> Columns:
    query, document, kind = columns["query"], columns["document"], columns["kind"]
    other_query = query[1:] != query[:-1]
    first = np.concatenate([[0], np.flatnonzero(other_query | (document[1:] != document[:-1])) + 1])
    first_document = np.concatenate([[0], np.flatnonzero(np.diff(query[first])) + 1, [len(first)]])
    cells = np.concatenate([first, [len(kind)]])
    found = label_documents(model.model, Documents(kinds, kind, cells, first_document))
    sums = [np.add.reduceat(column.astype(np.int64)[kind], first) for column in (kinds.impressions, kinds.clicks)]
    return {
        "query": query[first],
        "document": document[first],
        "relevance": found.relevance,
        "impressions": sums[0],
        "clicks": sums[1],
        "low": found.low,
        "high": found.high,
    }
