"""Position by position: click-through rates with the fitted mixture over them, and the label each rate gets."""

from __future__ import annotations

from clickmix.report.mixture_figures import chosen_groups, group_figures
from clickmix.report.pages import Section
from clickmix.report.section import SECTIONS, LogReport


@SECTIONS.register("groups", help="What was fitted at each position.")
class Groups:
    """A figure per group, of some groups where there are many."""

    order = 70

    def section(self, report: LogReport) -> Section | None:
        """None without a mixture."""
        fit = report.mixture
        if fit is None:
            return None
        shown, all_groups = len(chosen_groups(fit)), len(fit.groups)
        some = f" Shown are {shown} of {all_groups:,}; the table of all places has more." if shown < all_groups else ""
        humps = (
            "If the documents at a position are of two kinds, there are two humps; the lines show how many of each "
            "kind the fit expects."
            if fit.grades == 2
            else f"Documents of {fit.grades} grades make humps that overlap; the lines show what the fit expects."
        )
        effects = fit.model.effects.numbers if fit.model else ()
        alike = (
            " The lines are those of a usual query and a usual document of each grade. In this log they differ, so "
            "bars can spread further than the lines."
            if effects
            else ""
        )
        prose = (
            f"Above, in grey: how many documents had which click-through rate. {humps} Below: the label that a "
            "document with such a rate gets. Where humps stand apart, the label jumps between them; where they "
            f"overlap, it rises slowly, and many labels are unsure.{alike}{some}"
        )
        return Section("Position by position", [prose], figures=group_figures(fit, report.histogram), folded=True)
