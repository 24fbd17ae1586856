"""Click rates: how often a fit expects clicks on a cell, given the other cells of its document.   fit, cells -> rates

A fit that can predict clicks has `click_rates(seen, asked)`. It is optional: a correction that only orders documents
predicts nothing. Both arguments are cells of the same documents, queries and places. `seen` is the part of the log that
was fitted; `asked` are cells of the other part, whose clicks are hidden. For a document that was not seen, or not at
this place, the fit says what it expects before any click.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from clickmix.counts.counts import SUMS, Counts
from clickmix.engines.engine import Engine
from clickmix.engines.sql import aliased, aliases, listed
from clickmix.groups.places import Place, places_of
from clickmix.groups.sample import QUARTERS, Quarters
from clickmix.mixtures.log_model import LogModel
from clickmix.mixtures.mixture import Group
from clickmix.types import Floats, Ints

if TYPE_CHECKING:
    from clickmix.mixtures.hierarchical.cells import Cells

MOST_PATTERNS = 20_000  # to refit parameters on: their errors are then small compared with those of predictions


@dataclass(frozen=True, eq=False)
class PlacedCells:
    """Cells of documents, one row each, without ids: codes from 0 of documents and places, impressions, clicks.

    `query` has the code of each document's query, so `query[document]` has that of each cell. `list` has the code of
    each cell's result list, if the correction needs lists; rows are then sorted by list and position. Codes mean the
    same in both parts of a log, which have the same `places` and `query`.
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
        """Sum a column of cells per document; 0 for documents without cells here."""
        return np.bincount(self.document, values, self.documents)

    def by_place(self, values: Floats) -> Floats:
        """Sum a column of cells per place; 0 for places without cells here."""
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
        """The probability of a click in each asked cell, given the seen cells of its document.

        None if this fit cannot predict clicks after all.
        """


def predicted_rates(fit: object, seen: PlacedCells, asked: PlacedCells) -> Floats | None:
    """The click rates that a fit expects of cells whose clicks are hidden from it; None if it predicts none."""
    return fit.click_rates(seen, asked.hidden()) if isinstance(fit, PredictsClicks) else None


def position_rates(seen: PlacedCells) -> Floats:
    """The click rate of each place: clicks / impressions of its position in the seen cells.

    A position without impressions gets the rate of the whole part. A position without clicks, or without skips, counts
    half a click, or half a skip, so that no prediction is infinitely wrong.
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
    """The cells of parts of a log in one engine; list by list, if lists were counted separately."""
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
    """Fetch `cells` (part, ids, the keys of their place k0, k1, ..., impressions, clicks) as arrays, part by part."""
    keys = listed(aliases(("position", *context)))
    codes = {"query": "query_id", "document": "query_id, doc_id", **({"list": "query_id, list"} if by_list else {})}
    ranks = listed(f"dense_rank() OVER (ORDER BY {order}) - 1 AS {code}" for code, order in codes.items())
    columns = engine.fetch(
        f"SELECT part, {ranks}, {keys}, impressions, clicks FROM ({cells}) "
        f"ORDER BY part, {'list, k0, document' if by_list else f'document, {keys}'}"
    )
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
        f"SELECT query_id, doc_id, position, {SUMS} FROM {counts.table} GROUP BY query_id, doc_id, position"
    )
    return Counts(counts.engine, table)


def grouped_click_rates(groups: Sequence[Group], seen: PlacedCells, asked: PlacedCells) -> Floats:
    """The probability of a click in each asked cell; `groups` has the group of each place."""
    grades = len(groups[0].prior)
    prior = np.array([group.prior_logits for group in groups])  # place x grade above 0
    evidence = np.zeros((grades - 1, len(seen.place)))
    for place, group in enumerate(groups):
        rows = np.flatnonzero(seen.place == place)
        numbers = group.mixture.evidence(grades=grades)
        evidence[:, rows] = numbers.log_ratios(seen.impressions[rows], seen.clicks[rows]).reshape(grades - 1, -1)
    shown = seen.by_document(seen.impressions)
    known = shown[asked.document] > 0
    logs = np.zeros((grades, len(asked.place)))
    for k in range(1, grades):
        weighed = seen.by_document(seen.impressions * prior[seen.place, k - 1]) / np.maximum(shown, 1)
        own = (weighed + seen.by_document(evidence[k - 1]))[asked.document]
        logs[k] = np.where(known, own, prior[asked.place, k - 1])
    posterior = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
    # If clicks say nothing in a group, it has one rate for all grades.
    rates = np.array([np.broadcast_to(group.mixture.rates, grades) for group in groups])
    return np.asarray(np.einsum("kc,ck->c", posterior, rates[asked.place]))


def model_click_rates(
    model: LogModel, number: Ints, seen: PlacedCells, asked: PlacedCells, *, usual: bool = False
) -> Floats:
    """The same from a model of the whole log; `number` has the model's place for each place.

    With `usual`, rates leave out what a document's own clicks at the place say about its appeal there.
    """
    from clickmix.mixtures.hierarchical.label import predict  # here, because scipy is slow to load

    # Documents that were not seen get cells at their places, without impressions.
    new = seen.by_document(seen.impressions)[asked.document] == 0
    nothing = np.zeros(int(new.sum()))
    document = np.concatenate([seen.document, asked.document[new]])
    place = number[np.concatenate([seen.place, asked.place[new]])]
    shown, clicks = (np.concatenate([part, nothing]) for part in (seen.impressions, seen.clicks))
    cells, entry = _model_cells(model, seen.query, document, place, shown, clicks)
    own_shown, own_clicks = np.zeros(len(asked.place)), np.zeros(len(asked.place))
    if not usual:
        keys, at = np.unique(document * len(model.positions) + place, return_inverse=True)
        wanted = asked.document * len(model.positions) + number[asked.place]
        own = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        here = keys[own] == wanted
        own_shown, own_clicks = (np.where(here, np.bincount(at, part)[own], 0.0) for part in (shown, clicks))
    return predict(model.model, cells, entry[asked.document], number[asked.place], own_shown, own_clicks)


def model_relevance(model: LogModel, number: Ints, seen: PlacedCells) -> Floats:
    """The label of every document; 0 for documents without cells."""
    from clickmix.mixtures.hierarchical.label import label

    cells, entry = _model_cells(model, seen.query, seen.document, number[seen.place], seen.impressions, seen.clicks)
    return np.asarray(np.where(entry >= 0, label(model.model, cells).relevance[entry], 0.0))


def fitted_to(model: LogModel, number: Ints, seen: PlacedCells) -> LogModel:
    """The model fitted again to these cells, or some of their queries, starting from its own parameters."""
    from clickmix.mixtures.hierarchical.climb import climb_again

    cells, _ = _model_cells(model, seen.query, seen.document, number[seen.place], seen.impressions, seen.clicks)
    if cells.patterns > MOST_PATTERNS:
        cells = cells.sample(np.flatnonzero(cells.ranks() % -(-cells.patterns // MOST_PATTERNS) == 0))
    return LogModel.of(climb_again(cells, model.model)[0])


def _model_cells(
    model: LogModel, query: Ints, document: Ints, place: Ints, impressions: Floats, clicks: Floats
) -> tuple[Cells, Ints]:
    """Cells at the model's places, and the entry of each document, -1 for documents without cells."""
    from clickmix.mixtures.hierarchical.cells import Cells

    present, code = np.unique(document, return_inverse=True)
    queries, of_document = np.unique(query[present], return_inverse=True)
    cells, entry = Cells.of_documents(
        model.model.places, of_document, code, place, impressions, clicks, queries=len(queries)
    )
    entries = np.full(len(query), -1)
    entries[present] = entry
    return cells, entries
