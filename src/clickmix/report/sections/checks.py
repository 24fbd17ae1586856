"""Checks: what was looked for that a mixture cannot explain, each as pass, note or fail with its size."""

from __future__ import annotations

from collections import Counter

from clickmix.report.pages import Section
from clickmix.report.section import SECTIONS, LogReport


@SECTIONS.register("checks", help="Whether the log keeps the assumptions.")
class Checks:
    """A row per check."""

    order = 50

    def section(self, report: LogReport) -> Section | None:
        """None where the correction makes no such assumptions."""
        if report.results is None:
            return None
        checks = report.results.checks
        if not checks.rows:
            return Section("Checks", ["The assumptions of the model were not checked on this log."])
        outcomes = Counter(str(row[0]) for row in checks.rows)
        summary = ", ".join(f"{outcomes[name]} {name}" for name in ("fail", "note", "pass") if outcomes[name])
        prose = (
            f"What would make the labels wrong, looked for in this log: {summary}. A check fails when the size of the "
            "sign is above the limit, which logs that keep the assumptions stay below; it is a note from half the "
            "limit on."
        )
        return Section("Checks", [prose], rows=[checks])
