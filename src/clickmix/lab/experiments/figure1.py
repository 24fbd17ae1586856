"""Figure 1: click-through rates in, the labels of corrections out.   results -> Page"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickmix.features import Collection
from clickmix.lab.experiments.labels import TITLES, label
from clickmix.lab.experiments.ranking_tables import REGRESSION
from clickmix.lab.experiments.request import Request
from clickmix.lab.experiments.simulator import Log
from clickmix.lab.experiments.task import Experiment, Result, Results, Scenario, Task
from clickmix.report import Axis, Bars, Figure, Line, Page, Panel, Section
from clickmix.types import Floats

BINS = 30


def picture(task: Task, log: Log, estimate: Result | None) -> Result:
    """Documents at the task's position by click-through rate: how many are relevant, and their labels.

    Labels of a bin are given by their mean and the 5 % and 95 % quantiles.
    """
    k = task.position - 1
    rates, truth = log.train.rates[:, k], log.train.relevance[:, k]
    known = np.isfinite(rates)
    low, high = float(rates[known].min()), float(rates[known].max())
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    bins = np.clip(np.searchsorted(edges, rates[known], side="right") - 1, 0, BINS - 1)
    result: Result = {
        "edges": edges.tolist(),
        "relevant": np.bincount(bins[truth[known] > 0.5], minlength=BINS).tolist(),
        "not relevant": np.bincount(bins[truth[known] <= 0.5], minlength=BINS).tolist(),
    }
    for name in task.labels.split("+"):
        result[name] = _summary(bins, label(name, log, estimate=estimate, clipped=False).train[known, k])
    return result


def _summary(bins: NDArray[np.intp], values: Floats) -> dict[str, list[float | None]]:
    chosen = [values[bins == b] for b in range(BINS)]

    def each(of: Callable[[Floats], float]) -> list[float | None]:
        return [float(of(part)) if len(part) else None for part in chosen]

    return {
        "mean": each(lambda part: float(part.mean())),
        "low": each(lambda part: float(np.quantile(part, 0.05))),
        "high": each(lambda part: float(np.quantile(part, 0.95))),
    }


@dataclass(frozen=True)
class Pictures(Experiment):
    """Labels of the documents at some positions, in one run."""

    scenario: Scenario
    positions: tuple[int, ...]
    labels: tuple[str, ...]

    def tasks(self, request: Request) -> list[Task]:
        """One task per position."""
        regression = REGRESSION if "ac" in self.labels else ""
        return [
            Task("picture", 0, self.scenario, "+".join(self.labels), regression=regression, position=position)
            for position in self.positions
        ]

    def page(self, request: Request, collection: Collection, results: Results) -> Page:
        """One figure per position: labels above, documents below."""
        figures = [_figure(task, results[task.key], self) for task in self.tasks(request)]
        prose = [
            "How a document's label depends on its click-through rate, for users with normal bias (eta 1) and "
            "binarized relevance. Affine correction is a straight line; the mixture decides between two rates, and is "
            "surer with more impressions."
        ]
        return Page(self.title, prose=prose, sections=[Section("Labels by click-through rate", figures=figures)])


def _figure(task: Task, found: Result, pictures: Pictures) -> Figure:
    edges = found["edges"]
    middles = tuple((a + b) / 2 for a, b in itertools.pairwise(edges))
    # Bins without documents have None, which becomes NaN.
    lines = [
        Line(TITLES[name], middles, of["mean"], low=of["low"], high=of["high"])
        for name, of in ((name, found[name]) for name in pictures.labels)
    ]
    bars = [Bars("not relevant", edges, found["not relevant"]), Bars("relevant", edges, found["relevant"], "sky")]
    return Figure(
        f"Position {task.position}",
        Axis("click-through rate"),
        (Panel(Axis("label"), tuple(lines), height=180), Panel(Axis("documents"), tuple(bars))),
        "Means of documents with about the same rate; thin bars cover nine in ten of them.",
    )
