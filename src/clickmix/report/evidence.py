"""Evidence: where a query's documents were shown and clicked, and the usual click rates there.   counts, fit -> cells

Usual rates come from `fit.usual_rates(place)` (`corrections.correction.Rated`), if the fit has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clickmix.corrections.correction import Rated, of_query
from clickmix.counts.counts import Counts
from clickmix.engines.sql import aliased, aliases, listed, literal
from clickmix.errors import several
from clickmix.groups.places import Place
from clickmix.report.rows import cut, percent

MOST_CELLS = 3  # cells to show as evidence of a document


@dataclass(frozen=True)
class SeenCell:
    """A document at a place: impressions, clicks, and the usual click rates (not relevant, relevant), if known."""

    doc_id: str
    place: Place
    impressions: int
    clicks: int
    usual: tuple[float, float] | None


def read_cells(counts: Counts, fitted: object, query_id: object, doc_ids: Iterable[object]) -> list[SeenCell]:
    """The cells of some documents of a query, sorted by place."""
    wanted = listed(literal(str(doc)) for doc in doc_ids)
    keys = aliases(counts.keys)
    rows = counts.engine.rows(
        f"SELECT CAST(doc_id AS VARCHAR), {listed(keys)}, impressions, clicks FROM "
        f"(SELECT query_id, doc_id, {aliased(counts.keys)}, impressions, clicks FROM {counts.table}) AS cells "
        f"WHERE {of_query(query_id)} AND CAST(doc_id AS VARCHAR) IN ({wanted}) ORDER BY {listed(keys)}, 1"
    )
    places = [Place(int(position), tuple(context)) for _, position, *context, _, _ in rows]
    usual = {place: fitted.usual_rates(place) if isinstance(fitted, Rated) else None for place in set(places)}
    return [
        SeenCell(str(row[0]), place, int(row[-2]), int(row[-1]), usual[place])
        for row, place in zip(rows, places, strict=True)
    ]


def usual_rates(fitted: object, places: Sequence[Place]) -> dict[int, tuple[float, float]]:
    """By position, the click rates of documents that are not relevant and most relevant, to four digits.

    Empty if places have a context.
    """
    if not isinstance(fitted, Rated) or any(place.context for place in places):
        return {}
    found = ((place.position, fitted.usual_rates(place)) for place in places)
    return {at: (float(f"{rates[0]:.4g}"), float(f"{rates[1]:.4g}")) for at, rates in found if rates is not None}


def evidence_sentences(fitted: object, counts: Counts, query_id: object, doc_id: object) -> str | None:
    """Place by place, a document's clicks and the usual ones; None if the fit knows no usual rates."""
    if not isinstance(fitted, Rated):
        return None
    cells = sorted(read_cells(counts, fitted, query_id, [doc_id]), key=lambda cell: -cell.impressions)
    more = len(cells) - MOST_CELLS
    texts = [_sentence(cell, counts.context) for cell in cells[:MOST_CELLS]]
    return " ".join([*texts, *([f"And {several(more, 'more place')}."] if more > 0 else [])])


def _sentence(cell: SeenCell, context: Sequence[str]) -> str:
    place = cell.place.describe(context)
    share = percent(cell.clicks / cell.impressions)
    seen = f"{cut(place[:1].upper() + place[1:])}: {cell.clicks:,} of {cell.impressions:,}, {share}."
    if cell.usual is None:
        return seen
    return f"{seen} Usual there: {percent(cell.usual[1])} if relevant, {percent(cell.usual[0])} if not."
