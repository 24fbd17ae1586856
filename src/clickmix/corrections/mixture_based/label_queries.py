"""Labels where queries differ: what is known of a query's attention comes from all its documents.   Counts -> Labels

Cells of some queries at a time come from the engine, as numbers without ids, and labels go back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from clickmix.corrections.labels import Labels
from clickmix.counts.counts import Counts
from clickmix.engines.sql import aliases, listed
from clickmix.groups.places import Place, places_of
from clickmix.groups.sample import cells_query
from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.label import label
from clickmix.mixtures.log_model import LogModel
from clickmix.types import Columns

MOST_CELLS = 4_000_000  # at a time: about half a gigabyte


def label_queries(model: LogModel, counts: Counts, place_of: Callable[[Place], int]) -> Labels:
    """Labels of all documents; `place_of` gives the number of the model's place for a place of the log."""
    engine = counts.engine
    documents = engine.keep(
        "SELECT *, row_number() OVER (ORDER BY query_id, doc_id) - 1 AS document, "
        "dense_rank() OVER (ORDER BY query_id) - 1 AS query FROM "
        "(SELECT query_id, doc_id, CAST(sum(impressions) AS BIGINT) AS impressions, CAST(sum(clicks) AS BIGINT) "
        f"AS clicks, count(*) AS cells FROM {counts.table} GROUP BY query_id, doc_id) AS documents"
    )
    parts = [
        engine.take(_labelled(model, _cells(counts, documents, low, high), counts, place_of))
        for low, high in _ranges(counts, documents)
    ]
    labelled = " UNION ALL ".join(f"SELECT document, relevance, low, high FROM {part}" for part in parts)
    return Labels(
        counts,
        "SELECT query_id, doc_id, relevance, impressions, clicks, low, high "
        f"FROM {documents} AS documents JOIN ({labelled}) AS labelled USING (document)",
    )


def _ranges(counts: Counts, documents: str) -> Iterator[tuple[int, int]]:
    """Numbers of queries, from and to, that have about as many cells as are looked at in one go."""
    ((cells, queries),) = counts.engine.rows(
        f"SELECT CAST(sum(cells) AS BIGINT), CAST(max(query) AS BIGINT) + 1 FROM {documents}"
    )
    parts = -(-int(cells) // MOST_CELLS)
    edges = [int(queries) * i // parts for i in range(parts + 1)]
    yield from itertools.pairwise(edges)


def _cells(counts: Counts, documents: str, low: int, high: int) -> Columns:
    """Cells of queries from number `low` up to but not including `high`, in order of document."""
    keys = listed(aliases(counts.keys))
    return counts.engine.fetch(
        f"SELECT query, document, {keys}, cells.impressions AS impressions, cells.clicks AS clicks "
        f"FROM {cells_query(counts)} JOIN (SELECT query_id, doc_id, document, query FROM {documents} "
        f"WHERE query >= {low} AND query < {high}) AS numbered USING (query_id, doc_id) ORDER BY document, {keys}"
    )


def _labelled(model: LogModel, columns: Columns, counts: Counts, place_of: Callable[[Place], int]) -> Columns:
    places, place = places_of(columns, counts.context)
    number = np.array([place_of(each) for each in places])
    documents, first, document = np.unique(columns["document"], return_index=True, return_inverse=True)
    query = columns["query"][first] - columns["query"][0]
    cells, entry = Cells.of_documents(
        model.model.places,
        query,
        document,
        number[place],
        columns["impressions"],
        columns["clicks"],
        queries=int(query[-1]) + 1,
    )
    found = label(model.model, cells)
    return {
        "document": documents,
        "relevance": found.relevance[entry],
        "low": found.low[entry],
        "high": found.high[entry],
    }
