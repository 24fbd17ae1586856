"""All places: the table that `clickmix inspect` prints, and how the fit was made."""

from __future__ import annotations

from dataclasses import replace

from clickmix.errors import several
from clickmix.report.pages import Section
from clickmix.report.section import SECTIONS, LogReport

MOST_ROWS = 200


@SECTIONS.register("places", help="Every place with its rates and its verdict.")
class PlacesSection:
    """A row per place."""

    order = 90

    def section(self, report: LogReport) -> Section | None:
        """None without a mixture."""
        if report.results is None:
            return None
        places = report.results.places
        left = len(places.rows) - MOST_ROWS
        more = [f"{several(left, 'more place')} {'is' if left == 1 else 'are'} in the model file."] if left > 0 else []
        table = replace(places, rows=places.rows[:MOST_ROWS], notes=[*more, *places.notes])
        return Section("All places", points=report.results.notes, rows=[table], folded=True)
