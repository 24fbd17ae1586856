"""Click rates: how often a fit expects a cell to be clicked, from what was seen of its document.   fit, cells -> rates

A fit that can predict clicks has `click_rates(seen, asked)`. It is optional: a correction that only orders documents
has no such claim to make. Both arguments are cells of the same documents, queries and places. `seen` is the part of the
log the fit comes from; `asked` are cells of the other part, whose clicks are hidden. Of a document that was not seen,
or not at this place, the fit says what it expects before any click.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from clickmix.groups.places import Place
from clickmix.types import Floats, Ints


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
