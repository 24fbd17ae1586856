"""The cells of two parts of a log as numpy columns, with the same codes in both.   counts -> placed cells"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from clickmix.corrections.click_rates import PlacedCells
from clickmix.counts.counts import Counts
from clickmix.engines.engine import Engine
from clickmix.engines.sql import aliased, aliases, listed
from clickmix.groups.places import places_of
from clickmix.groups.quarters import QUARTERS, Quarters
from clickmix.types import Columns


def placed_cells(*parts: Counts) -> tuple[PlacedCells, ...]:
    """The cells of parts that live in one engine; list by list, if lists were kept apart."""
    first = parts[0]
    by_list = first.by_list is not None
    lists = ", list" if by_list else ""
    cells = " UNION ALL ".join(
        f"SELECT {i} AS part, query_id, doc_id{lists}, {aliased(part.keys)}, impressions, clicks "
        f"FROM {part.by_list or part.table}"
        for i, part in enumerate(parts)
    )
    return _placed(first.engine, cells, first.context, len(parts), by_list=by_list)


def quarter_cells(quarters: Quarters) -> tuple[PlacedCells, ...]:
    """The cells of each of the quarters of a log."""
    return _placed(quarters.engine, quarters.cells_query(), quarters.roles.context, QUARTERS, by_list=False)


def _placed(
    engine: Engine, cells: str, context: Sequence[str], parts: int, *, by_list: bool
) -> tuple[PlacedCells, ...]:
    """Fetch cells that have the number of their part, ids, the keys of their place (k0, k1, ...) and both counts."""
    keys = listed(aliases(("position", *context)))
    codes = {"query": "query_id", "document": "query_id, doc_id", **({"list": "query_id, list"} if by_list else {})}
    ranks = listed(f"dense_rank() OVER (ORDER BY {order}) - 1 AS {code}" for code, order in codes.items())
    columns = engine.fetch(
        f"SELECT part, {ranks}, {keys}, impressions, clicks FROM ({cells}) "
        f"ORDER BY part, {'list, k0, document' if by_list else f'document, {keys}'}"
    )
    return _cut(columns, context, parts, by_list=by_list)


def _cut(columns: Columns, context: Sequence[str], parts: int, *, by_list: bool) -> tuple[PlacedCells, ...]:
    places, place = places_of(columns, context)
    query = np.zeros(int(columns["document"].max()) + 1, dtype=np.int64)
    query[columns["document"]] = columns["query"]
    ends = np.searchsorted(columns["part"], np.arange(parts + 1))
    return tuple(
        PlacedCells(
            places,
            query,
            columns["document"][start:end],
            place[start:end],
            columns["impressions"][start:end].astype(np.float64),
            columns["clicks"][start:end].astype(np.float64),
            columns["list"][start:end] if by_list else None,
        )
        for start, end in itertools.pairwise(ends)
    )


def without_context(counts: Counts) -> Counts:
    """The same counts with all contexts added up, for corrections that know only positions."""
    if not counts.context:
        return counts
    table = counts.engine.keep(
        "SELECT query_id, doc_id, position, CAST(sum(impressions) AS BIGINT) AS impressions, "
        f"CAST(sum(clicks) AS BIGINT) AS clicks FROM {counts.table} GROUP BY query_id, doc_id, position"
    )
    return Counts(counts.engine, table)
