"""Counts: the model fitted to a log that an engine holds, and labels as SQL.   Counts -> HierarchicalFit -> Labels"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from clickmix.corrections.labels import Labels
from clickmix.counts.counts import Counts
from clickmix.engines.choose import embedded
from clickmix.engines.sql import aliases, listed
from clickmix.errors import InputError, SettingError
from clickmix.groups.places import Place, nearest, places_of
from clickmix.groups.sample import cells_query
from clickmix.mixtures.hierarchical.cells import Cells, Places, join_places
from clickmix.mixtures.hierarchical.choose import choose
from clickmix.mixtures.hierarchical.label import label
from clickmix.mixtures.hierarchical.problem import Model
from clickmix.types import Floats, Ints

NAME = "hierarchical"
MOST_IMPRESSIONS = 10**9  # of a cell: numpy deals out fewer


@dataclass(frozen=True, eq=False)
class _Rows:
    """Cells of a log in order of document: documents and queries numbered from 0 in order of their ids."""

    query: Ints  # per document
    document: Ints
    places: tuple[Place, ...]
    place: Ints
    impressions: Floats
    clicks: Floats

    @classmethod
    def read(cls, counts: Counts) -> _Rows:
        """Ask the embedded engine for all cells; ids stay there."""
        embedded(counts.engine, of=NAME)
        keys = listed(aliases(counts.keys))
        columns = counts.engine.fetch(
            "SELECT dense_rank() OVER (ORDER BY query_id) - 1 AS query, "
            f"dense_rank() OVER (ORDER BY query_id, doc_id) - 1 AS document, {keys}, impressions, clicks "
            f"FROM {cells_query(counts)} ORDER BY document, {keys}"
        )
        places, place = places_of(columns, counts.context)
        most = int(columns["impressions"].argmax())
        if columns["impressions"][most] >= MOST_IMPRESSIONS:
            raise InputError(
                f"{NAME}: {columns['impressions'][most]:,} impressions of one document found at "
                f"{places[place[most]].describe(counts.context)}, expected fewer than {MOST_IMPRESSIONS:,}. "
                "Use the mixture correction for this log."
            )
        first = np.flatnonzero(np.diff(columns["document"], prepend=-1))
        n, c = columns["impressions"].astype(np.float64), columns["clicks"].astype(np.float64)
        return cls(columns["query"][first], columns["document"], places, place, n, c)

    def cells(self, places: Places, place: Ints) -> tuple[Cells, Ints]:
        """The model's cells, with this place of the model for each row; and the entry of each document."""
        return Cells.of_documents(
            places, self.query, self.document, place, self.impressions, self.clicks, queries=int(self.query[-1]) + 1
        )


def fit_counts(counts: Counts, *, grades: int | None, seed: int) -> HierarchicalFit:
    """Choose and fit the model; with `grades` only the effects are chosen."""
    rows = _Rows.read(counts)
    contexts = sorted({place.context for place in rows.places})
    number = {context: i for i, context in enumerate(contexts)}
    of_context = np.array([number[place.context] for place in rows.places])
    position = np.array([place.position for place in rows.places])
    places, joined = join_places(position[rows.place], of_context[rows.place])
    model = choose(rows.cells(places, joined)[0], rng=np.random.default_rng(seed), grades=grades)
    known = np.empty(len(rows.places), dtype=np.int64)
    known[rows.place] = joined
    return HierarchicalFit(
        model, counts.context, dict(zip(rows.places, known.tolist(), strict=True)), chose_grades=grades is None
    )


@dataclass(frozen=True, eq=False)
class HierarchicalFit:
    """The fitted model, and which of its places each position and context of the log belongs to."""

    model: Model = field(repr=False)
    context: tuple[str, ...]
    places: dict[Place, int] = field(repr=False)
    chose_grades: bool = True

    @property
    def summary(self) -> str:
        """What was chosen and how, in three sentences."""
        model, effects = self.model, self.model.effects
        attention = f"attention differs between queries (deviation {model.attention:.2f}, {effects.attention} link)"
        found = [
            attention if effects.attention else "queries get the same attention",
            f"shares of relevant documents differ (deviation {model.shares:.2f})" if effects.shares else "equal shares",
            f"documents differ in appeal (correlation {model.appeal:.3f})" if effects.appeal else "equal appeal",
        ]
        end = "" if model.converged else " The fit was still improving when it stopped."
        return (
            f"The hierarchical model has {model.grades} grades; {', '.join(found)}. Held-out clicks chose "
            f"{'all of this' if self.chose_grades else 'this for the number of grades given'} among "
            f"{len(model.chosen)} models. It is experimental: compare its labels with those of mixture.{end}"
        )

    def label(self, counts: Counts) -> Labels:
        """The mean relevance of every document, and the interval that holds it with a probability of 95 %.

        A place that the fit has not seen is read as the nearest one that it has.
        """
        engine = embedded(counts.engine, of=NAME)
        if counts.context != self.context:
            raise SettingError(
                f"the model's context is {_named(self.context)}, the counts have {_named(counts.context)}. "
                "Count the log with the model's context columns."
            )
        rows = _Rows.read(counts)
        place = np.array([self._place(place) for place in rows.places])[rows.place]
        cells, entry = rows.cells(self.model.places, place)
        found = label(self.model, cells)
        table = engine.new_name(NAME)
        columns = {"relevance": found.relevance, "low": found.low, "high": found.high}
        engine.register(
            table, {"document": np.arange(len(entry))} | {key: values[entry] for key, values in columns.items()}
        )
        # Documents have the same numbers here as in _Rows: their ids never leave the engine.
        documents = (
            "SELECT query_id, doc_id, CAST(sum(impressions) AS BIGINT) AS impressions, CAST(sum(clicks) AS BIGINT) AS "
            "clicks, row_number() OVER (ORDER BY query_id, doc_id) - 1 AS document "
            f"FROM {counts.table} GROUP BY query_id, doc_id"
        )
        return Labels(
            counts,
            "SELECT query_id, doc_id, relevance, impressions, clicks, low, high "
            f"FROM ({documents}) AS documents JOIN {table} USING (document)",
        )

    def _place(self, place: Place) -> int:
        """The model's place that stands for this one."""
        if place in self.places:
            return self.places[place]
        known = list(self.places)
        return self.places[known[nearest(place, known)]]


def _named(context: Sequence[str]) -> str:
    return ", ".join(context) if context else "no context columns"
