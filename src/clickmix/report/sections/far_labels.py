"""Far labels: documents whose label is furthest from their click-through rate, with the evidence."""

from __future__ import annotations

from clickmix.report.evidence import evidence_sentences
from clickmix.report.log_numbers import FarLabel, read_far_labels
from clickmix.report.pages import Section
from clickmix.report.rows import Column, Rows, percent
from clickmix.report.section import SECTIONS, LogReport

COLUMNS = (
    Column("query_id", "text", title="query"),
    Column("doc_id", "text", title="document"),
    Column("clicked", "sentence"),
    Column("label", "sentence"),
    Column("why", "sentence"),
)


@SECTIONS.register("far labels", help="Labels furthest from click-through rates.")
class FarLabels:
    """Much clicked but not relevant, and little clicked but relevant."""

    order = 80

    def section(self, report: LogReport) -> Section:
        """Two tables, of queries that may be shown."""
        down, up = read_far_labels(report.labels, among=report.queries.among)
        tables = [
            Rows(COLUMNS, tuple(_row(each, report) for each in documents), caption, cards=True)
            for caption, documents in (("Much clicked, but not relevant", down), ("Little clicked, but relevant", up))
            if documents
        ]
        prose = (
            "These labels differ most from click-through rates. The first documents are clicked because of where they "
            "are shown. The others are rarely clicked because few people look there, but more often than usual there."
            if tables
            else "No label is far from its document's click-through rate."
        )
        return Section("Labels furthest from click-through rates", [prose], rows=tables, folded=True)


def _row(far: FarLabel, report: LogReport) -> tuple[str | None, ...]:
    clicked = f"{far.clicks:,} of {far.impressions:,} times ({percent(far.clicks / far.impressions)})"
    interval = f" ({far.interval[0]:.2f} to {far.interval[1]:.2f})" if far.interval else ""
    why = evidence_sentences(report.fitted, report.counts, far.query_id, far.doc_id)
    return str(far.query_id), str(far.doc_id), clicked, f"{far.relevance:.2f}{interval}", why
