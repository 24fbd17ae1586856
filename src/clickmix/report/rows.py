"""Rows: results as data. Named columns, each with a kind, and rows of raw values; terminal, HTML and JSON draw them.

The first functions write single values for people: counts, shares, rates, ids, file names and commands.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from itertools import accumulate
from typing import Any, Literal
from unicodedata import combining, east_asian_width

from clickmix.errors import hide_secrets, printable, several

LONGEST_ID = 80  # letters
LONGEST_COMMAND = 400
LEAST_PERCENT = 1e-4  # smaller ones are written as "<0.0001%"
OPEN = 0.25  # half a 95% interval so wide that the share is unknown
MOST_COUNTED = 1_000_000  # infinite counts are above it


def cut(value: object) -> str:
    """Shorten an id to at most 80 letters.

    >>> cut("x" * 100)[-3:]
    'xx…'
    """
    text = str(value)
    return text if len(text) <= LONGEST_ID else text[:LONGEST_ID] + "…"


def percent(share: float) -> str:
    """Write a share in percent, with two digits, or as a whole number from 10% up.

    >>> percent(0.98123), percent(0.0123), percent(0.02), percent(0), percent(1), percent(0.9999), percent(6.5e-103)
    ('98%', '1.2%', '2%', '0%', '100%', '>99%', '<0.0001%')
    """
    if share in (0, 1):
        return f"{share:.0%}"
    if 0.995 <= share < 1:
        return ">99%"
    if 0 < 100 * share < LEAST_PERCENT:
        return f"<{LEAST_PERCENT:.4f}%"
    exact = Decimal(100 * share)
    step = Decimal(1).scaleb(min(0, exact.adjusted() - 1)) if abs(share) < 0.0995 else Decimal(1)
    text = f"{exact.quantize(step, ROUND_HALF_UP):f}"  # as the script of a page rounds
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def count_text(count: float) -> str:
    """Write a count with separators; infinity is "above a million".

    >>> count_text(12345), count_text(math.inf)
    ('12,345', '>1,000,000')
    """
    return f">{MOST_COUNTED:,}" if count == math.inf else f"{count:,.0f}"


def number_text(value: float) -> str:
    """Write a number with three decimals, fewer from 10 up, and never with an exponent.

    >>> number_text(0.2), number_text(17.399), number_text(1234.5), number_text(6.5e-103), number_text(0)
    ('0.200', '17.4', '1,234', '<0.001', '0')
    """
    if 0 < abs(value) < 0.001:
        return "<0.001" if value > 0 else ">-0.001"
    decimals = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 10 else 3
    return f"{value:,.{decimals}f}"


def percent_estimate(share: float, margin: float) -> str:
    """Write a share and its margin in percent, both to the first digit of the margin.

    A margin of 25% or more leaves the share unknown.

    >>> percent_estimate(0.0058, 0.006), percent_estimate(0.651, 0.002), percent_estimate(0.63, 0.18)
    ('0.6% ±0.6%', '65.1% ±0.2%', '63% ±18%')
    >>> percent_estimate(0.998, 0.5)
    'unknown'
    """
    if margin >= OPEN:
        return "unknown"
    decimals = _decimals(100 * max(margin, LEAST_PERCENT / 100))
    return f"{100 * share:.{decimals}f}% ±{100 * margin:.{decimals}f}%"


def number_estimate(value: float, margin: float) -> str:
    """Write a number and its margin, both to the second digit of the margin.

    >>> number_estimate(0.6931, 0.0182), number_estimate(5.122, 3.013), number_estimate(40.2, 17.5)
    ('0.693 ±0.018', '5.1 ±3.0', '40 ±18')
    """
    decimals = _decimals(margin / 10) if margin > 0 else 3
    return f"{value:,.{decimals}f} ±{margin:,.{decimals}f}"


def _decimals(value: float) -> int:
    """How many decimals show the first digit of a positive value."""
    return max(0, -math.floor(math.log10(value)))


def label_text(value: float) -> str:
    """Write a label or a gain with two decimals.

    >>> label_text(0.5)
    '0.50'
    """
    return f"{value:.2f}"


def file_name(path: str) -> str:
    """Keep the last part of a path or an address: a report must not show a server's folders, hosts or passwords.

    >>> file_name("/srv/logs/clicks.parquet"), file_name("postgresql://me:secret@host/shop"), file_name("clicks")
    ('clicks.parquet', 'shop', 'clicks')
    """
    return re.split(r"[/\\]", hide_secrets(path).rstrip("/\\"))[-1]


def command_text(words: Sequence[str]) -> str:
    """Write a command in one line, with file names only, at most 400 letters: a shell's * can name thousands of files.

    >>> command_text(["clickmix", "debias", "/srv/my log.csv", "--engine=postgresql://u:p@host/shop"])
    "clickmix debias 'my log.csv' --engine=shop"
    """
    shown = []
    for word in words:
        key, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        text = cut(key + equals + file_name(value))
        shown.append(f"'{text}'" if re.search(r"\s", text) or not text else text)
    command = " ".join(shown)
    return command if len(command) <= LONGEST_COMMAND else command[:LONGEST_COMMAND] + "…"


# How a value of each kind is written. None is a dash, whatever its kind.
WRITERS: dict[str, Callable[..., str]] = {
    "text": cut,
    "sentence": str,
    "outcome": str,
    "count": count_text,
    "share": percent,
    "rate": percent,
    "label": label_text,
    "interval": str,
    "tenths": "{:,.1f}".format,
    "number": number_text,
    "perplexity": "{:.4f}".format,
}


Kind = Literal[
    "text", "sentence", "outcome", "count", "share", "rate", "label", "interval", "tenths", "number", "perplexity"
]
BAR = 11  # letters of an interval drawn in a terminal, from 0 to 1


@dataclass(frozen=True)
class Estimate:
    """A fitted value, and half its 95% interval if that is known."""

    value: float
    margin: float | None = None


@dataclass(frozen=True)
class LabelInterval:
    """A label between 0 and 1 and the ends of its interval, drawn as a bar.

    >>> str(LabelInterval(0.5, 0.25, 1.0))
    '··━━━●━━━━━'
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        first, at, last = (round(end * (BAR - 1)) for end in (self.low, self.value, self.high))
        return "".join("●" if i == at else "━" if first <= i <= last else "·" for i in range(BAR))


Value = str | int | float | Estimate | LabelInterval | None


@dataclass(frozen=True)
class Column:
    """A column: its name in JSON, the kind of its values, its title for people, and what it means.

    `rank` says how soon a drawer without room drops the column: the highest rank goes first, rank 0 stays.

    >>> Column("clicks", "count").text(12345), Column("lowest_rate", "rate").heading
    ('12,345', 'lowest rate')
    """

    name: str
    kind: Kind
    title: str = ""
    help: str = ""
    rank: int = 0

    @property
    def heading(self) -> str:
        """The text above the column."""
        return self.title or self.name.replace("_", " ")

    @property
    def numeric(self) -> bool:
        """Whether values are numbers, which are aligned right."""
        return self.kind not in ("text", "sentence", "outcome", "interval")

    def text(self, value: Value) -> str:
        """Write a value of this column for people."""
        if value is None:
            return "-"
        if not isinstance(value, Estimate):
            return WRITERS[self.kind](value)
        if value.margin is None:
            return self.text(value.value)
        write = percent_estimate if self.kind in ("rate", "share") else number_estimate
        return write(value.value, value.margin)


@dataclass(frozen=True)
class Rows:
    """A table of results: columns, and rows of raw values in the same order. With `cards`, a row is a card on a phone.

    >>> rows = Rows((Column("place", "text"), Column("clicks", "count")), (("position 1", 12345),))
    >>> rows.texts(), rows.json()
    ([['position 1', '12,345']], [{'place': 'position 1', 'clicks': 12345}])
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str = ""
    notes: Sequence[str] = ()
    cards: bool = False

    def first(self, most: int) -> Rows:
        """The same table with at most that many rows."""
        return replace(self, rows=self.rows[:most])

    def texts(self) -> list[list[str]]:
        """Every value as people read it, row by row."""
        return [[column.text(value) for column, value in zip(self.columns, row, strict=True)] for row in self.rows]

    def json(self) -> list[dict[str, Any]]:
        """One object of raw values per row; infinite and unknown values are null."""
        return [
            {column.name: json_value(value) for column, value in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]


def json_value(value: Value) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, Estimate):
        return {"value": json_value(value.value), "margin": json_value(value.margin)}
    if isinstance(value, LabelInterval):
        return {"low": json_value(value.low), "high": json_value(value.high)}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(document: Any) -> str:
    """A document of raw values as the text of a JSON file."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


GAP = 2
READABLE = 24  # letters: texts are cut to this length before columns are dropped, and further only after that
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
        widths[max(wide, key=lambda i: widths[i])] -= 1  # always the widest, so that all are cut alike
    lines = [
        (" " * GAP).join(_cell(columns[i][line], widths[i], right=rows.columns[i].numeric) for i in shown).rstrip()
        for line in range(len(rows.rows) + 1)
    ]
    left_out = [column.heading for i, column in enumerate(rows.columns) if i not in shown]
    if left_out:
        more = f"A wider terminal shows {several(len(left_out), 'more column')}: {', '.join(left_out)}."
        lines += textwrap.wrap(more, width)
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
    """The beginning and the end of a text: addresses often begin the same way, and other texts end the same way.

    >>> _cut("https://example.com/shoes/sku-1", 16)
    'https:/…es/sku-1'
    """
    before, after = ([*accumulate(map(letters, way))] for way in (text, reversed(text)))
    start, end = bisect(before, (width - 1) // 2), bisect(after, width // 2)
    return text[:start] + "…" + text[len(text) - end :]
