"""The click rates that a fitted mixture expects: each grade's rate, weighted by the document's grades.

The grades of a document are those of its label: the prior of its places and the evidence of its cells. A document that
was not seen has the prior of the place that is asked for. Where queries differ, all documents of a query tell how.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from clickmix.corrections.click_rates import PlacedCells
from clickmix.mixtures.log_model import LogModel
from clickmix.mixtures.mixture import Group
from clickmix.types import Floats, Ints

if TYPE_CHECKING:
    from clickmix.mixtures.hierarchical.cells import Cells


def grouped_click_rates(groups: Sequence[Group], seen: PlacedCells, asked: PlacedCells) -> Floats:
    """The probability of a click in each asked cell; `groups` has the group of each place."""
    grades = len(groups[0].prior)
    prior = np.array([group.prior_logits for group in groups])  # place x grade above 0
    evidence = np.zeros((grades - 1, len(seen.place)))
    for place, group in enumerate(groups):
        rows = np.flatnonzero(seen.place == place)
        numbers = group.mixture.evidence(grades=grades)
        evidence[:, rows] = numbers.log_ratios(seen.impressions[rows], seen.clicks[rows]).reshape(grades - 1, -1)
    shown = seen.by_document(seen.impressions)
    known = shown[asked.document] > 0
    logs = np.zeros((grades, len(asked.place)))
    for k in range(1, grades):
        weighed = seen.by_document(seen.impressions * prior[seen.place, k - 1]) / np.maximum(shown, 1)
        own = (weighed + seen.by_document(evidence[k - 1]))[asked.document]
        logs[k] = np.where(known, own, prior[asked.place, k - 1])
    posterior = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
    # A group in which clicks say nothing has one rate, whatever the grade.
    rates = np.array([np.broadcast_to(group.mixture.rates, grades) for group in groups])
    return np.asarray(np.einsum("kc,ck->c", posterior, rates[asked.place]))


def model_click_rates(
    model: LogModel, number: Ints, seen: PlacedCells, asked: PlacedCells, *, usual: bool = False
) -> Floats:
    """The same of a model of the whole log; `number` has the model's place for each place.

    Those that are `usual` for the document's grades leave out what its own clicks at the place say of its appeal there.
    """
    from clickmix.mixtures.hierarchical.label import predict  # late: scipy is slow to load

    # Of a document that was not seen the places are known, with no impression.
    new = seen.by_document(seen.impressions)[asked.document] == 0
    nothing = np.zeros(int(new.sum()))
    document = np.concatenate([seen.document, asked.document[new]])
    place = number[np.concatenate([seen.place, asked.place[new]])]
    shown, clicks = (np.concatenate([part, nothing]) for part in (seen.impressions, seen.clicks))
    cells, entry = _model_cells(model, seen.query, document, place, shown, clicks)
    own_shown, own_clicks = np.zeros(len(asked.place)), np.zeros(len(asked.place))
    if not usual:
        keys, at = np.unique(document * len(model.positions) + place, return_inverse=True)
        wanted = asked.document * len(model.positions) + number[asked.place]
        own = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        here = keys[own] == wanted
        own_shown, own_clicks = (np.where(here, np.bincount(at, part)[own], 0.0) for part in (shown, clicks))
    return predict(model.model, cells, entry[asked.document], number[asked.place], own_shown, own_clicks)


def model_relevance(model: LogModel, number: Ints, seen: PlacedCells) -> Floats:
    """The label of every document; 0 for one without cells."""
    from clickmix.mixtures.hierarchical.label import label

    cells, entry = _model_cells(model, seen.query, seen.document, number[seen.place], seen.impressions, seen.clicks)
    return np.asarray(np.where(entry >= 0, label(model.model, cells).relevance[entry], 0.0))


def fitted_to(model: LogModel, number: Ints, seen: PlacedCells) -> LogModel:
    """The model with parameters from these cells, climbed to from its own."""
    from clickmix.mixtures.hierarchical.climb import climb

    cells, _ = _model_cells(model, seen.query, seen.document, number[seen.place], seen.impressions, seen.clicks)
    return LogModel.of(climb(cells, model.model)[0])


def _model_cells(
    model: LogModel, query: Ints, document: Ints, place: Ints, impressions: Floats, clicks: Floats
) -> tuple[Cells, Ints]:
    """Cells at the model's places; and the entry of each document, -1 for one without cells."""
    from clickmix.mixtures.hierarchical.cells import Cells

    present, code = np.unique(document, return_inverse=True)
    queries, of_document = np.unique(query[present], return_inverse=True)
    cells, entry = Cells.of_documents(
        model.model.places, of_document, code, place, impressions, clicks, queries=len(queries)
    )
    entries = np.full(len(query), -1)
    entries[present] = entry
    return cells, entries
