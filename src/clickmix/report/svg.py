"""Figure -> SVG, as text: no library, the same bytes every time, colours from the style sheet (light, dark, print)."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import accumulate, groupby
from unicodedata import east_asian_width

from clickmix.errors import printable
from clickmix.report.figures import COLOURS, Axis, Bars, Colour, Figure, Line, Mark, Panel, spans
from clickmix.report.scales import AxisScale, shown, tick_text, ticks

WIDTH = 360  # a phone's width; wider screens show figures side by side
LEFT, RIGHT = 50, 20  # margins
LETTER, WIDE_LETTER = 7.2, 12.5  # about how wide letters are
KEY = 34  # a legend's sample of a line or bar, with the room around it
LINE_HEIGHT = 18
DASHES = ("", "7 3", "2 3", "7 3 2 3", "1 4", "10 4", "4 2")  # for colour-blind readers, and for paper
Place = tuple[float, float]
BAR = "bar"  # instead of dashes


def figure_svg(figure: Figure, *, standalone: bool = False) -> str:
    """The figure as an SVG element; `standalone` makes it a whole file, with the style sheet inside.

    >>> from clickmix.report import Axis, Line, Panel
    >>> panel = Panel(Axis("nDCG@10", 0, 1), [Line("mine", [1, 2], [0.4, 0.5])])
    >>> figure_svg(Figure("A figure", Axis("position"), [panel]), standalone=True)[:4]
    '<svg'
    """
    keys, legend, top = _keys(figure), [], 4.0
    for row in _legend_rows(list(keys)):
        legend.append(_legend_row(row, keys, top))
        top += LINE_HEIGHT
    x = AxisScale(*spans(figure.x, _across(figure)), LEFT, WIDTH - RIGHT, figure.x.log)
    drawn = []
    for panel in figure.panels:
        drawn.append("".join(_panel(panel, figure.x, x, keys, top)))
        top += LINE_HEIGHT + 12 + panel.height
    bottom = _x_labels(figure.x, x, top)
    height = top + 2 * LINE_HEIGHT
    style = f"<style>{package_file('figure.css')}</style>" if standalone else ""
    paper = f'<rect class="paper" width="{WIDTH}" height="{_n(height)}"/>' if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {WIDTH} {_n(height)}" role="img" '
        f'aria-label="{escaped(figure.title)}">{style}{paper}{"".join(legend)}{"".join(drawn)}{bottom}</svg>'
    )


def package_file(name: str) -> str:
    """A style sheet, template or script of this package."""
    return (files("clickmix.report") / name).read_text(encoding="utf-8")


def _keys(figure: Figure) -> dict[str, tuple[Colour, str]]:
    """Colour and dashes of each name, the same in all panels; lines of one panel differ in both."""
    taken = {mark.colour for panel in figure.panels for mark in panel.marks}
    free = [colour for colour in COLOURS if colour not in taken] or list(COLOURS)
    keys: dict[str, tuple[Colour, str]] = {}
    for panel in figure.panels:
        lines = dict.fromkeys(mark.name for mark in panel.marks if isinstance(mark, Line))
        dashes = {name: DASHES[i % len(DASHES)] for i, name in enumerate(lines)}
        for mark in panel.marks:
            colour = mark.colour or free[len(keys) % len(free)]
            keys.setdefault(mark.name, (colour, dashes.get(mark.name, BAR)))
    return keys


def _legend_rows(names: list[str]) -> list[list[str]]:
    """Names in rows, as many in each as fit. Marks without a name need no legend."""
    rows: list[list[str]] = []
    room = 0.0
    for name in filter(None, names):
        needed = KEY + _width(_fitting(name))
        if needed > room:
            rows.append([])
            room = WIDTH - 8
        rows[-1].append(name)
        room -= needed
    return rows


def _legend_row(names: list[str], keys: dict[str, tuple[Colour, str]], top: float) -> str:
    parts, left, middle = [], 4.0, top + LINE_HEIGHT / 2
    for name in names:
        colour, dash = keys[name]
        if dash == BAR:
            parts.append(f'<rect class="bar {colour}" x="{_n(left)}" y="{_n(middle - 5)}" width="18" height="10"/>')
        else:
            parts.append(_stroke([(left, middle), (left + 20, middle)], colour, dash))
        parts.append(f'<text x="{_n(left + 24)}" y="{_n(middle + 4)}">{escaped(_fitting(name))}</text>')
        left += KEY + _width(_fitting(name))
    return "".join(parts)


def _panel(panel: Panel, x_axis: Axis, x: AxisScale, keys: dict[str, tuple[Colour, str]], top: float) -> Iterator[str]:
    start = top + LINE_HEIGHT + 6
    heights = [value for mark in panel.marks for value in _heights(mark)]
    y = AxisScale(*spans(panel.y, heights), start + panel.height, start, panel.y.log)
    yield f'<text class="axis-name" x="4" y="{_n(top + 13)}">{escaped(_fitting(panel.y.label))}</text>'
    for value in ticks(y.low, y.high, log=panel.y.log, whole=panel.y.whole, about=max(2, panel.height // 35)):
        at, text = y.place(value), tick_text(value, percent=panel.y.percent)
        yield f'<path class="grid" d="M{LEFT} {_n(at)}H{WIDTH - RIGHT}"/>'
        yield f'<text class="tick left" x="{LEFT - 6}" y="{_n(at + 4)}">{text}</text>'
    for value in ticks(x.low, x.high, log=x_axis.log, whole=x_axis.whole):
        yield f'<path class="grid" d="M{_n(x.place(value))} {_n(start)}v{panel.height}"/>'
    yield f'<path class="frame" d="M{LEFT} {_n(start + panel.height)}H{WIDTH - RIGHT}"/>'
    for mark in panel.marks:
        colour, dash = keys[mark.name]
        hint = (x_axis, panel.y)
        yield from _bars(mark, x, y, colour, hint) if isinstance(mark, Bars) else _line(mark, x, y, colour, dash, hint)


def _x_labels(axis: Axis, x: AxisScale, top: float) -> str:
    labels = []
    for value in ticks(x.low, x.high, log=axis.log, whole=axis.whole):
        text = tick_text(value, percent=axis.percent)
        labels.append(f'<text class="tick middle" x="{_n(x.place(value))}" y="{_n(top + 8)}">{text}</text>')
    middle = _n((LEFT + WIDTH - RIGHT) / 2)
    labels.append(
        f'<text class="axis-name middle" x="{middle}" y="{_n(top + 28)}">{escaped(_fitting(axis.label))}</text>'
    )
    return "".join(labels)


def _bars(mark: Bars, x: AxisScale, y: AxisScale, colour: Colour, axes: tuple[Axis, Axis]) -> Iterator[str]:
    for left, right, height in zip(mark.edges[:-1], mark.edges[1:], mark.heights, strict=True):
        a, b, top = x.place(left), x.place(right), y.place(height)
        if height <= 0 or b <= a:
            continue
        span = f"{shown(left, percent=axes[0].percent)} to {shown(right, percent=axes[0].percent)}"
        hint = escaped(f"{span}: {shown(height, percent=axes[1].percent)}")
        box = f'x="{_n(a)}" y="{_n(top)}" width="{_n(max(b - a - 0.6, 0.4))}" height="{_n(y.start - top)}"'
        yield f'<rect class="bar {colour}" {box}><title>{hint}</title></rect>'


def _line(mark: Line, x: AxisScale, y: AxisScale, colour: Colour, dash: str, axes: tuple[Axis, Axis]) -> Iterator[str]:
    drawable = [math.isfinite(left) and math.isfinite(height) for left, height in zip(mark.x, mark.y, strict=True)]
    places = [
        (x.place(left), y.place(height)) if drawn else None
        for left, height, drawn in zip(mark.x, mark.y, drawable, strict=True)
    ]
    yield from _intervals(mark, places, y, colour)
    for run, joined in groupby(places, key=bool):
        if run:
            yield _stroke([place for place in joined if place], colour, dash)
    for i, place in enumerate(places if mark.points else ()):
        if place:
            at, height = (shown(v, percent=a.percent) for v, a in zip((mark.x[i], mark.y[i]), axes, strict=True))
            hint = escaped(f"{mark.name}, {axes[0].label} {at}: {height}".strip(", "))
            centre = f'cx="{_n(place[0])}" cy="{_n(place[1])}"'
            yield f'<circle class="dot {colour}" {centre} r="3"><title>{hint}</title></circle>'


def _intervals(mark: Line, places: Sequence[Place | None], y: AxisScale, colour: Colour) -> Iterator[str]:
    for place, low, high in zip(places, mark.low, mark.high, strict=False):
        if place and math.isfinite(low) and math.isfinite(high):
            yield f'<path class="interval {colour}" d="M{_n(place[0])} {_n(y.place(low))}V{_n(y.place(high))}"/>'


def _stroke(places: Sequence[Place], colour: Colour, dash: str) -> str:
    path = "L".join(f"{_n(left)} {_n(top)}" for left, top in places)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path class="line {colour}" d="M{path}"{dashes}/>' if len(places) > 1 else ""


def _across(figure: Figure) -> list[float]:
    marks = [mark for panel in figure.panels for mark in panel.marks]
    return [value for mark in marks for value in (mark.edges if isinstance(mark, Bars) else mark.x)]


def _heights(mark: Mark) -> tuple[float, ...]:
    return (0.0, *mark.heights) if isinstance(mark, Bars) else (*mark.y, *mark.low, *mark.high)


def _fitting(text: str) -> str:
    """As much of a text as fits next to a legend's sample."""
    shown = printable(text)
    if _width(shown) <= WIDTH - KEY - 8:
        return shown
    widths = list(accumulate(map(_width, shown)))
    return shown[: bisect(widths, WIDTH - KEY - 8 - WIDE_LETTER)] + "…"


def _width(text: str) -> float:
    """About how wide a text is."""
    wide = sum(letter in "mwMW@%—…" or east_asian_width(letter) in "WF" for letter in text)
    return wide * WIDE_LETTER + (len(text) - wide) * LETTER


def _n(value: float) -> str:
    """A coordinate, short."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def escaped(text: str) -> str:
    """A text for HTML and SVG, without control characters."""
    return escape(printable(text))
