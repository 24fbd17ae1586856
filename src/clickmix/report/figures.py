"""Figures as data: axes labelled in words, and the lines and bars between them.   numbers -> Figure -> svg"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import SettingError
from clickmix.report.scales import round_up

Numbers = Sequence[float] | NDArray[Any]  # kept as tuples of floats
Colour = Literal["blue", "vermillion", "green", "purple", "orange", "sky", "grey"]
COLOURS: tuple[Colour, ...] = ("blue", "vermillion", "green", "purple", "orange", "sky", "grey")
LEAST_ON_LOG = 1e-100  # smaller values are not drawn on a log axis


@dataclass(frozen=True)
class Axis:
    """An axis: what it shows, in words, and its two ends, by default those of the data.

    `whole` puts ticks at whole numbers only, as for positions.

    >>> Axis("clicks in the log", log=True).log
    True
    """

    label: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    percent: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Line:
    """Points joined by a line; `low` and `high` give each an interval. A NaN breaks the line.

    >>> Line("labels", [1, 2, 3], [0.1, 0.4, 0.9]).name
    'labels'
    """

    name: str
    x: Numbers
    y: Numbers
    low: Numbers = ()
    high: Numbers = ()
    colour: Colour | None = None
    points: bool = True

    def __post_init__(self) -> None:
        for column in ("x", "y", "low", "high"):
            object.__setattr__(self, column, _numbers(getattr(self, column)))
        _check_lengths(self.name, len(self.x), {"y": self.y, "low": self.low or self.x, "high": self.high or self.x})
        if bool(self.low) != bool(self.high):
            raise SettingError(f"line {self.name!r}: low and high belong together; give both or neither.")


@dataclass(frozen=True)
class Bars:
    """A histogram: a height between each two neighbouring edges.

    >>> Bars("documents", [0, 0.5, 1], [7, 3]).name
    'documents'
    """

    name: str
    edges: Numbers
    heights: Numbers
    colour: Colour = "grey"

    def __post_init__(self) -> None:
        for column in ("edges", "heights"):
            object.__setattr__(self, column, _numbers(getattr(self, column)))
        _check_lengths(self.name, len(self.edges) - 1, {"heights": self.heights})


Mark = Line | Bars


@dataclass(frozen=True)
class Panel:
    """Lines and bars that share a vertical axis.

    >>> Panel(Axis("nDCG@10", 0, 1), [Line("mine", [1, 2], [0.4, 0.5])]).y.high
    1
    """

    y: Axis
    marks: Sequence[Mark]
    height: int = 150

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks", tuple(self.marks))


@dataclass(frozen=True)
class Figure:
    """One panel, or several below each other that share the horizontal axis; `note` explains the figure.

    >>> panel = Panel(Axis("nDCG@10", 0, 1), [Line("mine", [1, 2], [0.4, 0.5])])
    >>> Figure("nDCG@10 by position", Axis("position", whole=True), [panel]).title
    'nDCG@10 by position'
    """

    title: str
    x: Axis
    panels: Sequence[Panel]
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "panels", tuple(self.panels))
        if not any(panel.marks for panel in self.panels):
            raise SettingError(f"figure {self.title!r}: nothing to draw. Add a panel with a line or bars.")


def spans(axis: Axis, values: Iterable[float]) -> tuple[float, float]:
    """The two ends of an axis: those it sets, or those of the finite values (on a log axis, of those above 0).

    An axis from 0 ends at a round number; a log axis with a set start leaves some room at its end.

    >>> spans(Axis("position"), [1, 4, float("nan")]), spans(Axis("rate", low=0), [0.23])
    ((1.0, 4.0), (0.0, 0.25))
    """
    usable = [value for value in values if math.isfinite(value) and (value > LEAST_ON_LOG or not axis.log)]
    low = axis.low if axis.low is not None else min(usable, default=0.1 if axis.log else 0.0)
    high = axis.high if axis.high is not None else max(usable, default=1.0)
    if axis.low == 0 and axis.high is None:
        high = round_up(high)
    if axis.log and axis.low is not None and axis.high is None:
        high *= 1.3  # room above the highest bar
    if high <= low:  # a single value: some room around it
        return (low / 2, low * 2) if axis.log else (low - 0.5, low + 0.5)
    return float(low), float(high)


def _numbers(values: Numbers) -> tuple[float, ...]:
    return tuple(float(value) for value in np.asarray(values, dtype=np.float64))


def _check_lengths(name: str, expected: int, columns: dict[str, Numbers]) -> None:
    for column, values in columns.items():
        if len(values) != expected:
            raise SettingError(f"{name!r}: {len(values)} numbers in {column}, expected {expected}.")
