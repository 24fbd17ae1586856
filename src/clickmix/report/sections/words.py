"""Words: what the terms of the report mean."""

from __future__ import annotations

from clickmix.report.glossary import GLOSSARY
from clickmix.report.pages import Section
from clickmix.report.section import SECTIONS, LogReport


@SECTIONS.register("words", help="What the words of the report mean.")
class Words:
    """The glossary."""

    order = 100

    def section(self, report: LogReport) -> Section:
        """Every term with its meaning."""
        return Section("What the words mean", terms=sorted(GLOSSARY.items(), key=lambda term: term[0].lower()))
