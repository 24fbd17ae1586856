"""Position by position: click-through rates with the fitted mixture over them, and the label each rate gets."""

from __future__ import annotations

from clickmix.groups.places import read_histogram
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
        some = f" The figures show {shown} of {all_groups:,}; for more, see all places." if shown < all_groups else ""
        humps = (
            "If a position has two kinds of documents, there are two humps; the lines show how many of each kind the "
            "fit expects."
            if fit.grades == 2
            else f"Documents of {fit.grades} grades make humps that overlap; the lines show what the fit expects."
        )
        effects = fit.model.effects.numbers if fit.model else ()
        alike = (
            " The lines are those of a typical query and a typical document of each grade. In this log they differ, so "
            "bars can spread further than the lines."
            if effects
            else ""
        )
        prose = (
            f"The grey bars count documents by click-through rate. {humps} The curve below is the label of a document "
            "with that rate. If the humps are apart, the label jumps between them; if they overlap, it rises slowly, "
            f"and many labels are unsure.{alike}{some}"
        )
        # The groups of a cascade are not the log's places: what is above a document decides.
        histogram = read_histogram(fit.in_groups(report.counts)) if fit.steps else report.histogram
        return Section("Position by position", [prose], figures=group_figures(fit, histogram), folded=True)
