"""Labels with judgments: evidence is weighed, and judged documents are found by id.   Counts, Judged -> Labels

The engine sends the cells of some queries at a time, as numbers without ids, and gets their labels back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clickmix.corrections.correction import Labels
from clickmix.counts.counts import SUMS, Counts
from clickmix.engines.sql import aliases, listed
from clickmix.groups.places import Place, places_of
from clickmix.groups.sample import cells_query
from clickmix.mixtures.hierarchical.cells import Cells, Places
from clickmix.mixtures.hierarchical.label import Documents
from clickmix.mixtures.log_model import LogModel
from clickmix.types import Columns, Ints

if TYPE_CHECKING:
    from clickmix.corrections.mixture_based.judged import Judged

MOST_CELLS = 4_000_000  # cells at a time: about half a gigabyte


@dataclass(frozen=True)
class Block:
    """Whole queries: the number and the judged step (or -1) of each document; their cells, as they are and by pattern.

    `entry` has the entry of each document in `cells`.
    """

    document: Ints
    judged: Ints
    documents: Documents
    cells: Cells
    entry: Ints


def label_judged(model: LogModel, counts: Counts, place_of: Callable[[Place], int], judged: Judged) -> Labels:
    """Labels of all documents; `place_of` gives the number of the model's place for a place of the log."""
    documents = number_documents(counts, judged.table(counts))
    parts = []
    for block in read_blocks(model.model.places, counts, documents, place_of):
        relevance, low, high = judged.labels(model, block)
        labels = {"document": block.document, "relevance": relevance, "low": low, "high": high}
        parts.append(counts.engine.take(labels))
    labelled = " UNION ALL ".join(f"SELECT document, relevance, low, high FROM {part}" for part in parts)
    return Labels(
        counts,
        "SELECT query_id, doc_id, relevance, impressions, clicks, low, high "
        f"FROM {documents} AS documents JOIN ({labelled}) AS labelled USING (document)",
    )


def number_documents(counts: Counts, judged: str | None = None) -> str:
    """A table of all documents, with numbers for them and for their queries, and their step in `judged`, or -1."""
    step = "coalesce(step, -1)" if judged else "-1"
    join = (
        f"LEFT JOIN {judged} AS judged ON CAST(documents.query_id AS VARCHAR) = judged.q "
        "AND CAST(documents.doc_id AS VARCHAR) = judged.d"
        if judged
        else ""
    )
    return counts.engine.keep(
        "SELECT query_id, doc_id, impressions, clicks, cells, row_number() OVER (ORDER BY query_id, doc_id) - 1 AS "
        f"document, dense_rank() OVER (ORDER BY query_id) - 1 AS query, CAST({step} AS INTEGER) AS step FROM "
        f"(SELECT query_id, doc_id, {SUMS}, count(*) AS cells FROM {counts.table} GROUP BY query_id, doc_id) "
        f"AS documents {join}"
    )


def read_blocks(places: Places, counts: Counts, documents: str, place_of: Callable[[Place], int]) -> Iterator[Block]:
    """The documents of a table that `number_documents` made, some queries at a time."""
    for low, high in _ranges(counts, documents):
        columns = _cells(counts, documents, low, high)
        seen, place = places_of(columns, counts.context)
        number = np.array([place_of(each) for each in seen])
        numbers, first, document = np.unique(columns["document"], return_index=True, return_inverse=True)
        query = columns["query"][first]
        inner = query - columns["query"][0]
        cells, entry = Cells.of_documents(
            places,
            inner,
            document,
            number[place],
            columns["impressions"],
            columns["clicks"],
            queries=int(inner[-1]) + 1,
        )
        rows = Documents.of_rows(places, query, document, number[place], columns["impressions"], columns["clicks"])
        yield Block(numbers, columns["step"][first], rows, cells, entry)


def _ranges(counts: Counts, documents: str) -> Iterator[tuple[int, int]]:
    """Ranges of query numbers, each with about `MOST_CELLS` cells."""
    ((cells, queries),) = counts.engine.rows(
        f"SELECT CAST(sum(cells) AS BIGINT), CAST(max(query) AS BIGINT) + 1 FROM {documents}"
    )
    parts = -(-int(cells) // MOST_CELLS)
    edges = [int(queries) * i // parts for i in range(parts + 1)]
    yield from itertools.pairwise(edges)


def _cells(counts: Counts, documents: str, low: int, high: int) -> Columns:
    """Cells of queries from number `low` up to but not including `high`, sorted by document."""
    keys = listed(aliases(counts.keys))
    return counts.engine.fetch(
        f"SELECT query, document, step, {keys}, cells.impressions AS impressions, cells.clicks AS clicks "
        f"FROM {cells_query(counts)} JOIN (SELECT query_id, doc_id, document, query, step FROM {documents} "
        f"WHERE query >= {low} AND query < {high}) AS numbered USING (query_id, doc_id) ORDER BY document, {keys}"
    )
