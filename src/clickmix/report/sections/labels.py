"""Labels: how many are near 0 and 1, and how many are unsure."""

from __future__ import annotations

import numpy as np

from clickmix.report.figures import Axis, Bars, Figure, Line, Panel
from clickmix.report.log_numbers import LabelBins
from clickmix.report.pages import Section
from clickmix.report.rows import percent
from clickmix.report.scales import log_start
from clickmix.report.section import SECTIONS, LogReport


@SECTIONS.register("labels", help="How labels are distributed.")
class LabelDistribution:
    """A histogram of labels and of the click-through rates they replace."""

    order = 55

    def section(self, report: LogReport) -> Section:
        """Shares of sure labels, the mean label, the mean interval, and the histogram."""
        bins, two = report.bins, report.mixture is not None and report.mixture.grades == 2
        between = "; the others are unsure" if two else ""
        mean = ": the share of relevant documents, as far as clicks can tell" if two else ""
        points = [
            f"{percent(bins.low)} of the documents have a label below 0.1, {percent(bins.high)} one of 0.9 or "
            f"more{between}.",
            f"The mean label is {bins.mean:.3f}{mean}.",
            *(
                [f"The interval of a label is {bins.interval:.2f} wide on average."]
                if bins.interval is not None
                else []
            ),
            *(
                ["To see what changed since the last labels, name their file with --previous."]
                if not report.changes
                else []
            ),
        ]
        return Section("The labels", points=points, figures=[labels_figure(bins, two=two)])


def labels_figure(bins: LabelBins, *, two: bool) -> Figure:
    """A histogram of labels and click-through rates; `two` grades are explained as relevant or not."""
    edges = np.linspace(0, 1, len(bins.labels) + 1)
    fewest = log_start([*bins.labels, *bins.rates])
    rates = np.maximum(bins.rates, fewest)
    line = Line("click-through rates", (edges[1:] + edges[:-1]) / 2, rates, colour="vermillion", points=False)
    bars = Bars("labels", edges, bins.labels, colour="blue")
    return Figure(
        "Labels, and the click-through rates they replace",
        Axis("label, or click-through rate", 0, 1),
        [Panel(Axis("documents, logarithmic scale", low=fewest, log=True), [bars, line])],
        note="Sure labels are at the ends: 0 is surely not relevant, 1 surely relevant."
        if two
        else "0 is not relevant, 1 most relevant.",
    )
