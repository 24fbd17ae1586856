"""Positions and rates: how clicks depend on the position, for all documents and for relevant and other ones."""

from __future__ import annotations

from typing import Any

from clickmix.groups.places import Histogram
from clickmix.report.figures import Axis, Figure, Line, Panel
from clickmix.report.log_numbers import thinned
from clickmix.report.mixture_figures import rates_figures, separation_figure
from clickmix.report.pages import Section
from clickmix.report.section import SECTIONS, LogReport

MOST_CONTEXTS = 6


@SECTIONS.register("positions", help="How clicks depend on the position.")
class PositionsSection:
    """Click-through rate by position; with a mixture the fitted rates, and how much clicks tell."""

    order = 30

    def section(self, report: LogReport) -> Section:
        """Figures by position."""
        prose = ["How often people click depends on where a document is shown, not only on how good it is."]
        fit, one = report.mixture, len({place.context for place in report.histogram.places}) == 1
        # With one context, the line of all documents among the fitted rates is the same.
        figures = [] if fit is not None and one else [_position_figure(report.histogram)]
        if fit is not None:
            prose.append(
                "So clickmix estimates two things at every position, from the clicks alone: how often relevant "
                "documents are clicked there, and how often documents that are not relevant are."
                if fit.grades == 2
                else "So clickmix estimates at every position, from the clicks alone, how often documents of each of "
                f"{fit.grades} grades of relevance are clicked there, from not relevant to most relevant."
            )
            figures += [*rates_figures(fit), separation_figure(fit)]
        return Section("Positions and rates", prose, figures=figures)


def _position_figure(histogram: Histogram) -> Figure:
    shown, clicked = histogram.total(histogram.impressions), histogram.total(histogram.clicks)

    def impressions(context: tuple[str, ...]) -> int:
        return sum(int(shown[i]) for i, place in enumerate(histogram.places) if place.context == context)

    contexts = sorted({place.context for place in histogram.places}, key=lambda c: (-impressions(c), c))
    lines = [_position_line(histogram, context, shown, clicked) for context in contexts[:MOST_CONTEXTS]]
    left = len(contexts) - MOST_CONTEXTS
    lowest = min((rate for line in lines for rate in line.y if rate > 0), default=1.0)
    some = f" The figure shows the {MOST_CONTEXTS} contexts with the most impressions and leaves out {left:,}."
    return Figure(
        "Click-through rate by position",
        Axis("position", whole=True),
        [Panel(Axis("click-through rate, logarithmic scale", lowest / 1.5, 1, log=True, percent=True), lines)],
        note="How often people click at each position. The rate falls with the position even if documents are equally "
        "good, so it is not relevance." + (some if left > 0 else ""),
    )


def _position_line(histogram: Histogram, context: tuple[str, ...], shown: Any, clicked: Any) -> Line:
    rows = [i for i, place in enumerate(histogram.places) if place.context == context]
    rows = [rows[i] for i in thinned(len(rows), 60)]
    name = ", ".join(value or "(none)" for value in context)
    return Line(name, [histogram.places[i].position for i in rows], [clicked[i] / shown[i] for i in rows])
