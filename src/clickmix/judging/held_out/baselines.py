"""What a search engineer would predict clicks with, from the cells of a part of a log.   cells -> click rates

The position's click rate, the smoothed click-through rate and smoothed COEC, as `corrections/` has them. They know
positions alone: contexts are added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from clickmix.corrections.click_rates import PlacedCells, position_rates
from clickmix.corrections.coec_smoothed import FittedSmoothedClicksOverExpected
from clickmix.corrections.ctr_smoothed import FittedSmoothedRate
from clickmix.corrections.empirical_bayes import fit_beta, fit_gamma
from clickmix.groups.places import Place, join_small
from clickmix.types import Floats


def baseline_rates(seen: PlacedCells, asked: PlacedCells) -> Iterator[tuple[str, Floats]]:
    """Each baseline by name, with the probability of a click in each of the asked cells."""
    yield "the position's click rate", position_rates(seen)[asked.place]
    yield "smoothed click-through rate", _smoothed_rate(seen).click_rates(seen, asked)
    expected = seen.by_document(seen.impressions * position_rates(seen)[seen.place])
    some = expected > 0
    prior = fit_gamma(seen.by_document(seen.clicks)[some], expected[some])
    yield "smoothed COEC", FittedSmoothedClicksOverExpected("one", {}, prior).click_rates(seen, asked)


def _smoothed_rate(seen: PlacedCells) -> FittedSmoothedRate:
    """The Beta of every position; small positions share that of a neighbour."""
    cells = _without_context(seen)
    found, documents = np.unique(cells.place, return_counts=True)
    places = [cells.places[place] for place in found]
    groups = np.array(join_small(places, documents.tolist()))
    of_place = np.zeros(len(cells.places), dtype=np.int64)
    of_place[found] = groups
    rows = np.stack([of_place[cells.place], cells.impressions.astype(np.int64), cells.clicks.astype(np.int64)])
    (group, shown, clicks), weight = np.unique(rows, axis=1, return_counts=True)
    priors = [
        fit_beta(shown[group == number], clicks[group == number], weight[group == number])
        for number in range(groups.max() + 1)
    ]
    return FittedSmoothedRate({place.position: priors[g] for place, g in zip(places, groups, strict=True)})


def _without_context(cells: PlacedCells) -> PlacedCells:
    positions, code = np.unique([place.position for place in cells.places], return_inverse=True)
    places = tuple(Place(int(position), ()) for position in positions)
    return replace(cells, places=places, place=code[cells.place]).added_up()
