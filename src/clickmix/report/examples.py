"""The documents that a correction moved most, with their evidence.   counts, fitted correction -> Section"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.mixtures.group import Group
from clickmix.report.log_numbers import Moved
from clickmix.report.pages import Listing, Section
from clickmix.report.words import cut, percent

MOST_CELLS = 3
HEAD = ("query", "document", "clicked", "label", "why")


def moved_section(counts: Counts, fitted: Any, moved: tuple[list[Moved], list[Moved]]) -> Section:
    """Much clicked but not relevant, and little clicked but relevant."""
    down, up = moved
    tables = [
        Listing(HEAD, [_row(each, counts, fitted) for each in documents], caption, numbers=frozenset({3}), cards=True)
        for caption, documents in (("Much clicked, but not relevant", down), ("Little clicked, but relevant", up))
        if documents
    ]
    prose = (
        "Where label and click-through rate disagree most. The first are clicked because of where they stand; the "
        "others are clicked seldom because few people look there, yet more often than is usual there."
        if tables
        else "No label is far from its document's click-through rate."
    )
    return Section("Documents that the correction moved most", [prose], tables=tables)


def _row(moved: Moved, counts: Counts, fitted: Any) -> tuple[str, ...]:
    clicked = f"{moved.clicks:,} of {moved.impressions:,} times ({percent(moved.clicks / moved.impressions)})"
    interval = f" ({moved.interval[0]:.2f} to {moved.interval[1]:.2f})" if moved.interval else ""
    label = f"{moved.relevance:.2f}{interval}"
    return cut(moved.query_id), cut(moved.doc_id), clicked, label, _why(moved, counts, fitted)


def _why(moved: Moved, counts: Counts, fitted: Any) -> str:
    """Place by place, what was seen there and what is usual there."""
    if not isinstance(fitted, MixtureFit):
        return "-"
    groups = {seen.place.describe(fitted.context): group for group in fitted.groups for seen in group.places}
    cells = sorted(fitted.explain(counts, moved.query_id, moved.doc_id).cells, key=lambda cell: -cell.impressions)
    texts = [_evidence(cell, groups) for cell in cells[:MOST_CELLS]]
    more = len(cells) - MOST_CELLS
    return " ".join([*texts, *([f"And {more} more places."] if more > 0 else [])])


def _evidence(cell: Any, groups: Mapping[str, Group]) -> str:
    place = cut(cell.place[:1].upper() + cell.place[1:])
    rates = groups[cell.place].mixture.rates
    seen = f"{place}: {cell.clicks:,} of {cell.impressions:,}, {percent(cell.clicks / cell.impressions)}"
    if len(rates) == 1:
        return f"{seen}. Clicks say nothing of relevance there."
    most = "relevant" if len(rates) == 2 else "most relevant"
    return f"{seen}. Usual there: {percent(rates[-1])} if {most}, {percent(rates[0])} if not."
