"""Held-out evidence: how well the model predicts clicks, whether two halves agree, what moving documents say."""

from __future__ import annotations

from clickmix.report.pages import Section
from clickmix.report.section import SECTIONS, LogReport

WHAT = (
    "The log was split into quarters. What the model learned from some of them was tested on the others. So the "
    "outcome does not rest on the model's assumptions."
)


@SECTIONS.register("held-out", help="What parts of the log say about each other.")
class HeldOut:
    """Predicted clicks, two halves, documents at neighbouring positions."""

    order = 45

    def section(self, report: LogReport) -> Section | None:
        """None if no evidence was taken from parts of the log."""
        found = report.results.held_out if report.results else None
        if found is None:
            return None
        rows = [rows for rows in (found.predictions, found.halves, found.moving) if rows.rows]
        return Section("Held-out clicks", [WHAT, *found.sentences], rows=rows)
