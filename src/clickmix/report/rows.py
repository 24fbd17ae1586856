"""Rows: results as data. Named columns, each with a kind, and rows of raw values; terminal, HTML and JSON draw them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from clickmix.report.words import WRITERS

Kind = Literal[
    "text", "sentence", "outcome", "count", "share", "rate", "label", "interval", "tenths", "number", "perplexity"
]
BAR = 11  # letters of an interval drawn in a terminal, from 0 to 1


@dataclass(frozen=True)
class Estimate:
    """A fitted value, and half its 95 % interval where that is known."""

    value: float
    margin: float | None = None


@dataclass(frozen=True)
class Interval:
    """A label between 0 and 1 and the ends of its interval, drawn as a bar.

    >>> str(Interval(0.5, 0.25, 1.0))
    '··━━━●━━━━━'
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        first, at, last = (round(end * (BAR - 1)) for end in (self.low, self.value, self.high))
        return "".join("●" if i == at else "━" if first <= i <= last else "·" for i in range(BAR))


Value = str | int | float | Estimate | Interval | None


@dataclass(frozen=True)
class Column:
    """A column: its name in JSON, the kind of its values, its title for people, and what it means.

    `rank` says how soon a drawer without room drops the column: the highest rank goes first, rank 0 stays.
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
        if isinstance(value, Estimate):
            margin = "" if value.margin is None else f" ±{self.text(float(f'{value.margin:.1g}'))}"
            return self.text(value.value) + margin
        return WRITERS[self.kind](value)


@dataclass(frozen=True)
class Rows:
    """A table of results: columns, and rows of raw values in the same order. `cards`: on a phone a row is a card."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str = ""
    notes: Sequence[str] = ()
    cards: bool = False

    def first(self, most: int) -> Rows:
        """The same table with at most so many rows."""
        return replace(self, rows=self.rows[:most])

    def texts(self) -> list[list[str]]:
        """Every value as people read it, row by row."""
        return [[column.text(value) for column, value in zip(self.columns, row, strict=True)] for row in self.rows]

    def json(self) -> list[dict[str, Any]]:
        """One object per row: raw values; what is infinite or unknown is null."""
        return [
            {column.name: json_value(value) for column, value in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]


def json_value(value: Value) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, Estimate):
        return {"value": json_value(value.value), "margin": json_value(value.margin)}
    if isinstance(value, Interval):
        return {"low": json_value(value.low), "high": json_value(value.high)}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(document: Any) -> str:
    """A document of raw values as the text of a JSON file."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
