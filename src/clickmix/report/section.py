"""Sections: the parts of the report on a log. A section is one file that registers itself.   LogReport -> Section

    @SECTIONS.register("clicks", help="How often people click.")
    class Clicks:
        order = 35

        def section(self, report: LogReport) -> Section | None:
            impressions, clicks = report.counts.totals()
            return Section("Clicks", [f"{clicks:,} of {impressions:,} impressions were clicked."])

adds a section between those of order 30 and 50. A section that is None is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.groups.places import Histogram
from clickmix.registry import Family
from clickmix.report.log_numbers import LabelBins, LabelTable
from clickmix.report.pages import Section
from clickmix.report.query_numbers import QueryTable
from clickmix.report.results import ChangeResults, FitResults


@dataclass(frozen=True)
class LogReport:
    """What a section can use: the counts, the fit, the labels, and what the caller said about them.

    Only a correction that fits a mixture has `mixture` and `results`, and only a report that was given previous labels
    has `changes`. `sources` are file names without folders. The tables are in the engine.

    >>> def clicks(report: LogReport) -> str:
    ...     return f"{report.counts.totals()[1]:,} clicks"
    """

    counts: Counts
    fitted: Any
    mixture: MixtureFit | None
    results: FitResults | None
    changes: ChangeResults | None
    histogram: Histogram
    labels: LabelTable
    bins: LabelBins
    queries: QueryTable
    correction: str
    sources: tuple[str, ...]
    command: str
    date: str


class LogSection(Protocol):
    """A member of the family: its place in the report, and its section."""

    order: int

    def section(self, report: LogReport) -> Section | None:
        """The section for this report, or None if there is nothing to say."""


SECTIONS: Family[LogSection] = Family("section", "clickmix.report.sections")


def log_sections(report: LogReport) -> list[Section]:
    """Every section that has something to say, in order."""
    members = sorted((member.make() for member in SECTIONS), key=lambda member: member.order)
    return [section for member in members if (section := member.section(report)) is not None]
