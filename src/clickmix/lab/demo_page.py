"""The report on the demo: labels and rankers compared with the known truth, then the report on its log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

from clickmix.counts.counts import Counts
from clickmix.report.figures import Axis, Colour, Figure, Line, Panel
from clickmix.report.log_page import log_page
from clickmix.report.pages import Listing, Page, Section

if TYPE_CHECKING:
    from clickmix.lab.demo import Demo, LabelsAndTruth

BINS = 10
FEWEST = 5  # documents in a bin: with fewer, a share says nothing


def demo_page(demo: Demo, counts: Counts, *, source: str, date: str = "") -> Page:
    """Whether it works, and the report that `clickmix debias --report` gives on such a log."""
    log = log_page(counts, demo.fit, sources=[source], correction="mixture", command=["clickmix", "demo"], date=date)
    sections = [_truth_section(demo), *([_rankers_section(demo)] if demo.rankers else []), *log.sections]
    return replace(log, title="clickmix demo", sections=sections)


def _truth_section(demo: Demo) -> Section:
    rates, labels = demo.known
    story = (
        "Simulated people made this log: they clicked on the results of an old search engine. So we know which "
        "documents are relevant. clickmix did not know; it saw only the clicks."
    )
    many = f"{int(labels.relevant.sum()):,}"
    text = (
        f"Of the {many} documents with the highest click-through rates, {rates.precision:.0%} are relevant. "
        f"Of the {many} with the highest clickmix labels, {labels.precision:.0%} are."
    )
    rows = [(known.name, f"{known.error:.3f}", f"{known.precision:.0%}") for known in demo.known]
    head = ("documents ordered by", "error", f"relevant among the first {many}")
    note = "error: root mean squared distance from the truth, which is 0 or 1."
    table = Listing(head, rows, notes=[note], numbers=frozenset({1, 2}))
    return Section("Does it work?", [text, story], figures=[calibration_figure(demo)], tables=[table])


def calibration_figure(demo: Demo) -> Figure:
    """The share of relevant documents by label, and by click-through rate."""
    colours: tuple[Colour, ...] = ("vermillion", "blue")  # as in the other figures
    lines = [_calibration_line(known, colour) for known, colour in zip(demo.known, colours, strict=True)]
    ideal = Line("ideal", [0, 1], [0, 1], colour="grey", points=False)
    return Figure(
        "Can the numbers be taken at their word?",
        Axis("click-through rate, or label", 0, 1),
        [Panel(Axis("share of documents that are relevant", 0, 1, percent=True), [*lines, ideal])],
        note="Of documents with a label of 0.7, about 70% should be relevant: labels should lie near the ideal line. "
        "Click-through rates do not: people often click a document at the top, relevant or not. Thin bars are 95% "
        "intervals.",
    )


def _calibration_line(known: LabelsAndTruth, colour: Colour) -> Line:
    """Mean value and share of relevant documents in each tenth between 0 and 1."""
    values = known.labels.relevance
    tenth = np.minimum((values * BINS).astype(int), BINS - 1)
    documents = np.bincount(tenth, minlength=BINS)
    enough = documents >= FEWEST
    n, total, k = (np.bincount(tenth, column, BINS)[enough] for column in (np.ones(len(tenth)), values, known.relevant))
    low, high = (betaincinv(k + 0.5, n - k + 0.5, tail) for tail in (0.025, 0.975))  # Jeffreys' interval of a share
    return Line(known.name, total / n, k / n, low, high, colour)


def _rankers_section(demo: Demo) -> Section:
    prose = (
        "This is what labels are for. A ranker was trained on each kind of label and measured on other queries, whose "
        "documents all have grades from 0 to 4. nDCG@10 is 1 if the best documents come first. A ranker trained on "
        "click-through rates partly learns where the old engine puts things. One trained on good labels should come "
        "close to the one trained on the truth."
    )
    return Section("And does it help a ranker?", [prose], tables=[demo.rankers] if demo.rankers else [])
