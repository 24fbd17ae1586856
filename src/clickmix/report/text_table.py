"""Rows -> lines of a terminal: columns are dropped by rank until the table fits, rows are never wrapped."""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from unicodedata import combining, east_asian_width

from clickmix.errors import printable
from clickmix.report.rows import Rows
from clickmix.wording import several

GAP = 2
READABLE = 24  # letters of a text: it is cut to so many before a column is dropped, and to fewer only then
LEAST = 8


def text_lines(rows: Rows, *, width: int) -> list[str]:
    """Draw a table at most `width` letters wide; a last line names the columns left out."""
    columns = [
        [column.heading, *map(printable, cells)] for column, *cells in zip(rows.columns, *rows.texts(), strict=True)
    ]
    shown = list(range(len(columns)))
    widths = [max(map(letters, column)) for column in columns]

    def needed(most_of_text: int = width) -> int:
        own = (widths[i] if rows.columns[i].numeric else min(widths[i], most_of_text) for i in shown)
        return sum(own) + GAP * (len(shown) - 1)

    while needed(READABLE) > width and (droppable := [i for i in shown if rows.columns[i].rank]):
        shown.remove(max(droppable, key=lambda i: (rows.columns[i].rank, i)))
    least = {i: max(letters(columns[i][0]), LEAST) for i in shown if not rows.columns[i].numeric}
    while needed() > width and (wide := [i for i in least if widths[i] > least[i]]):
        widths[max(wide, key=lambda i: widths[i])] -= 1  # the widest first: none is cut more than another
    lines = [
        (" " * GAP).join(_cell(columns[i][line], widths[i], right=rows.columns[i].numeric) for i in shown).rstrip()
        for line in range(len(rows.rows) + 1)
    ]
    left_out = [column.heading for i, column in enumerate(rows.columns) if i not in shown]
    if left_out:
        lines.append(f"No room for {several(len(left_out), 'column')}: {', '.join(left_out)}.")
    return lines


def letters(text: str) -> int:
    """How many letters wide a terminal draws a text.

    >>> letters("abc"), letters("寿司")
    (3, 4)
    """
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _cell(text: str, width: int, *, right: bool) -> str:
    if letters(text) > width:
        text = _cut(text, width)
    room = " " * (width - letters(text))
    return room + text if right else text + room


def _cut(text: str, width: int) -> str:
    """The beginning and the end of a text: addresses begin alike, and texts of people end alike.

    >>> _cut("https://example.com/shoes/sku-1", 16)
    'https:/…es/sku-1'
    """
    before, after = ([*accumulate(map(letters, way))] for way in (text, reversed(text)))
    start, end = bisect(before, (width - 1) // 2), bisect(after, width // 2)
    return text[:start] + "…" + text[len(text) - end :]
