"""What was read: how much, and which rows were refused."""

from __future__ import annotations

from dataclasses import replace

from clickmix.report.pages import Section
from clickmix.report.rows import Column, Rows, count_text, file_name, percent
from clickmix.report.section import SECTIONS, LogReport

REFUSED = (
    Column("reason", "sentence", title="why refused"),
    Column("rows", "count"),
    Column("example", "sentence", title="for instance"),
)


@SECTIONS.register("read", help="What was read and refused.")
class WhatWasRead:
    """Totals of the log, and its refused rows."""

    order = 60

    def section(self, report: LogReport) -> Section:
        """Totals, and a row per reason to refuse rows."""
        counts = report.counts
        impressions, clicks = counts.totals()
        numbers = {
            "impressions": impressions,
            "clicks": clicks,
            "queries": report.queries.queries,
            "labels": report.bins.documents,
            "positions": len({place.position for place in report.histogram.places}),
            "rows refused": sum(kind.rows for kind in counts.refused),
        }
        facts = [(name, count_text(count)) for name, count in numbers.items()]
        facts.insert(2, ("click-through rate", percent(clicks / impressions)))
        examples = [
            str(replace(kind.examples[0], where=file_name(kind.examples[0].where))) if kind.examples else None
            for kind in counts.refused
        ]
        rows = tuple((kind.reason, kind.rows, text) for kind, text in zip(counts.refused, examples, strict=True))
        table = Rows(REFUSED, rows, "Rows that were left out", cards=True)
        return Section("What was read", facts=facts, rows=[table] if rows else [], folded=True)
