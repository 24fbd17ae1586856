"""Rows -> lines of a terminal: columns are dropped by rank until the table fits, rows are never wrapped."""

from __future__ import annotations

from itertools import accumulate
from unicodedata import combining, east_asian_width

from clickmix.errors import printable
from clickmix.report.rows import Rows
from clickmix.wording import several

GAP = 2


def text_lines(rows: Rows, *, width: int) -> list[str]:
    """Draw a table at most `width` letters wide; a last line names the columns left out."""
    columns = [
        [column.heading, *map(printable, cells)] for column, *cells in zip(rows.columns, *rows.texts(), strict=True)
    ]
    shown = list(range(len(columns)))
    widths = [max(map(letters, column)) for column in columns]

    def needed() -> int:
        return sum(widths[i] for i in shown) + GAP * (len(shown) - 1)

    while needed() > width and (droppable := [i for i in shown if rows.columns[i].rank]):
        shown.remove(max(droppable, key=lambda i: (rows.columns[i].rank, i)))
    for i in (i for i in shown if needed() > width and not rows.columns[i].numeric):
        least = max(letters(columns[i][0]), 8)
        widths[i] = max(least, widths[i] - (needed() - width))
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
        fitting = sum(upto < width for upto in accumulate(map(letters, text)))
        text = text[:fitting] + "…"
    room = " " * (width - letters(text))
    return room + text if right else text + room
