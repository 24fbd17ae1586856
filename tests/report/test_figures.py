"""Figures: what is drawn is what was given, in colours everyone can tell apart, the same bytes every time."""

from __future__ import annotations

import itertools
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickmix.errors import SettingError
from clickmix.report import Axis, Bars, Figure, Line, Panel, figure_svg
from clickmix.report.scales import AxisScale, ticks
from clickmix.report.svg import WIDTH, package_file
from oracles_report import BLINDNESS, colours, contrast, difference, elements, svg

NAN = float("nan")
LIGHT, DARK = colours(package_file("figure.css"))
LINE_COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky", "grey")


def figure(*marks: Line | Bars, x: Axis | None = None, y: Axis | None = None) -> Figure:
    return Figure("a figure", x or Axis("position"), [Panel(y or Axis("rate", low=0), marks)])


def test_bars_are_as_high_as_their_numbers() -> None:
    bars = elements(figure_svg(figure(Bars("seen", [0, 1, 2, 3, 4], [1, 2, 0, 4]))), "rect", "bar")[1:]
    heights = [float(bar.get("height", "")) for bar in bars]
    assert [height / heights[0] for height in heights] == pytest.approx([1, 2, 4], abs=0.02)
    assert [bar.find("{*}title").text for bar in bars] == ["0 to 1: 1", "1 to 2: 2", "3 to 4: 4"]  # type: ignore[union-attr]


def test_points_stand_where_their_numbers_are() -> None:
    drawn = figure_svg(figure(Line("relevant", [1, 2, 4], [0, 5, 10])))
    centres = [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in elements(drawn, "circle", "dot")]
    (x1, y1), (x2, y2), (x4, y4) = centres
    assert (x2 - x1) / (x4 - x1) == pytest.approx(1 / 3, abs=0.001)
    assert (y1 - y2) / (y1 - y4) == pytest.approx(1 / 2, abs=0.001)


def test_a_log_axis_gives_every_factor_the_same_room() -> None:
    drawn = figure_svg(figure(Line("", [1, 2, 3], [0.01, 0.1, 1]), y=Axis("rate", log=True)))
    first, second, third = (float(dot.get("cy", "")) for dot in elements(drawn, "circle", "dot"))
    assert first - second == pytest.approx(second - third, abs=0.02)


def test_a_missing_number_breaks_the_line_and_has_no_point() -> None:
    drawn = figure_svg(figure(Line("", [1, 2, 3, 4, 5], [1, 1, NAN, 2, 2])))
    assert len(elements(drawn, "path", "line")) == 2
    assert len(elements(drawn, "circle", "dot")) == 4
    assert "nan" not in drawn


def test_intervals_reach_from_low_to_high() -> None:
    drawn = figure_svg(figure(Line("", [1, 2], [5, 5], [0, NAN], [10, NAN])))
    (interval,) = elements(drawn, "path", "interval")
    low, high = map(float, re.fullmatch(r"M\S+ (\S+)V(\S+)", interval.get("d", "")).groups())  # type: ignore[union-attr]
    assert low - high == pytest.approx(150)


def test_axes_and_legend_are_in_words() -> None:
    drawn = figure_svg(figure(Line("relevant", [1, 20], [0.1, 1]), y=Axis("click rate", 0, 1, percent=True)))
    texts = [element.text for element in svg(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert {"relevant", "position", "click rate", "50%", "100%"} <= set(texts)
    assert svg(drawn).get("aria-label") == "a figure"


def test_lines_differ_without_colours() -> None:
    drawn = figure_svg(figure(*(Line(f"line {i}", [1, 2], [i, i]) for i in range(4))))
    legend, plot = elements(drawn, "path", "line")[:4], elements(drawn, "path", "line")[4:]
    assert [line.get("stroke-dasharray") for line in legend] == [line.get("stroke-dasharray") for line in plot]
    assert len({line.get("stroke-dasharray") for line in plot}) == 4


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("colour", "least"), [("ink", 7), ("faint", 4.5), *((c, 3) for c in LINE_COLOURS[:-1])])
def test_text_and_lines_stand_out_from_the_paper(theme: dict[str, tuple[int, ...]], colour: str, least: float) -> None:
    assert contrast(theme[colour], theme["paper"]) >= least


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(["blue", "vermillion", "grey"], 2)))
def test_colours_that_meet_in_a_figure_differ_for_the_colour_blind(
    theme: dict[str, tuple[int, ...]], blindness: str, one: str, other: str
) -> None:
    assert difference(theme[one], theme[other], blindness) > 20


numbers = st.floats(-1e9, 1e9) | st.sampled_from([NAN, math.inf, -math.inf, 0.0])
points = st.lists(st.tuples(numbers, numbers), max_size=6)


@given(st.text(max_size=30), points, st.booleans(), st.booleans())
@example("", [(5e-324, 5e-324), (math.inf, 1e-300)], True, True)
def test_any_text_and_numbers_give_a_drawing_within_its_frame(
    text: str, points: list[tuple[float, float]], log: bool, whole: bool
) -> None:
    line = Line(text, [x for x, _ in points], [y for _, y in points])
    drawn = figure_svg(Figure(text, Axis(text, log=log, whole=whole), [Panel(Axis(text, log=log), [line])]))
    root = svg(drawn)
    height = float(root.get("viewBox", "").split()[3])
    centres = [(float(d.get("cx", "")), float(d.get("cy", ""))) for d in elements(drawn, "circle", "dot")]
    assert all(0 <= x <= WIDTH and 0 <= y <= height for x, y in centres)
    assert "nan" not in "".join(path.get("d", "") for path in root.iter())
    assert figure_svg(Figure(text, Axis(text, log=log, whole=whole), [Panel(Axis(text, log=log), [line])])) == drawn


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e9), st.booleans())
def test_ticks_are_round_within_the_axis_and_not_too_many(low: float, width: float, whole: bool) -> None:
    found = ticks(low, low + width, whole=whole)
    assert len(found) <= 12
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in found)
    assert found == sorted(set(found))


@given(st.floats(1e-9, 1e9), st.floats(1.01, 1e9))
def test_log_ticks_are_within_the_axis_and_not_too_many(low: float, factor: float) -> None:
    found = ticks(low, low * factor, log=True)
    assert len(found) <= 12
    assert all(low * (1 - 1e-6) <= tick <= low * factor * (1 + 1e-6) for tick in found)


def test_numbers_beyond_an_axis_are_drawn_at_its_border() -> None:
    scale = AxisScale(0, 1, 10, 20)
    assert (scale.place(-5), scale.place(7)) == (10, 20)


def test_a_figure_of_its_own_carries_its_style_and_paper() -> None:
    alone, inside = (figure_svg(figure(Line("", [1, 2], [1, 2])), standalone=alone) for alone in (True, False))
    assert "prefers-color-scheme: dark" in alone
    assert len(elements(alone, "rect", "paper")) == 1
    assert "<style>" not in inside


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Line("a", [1, 2], [1]), "'a': 1 numbers in y, expected 2."),
        (lambda: Line("a", [1], [1], low=[0]), "line 'a': low and high belong together; give both or neither."),
        (lambda: Bars("a", [0, 1], [1, 2]), "'a': 2 numbers in heights, expected 1."),
        (lambda: figure(), "figure 'a figure': nothing to draw. Add a panel with a line or bars."),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: object, message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        make()  # type: ignore[operator]
