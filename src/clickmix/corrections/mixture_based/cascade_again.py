"""A cascade fitted again to a part of a log, to predict clicks in the rest.   MixtureFit, Counts -> MixtureFit, cells

The lists of the rest are put into the groups of the fit by walking down with the labels of the fitted part, so clicks
in the rest decide nothing. A document that only the rest shows has the label that its group gives before any click.
"""

from __future__ import annotations

from dataclasses import dataclass

from clickmix.corrections.click_rates import PlacedCells, placed_cells
from clickmix.corrections.mixture import MixtureCorrection, fit_walked
from clickmix.corrections.mixture_based.cascade import fit_cascade
from clickmix.corrections.mixture_based.cascade_walk import ABOVE, walk_again
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.engines.sql import listed, literal
from clickmix.groups.places import read_places
from clickmix.mixtures.kinds.kind import GRADES
from clickmix.types import Floats


@dataclass(frozen=True)
class CascadeAgain:
    """A cascade fitted to a part of a log, the part in its groups, and a table with the part's labels."""

    fitted: MixtureFit
    grouped: Counts
    labels: str

    @classmethod
    def of(cls, fitted: MixtureFit, part: Counts) -> CascadeAgain:
        """Fit a part with the settings and number of grades of a fit; the part finds its own patterns and groups."""
        # If clicks at the first position say nothing, nothing was shared there, whatever the settings.
        sharing = fitted.shared or not fitted.groups[0].mixture.informative
        grades = min(fitted.grades, GRADES[-1])  # a nonparametric mixture can have more, and chooses them again
        settings = MixtureCorrection(fitted.mixture, fitted.prior, grades=grades, sharing=sharing)
        again, grouped = fit_cascade(
            part, lambda cells, _: fit_walked(settings, cells, grades), examination=fitted.examination
        )
        return cls(again, grouped, part.engine.keep(again.label(grouped).sql))

    def click_rates(self, rest: Counts) -> tuple[PlacedCells, Floats]:
        """The cells of the rest of the log, in groups, and the probability of a click in each."""
        seen, asked = placed_cells(self.grouped, walk_again(rest, self.fitted.steps, self._known_labels))
        return asked, self.fitted.rates_in_groups(seen, asked.hidden())

    def _known_labels(self, recent: Counts) -> str:
        """SQL for the labels of documents: the part's, or the mean of what their groups say before any click."""
        rows = []
        for place in read_places(recent):
            prior = self.fitted.prior_at(self.fitted.number_of(place), 1)
            mean = sum(k * share for k, share in enumerate(prior)) / (len(prior) - 1)
            rows.append(f"({place.position}, {literal(*place.context)}, CAST({mean!r} AS DECIMAL(18, 12)))")
        return (
            "SELECT query_id, doc_id, coalesce(any_value(known.relevance), avg(new.relevance)) AS relevance "
            f"FROM {recent.table} JOIN (VALUES {listed(rows)}) AS new(position, {ABOVE}, relevance) "
            f"USING (position, {ABOVE}) LEFT JOIN {self.labels} AS known USING (query_id, doc_id) "
            "GROUP BY query_id, doc_id"
        )

    def relevance(self, documents: str) -> Floats:
        """The label of every document of a table, by query and document; 0 if the part does not show it."""
        columns = self.grouped.engine.fetch(
            f"SELECT coalesce(relevance, 0) AS relevance FROM (SELECT DISTINCT query_id, doc_id FROM {documents}) "
            f"LEFT JOIN {self.labels} USING (query_id, doc_id) ORDER BY query_id, doc_id"
        )
        return columns["relevance"]
