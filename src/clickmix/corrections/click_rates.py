"""Click rates: how often a fit expects a cell to be clicked, from what was seen of its document.   fit, cells -> rates

A fit that can predict clicks has `click_rates(seen, asked)`. It is optional: a correction that only orders documents
has no such claim to make. Both arguments are cells of the same documents, queries and places. `seen` is the part of the
log the fit comes from; `asked` are cells of the other part, whose clicks are hidden. Of a document that was not seen,
or not at this place, the fit says what it expects before any click.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from clickmix.counts.counts import Counts
from clickmix.engines.engine import Engine
from clickmix.engines.sql import aliased, aliases, listed
from clickmix.groups.places import Place, places_of
from clickmix.groups.sample import QUARTERS, Quarters
from clickmix.types import Columns, Floats, Ints


@dataclass(frozen=True, eq=False)
class PlacedCells:
    """Cells of documents, one row each, without ids: codes from 0 of documents and places, impressions, clicks.

    `query` has the code of each document's query, so `query[document]` that of each cell. `list` has the code of each
    cell's result list, if the correction needs lists; the rows are then in the order of lists and positions. Codes
    mean the same in both parts of a log, which have the same `places` and `query`.
    """

    places: tuple[Place, ...]
    query: Ints
    document: Ints
    place: Ints
    impressions: Floats
    clicks: Floats
    list: Ints | None = None

    @property
    def documents(self) -> int:
        """How many documents, in both parts together."""
        return len(self.query)

    @cached_property
    def position(self) -> Ints:
        """The position of each cell, from 1."""
        return np.array([place.position for place in self.places])[self.place]

    def by_document(self, values: Floats) -> Floats:
        """Sum a column of cells per document; 0 for one without cells here."""
        return np.bincount(self.document, values, self.documents)

    def by_place(self, values: Floats) -> Floats:
        """Sum a column of cells per place; 0 for one without cells here."""
        return np.bincount(self.place, values, len(self.places))

    def added_up(self, *others: PlacedCells) -> PlacedCells:
        """One cell per document and place, of this part and others together; result lists no longer matter."""
        parts, places = (self, *others), len(self.places)
        keys = np.concatenate([part.document * places + part.place for part in parts])
        distinct, code = np.unique(keys, return_inverse=True)
        shown, clicks = (
            np.bincount(code, np.concatenate([getattr(part, name) for part in parts]), len(distinct))
            for name in ("impressions", "clicks")
        )
        document, place = np.divmod(distinct, places)
        return PlacedCells(self.places, self.query, document, place, shown, clicks)

    def hidden(self) -> PlacedCells:
        """The same cells without their clicks."""
        return replace(self, clicks=np.zeros_like(self.clicks))


@runtime_checkable
class PredictsClicks(Protocol):
    """A fit that can say how often a cell will be clicked."""

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats | None:
        """The probability of a click in each of the asked cells, given what was seen of its document.

        None if this fit predicts no clicks after all.
        """


def predicted_rates(fit: object, seen: PlacedCells, asked: PlacedCells) -> Floats | None:
    """The click rates that a fit expects of cells whose clicks are hidden from it; None if it predicts none."""
    return fit.click_rates(seen, asked.hidden()) if isinstance(fit, PredictsClicks) else None


def position_rates(seen: PlacedCells) -> Floats:
    """The click rate of each place: clicks / impressions of its position in what was seen.

    A position without impressions has the rate of the whole part; one without clicks, or without skips, that of half a
    click, or half a skip, so that no prediction is infinitely wrong.
    """
    positions, code = np.unique([place.position for place in seen.places], return_inverse=True)
    shown, clicked = (
        np.bincount(code, seen.by_place(column), len(positions)) for column in (seen.impressions, seen.clicks)
    )
    overall = (seen.clicks.sum() + 0.5) / (seen.impressions.sum() + 1)
    inside = (clicked > 0) & (clicked < shown)
    rates = np.where(inside, clicked / np.maximum(shown, 1), (clicked + 0.5) / (shown + 1))
    return np.asarray(np.where(shown > 0, rates, overall)[code])


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
