"""Counted: one row per query, document and position, with impressions and clicks.   sources -> parts"""

from __future__ import annotations

from typing import ClassVar

from clickmix.log.layout import COUNTED, LAYOUTS, Measures, Part, Roles, key_problems, whole
from clickmix.log.layouts.rows import RowLayout
from clickmix.log.open import list_path, looks_like_lists
from clickmix.log.refused import BadValue
from clickmix.log.source import Source


@LAYOUTS.register("counted", help="Rows with impressions and clicks, such as the counts that clickmix writes.")
class Counted(RowLayout):
    """Rows that are already counted; several rows of one cell add up."""

    roles: ClassVar[tuple[str, ...]] = ("query_id", "doc_id", "position", *COUNTED, "list")
    measured: ClassVar[tuple[str, ...]] = COUNTED
    row_is_impression: ClassVar[bool] = False
    list_role: ClassVar[str] = "list"

    def recognises(self, source: Source, roles: Roles) -> bool:
        """Whether the source has impressions or clicks, and no clicks of single impressions or of lists."""
        found = [roles.column(role) in source.types for role in COUNTED]
        in_lists = list_path(source, roles.column("doc_ids")) or (looks_like_lists(source, roles) and not all(found))
        return any(found) and roles.column("clicked") not in source.types and not in_lists

    def measures(self, part: Part) -> Measures:
        """Impressions and clicks add up."""
        n, c = (whole(part.source, part.column(role)) for role in COUNTED)
        good = f"{n} >= 0 AND {c} >= 0 AND {c} <= {n}"
        return Measures(good, f", {n} AS n, {c} AS c", "sum(n) AS impressions, sum(c) AS clicks")

    def problems(self, part: Part) -> list[BadValue]:
        """Bad keys, numbers that cannot be counts, and more clicks than impressions."""
        n, c = (whole(part.source, part.column(role)) for role in COUNTED)
        impressions, clicks = (part.column(role) for role in COUNTED)
        return [
            *key_problems(part),
            BadValue(impressions, f"coalesce({n}, -1) < 0", "impressions is not a whole number of 0 or more"),
            BadValue(clicks, f"coalesce({c}, -1) < 0", "clicks is not a whole number of 0 or more"),
            BadValue(clicks, f"{c} > {n}", "clicks are more than impressions"),
        ]
