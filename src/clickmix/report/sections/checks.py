"""Checks: what a mixture cannot explain, each as pass, note or fail with its size."""

from __future__ import annotations

from collections import Counter

from clickmix.corrections.check import NOTE_BELOW
from clickmix.report.pages import Section
from clickmix.report.section import SECTIONS, LogReport


@SECTIONS.register("checks", help="Whether the log meets the assumptions.")
class Checks:
    """A row per check."""

    order = 50

    def section(self, report: LogReport) -> Section | None:
        """None if the correction makes no such assumptions."""
        if report.results is None:
            return None
        checks, left_out = report.results.checks, report.results.not_checked
        if not checks.rows:
            return Section("Checks", ["The assumptions of the model were not checked on this log."])
        outcomes = Counter(str(row[0]) for row in checks.rows)
        summary = ", ".join(f"{outcomes[name]} {name}" for name in ("fail", "note", "pass") if outcomes[name])
        prose = (
            f"These checks look for what would make labels wrong: {summary}. In a log that meets the assumptions, the "
            "statistic stays below the limit. Above it, a check fails if labels would change by "
            f"{NOTE_BELOW:g} or more (root mean square), and is a note if they would change less."
        )
        names = "; ".join(f"whether {violation}" for violation in left_out)
        missing = [f"Not checked, because there are too few queries or positions: {names}."]
        return Section("Checks", [prose, *(missing if left_out else [])], rows=[checks])
