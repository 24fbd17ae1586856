"""What changed: how labels moved since the previous file."""

from __future__ import annotations

from dataclasses import replace

from clickmix.errors import several
from clickmix.report.pages import Section
from clickmix.report.rows import number_text, percent
from clickmix.report.section import SECTIONS, LogReport

MOST_ROWS = 10


@SECTIONS.register("changes", help="What changed since the previous labels.")
class Changes:
    """Documents new, gone and moved, and the labels that moved furthest."""

    order = 10

    def section(self, report: LogReport) -> Section | None:
        """None without previous labels."""
        changes = report.changes
        if changes is None:
            return None
        furthest = changes.furthest.rows
        shown = report.queries.may_show([str(row[0]) for row in furthest])
        rows = tuple(row for row in furthest if str(row[0]) in shown)[:MOST_ROWS]
        table = replace(changes.furthest, rows=rows)
        far = percent(changes.far / changes.both) if changes.far else "none"
        both = f"{several(changes.both, 'document')} had a label before and have one now."
        if not changes.both:
            prose = "No document has a label in both files. Check that both are labels of the same log."
        elif not changes.mean_move:
            prose = f"{both} No label changed."
        else:
            mean = number_text(changes.mean_move)
            prose = f"{both} On average these labels changed by {mean}, {far} of them by more than 0.1."
        facts = [
            ("moved by more than 0.1", f"{changes.far:,}"),
            ("new documents", f"{changes.new:,}"),
            ("documents gone", f"{changes.gone:,}"),
        ]
        hidden = ["The labels that moved furthest are not shown: their queries are rare (--report-min-sessions)."]
        reason = hidden if furthest and not rows else []
        return Section("What changed since the previous labels", [prose, *reason], facts, rows=[table] if rows else [])
