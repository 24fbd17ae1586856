"""The documents that a correction moved most, with their evidence.   counts, fitted correction, labels -> Section"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clickmix.corrections import Group, Labels, MixtureFit
from clickmix.counts import Counts
from clickmix.report.log_numbers import Moved, read_moved
from clickmix.report.pages import Listing, Section

LONGEST_ID = 80
MOST_CELLS = 3
HEAD = ("query", "document", "clicked", "label", "why")


def moved_section(counts: Counts, fitted: Any, labels: Labels) -> Section:
    """Much clicked but not relevant, and little clicked but relevant."""
    down, up = read_moved(labels)
    tables = [
        Listing(HEAD, [_row(moved, counts, fitted) for moved in documents], caption, numbers=frozenset({3}), cards=True)
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
    why = _why(moved, counts, fitted)
    return cut(moved.query_id), cut(moved.doc_id), clicked, f"{moved.relevance:.2f}", why


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
    return f"{seen}. Usual there: {percent(rates[-1])} if relevant, {percent(rates[0])} if not."


def cut(value: object) -> str:
    """An id, at most so long.

    >>> cut("x" * 100)[-3:]
    'xx…'
    """
    text = str(value)
    return text if len(text) <= LONGEST_ID else text[:LONGEST_ID] + "…"


def percent(share: float) -> str:
    """A share in percent, to two digits or whole.

    >>> percent(0.98123), percent(0.0123), percent(0), percent(1)
    ('98%', '1.2%', '0%', '100%')
    """
    return f"{100 * share:.0f}%" if share >= 0.1 or share == 0 else f"{100 * share:.2g}%"
