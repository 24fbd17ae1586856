"""Documents seen at two neighbouring positions: how much less they are clicked further down.   cells, rates -> Moves

The same document is as relevant at one position as at the next, so whatever labels say, the ratio of its click rates is
due to the position. Over the documents seen at k and at k + 1, n and m times, each weighted by n m / (n + m):

    observed = sum of weight c_(k+1) / m  /  sum of weight c_k / n,   expected = the same with the model's click rates
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.corrections.click_rates import PlacedCells
from clickmix.types import Floats, Ints

FEWEST_CLICKS = 10  # at both positions together; below, a ratio says nothing
NORMAL = 1.959963984540054


@dataclass(frozen=True)
class Move:
    """The ratio of click rates between a position and the next one, over the documents seen at both.

    `low` and `high` hold the observed ratio with 95 %, over queries.
    """

    above: int
    below: int
    documents: int
    observed: float
    low: float
    high: float
    expected: float | None


def moves(cells: PlacedCells, rates: Floats | None) -> tuple[Move, ...]:
    """A row for every pair of neighbouring positions with enough clicks; a cell per document and place.

    `rates` are the click rates that the model expects of the cells, if it has them.
    """
    context = np.unique([place.context for place in cells.places], axis=0, return_inverse=True)[1].ravel()[cells.place]
    found = []
    for above in sorted({place.position for place in cells.places}):
        pair = _pairs(cells, context, above)
        if cells.clicks[pair].sum() >= FEWEST_CLICKS:
            found.append(_move(cells, rates, pair, above))
    return tuple(found)


def _pairs(cells: PlacedCells, context: Ints, above: int) -> Ints:
    """2 x pair: the cells of documents at a position and the next one, in the same context."""
    contexts = int(context.max()) + 1
    at = [np.flatnonzero(cells.position == position) for position in (above, above + 1)]
    here, there = (cells.document[rows] * contexts + context[rows] for rows in at)
    _, i, j = np.intersect1d(here, there, assume_unique=True, return_indices=True)
    return np.stack([at[0][i], at[1][j]])


def _move(cells: PlacedCells, rates: Floats | None, pair: Ints, above: int) -> Move:
    n, m = cells.impressions[pair]
    weight = n * m / (n + m)
    query = cells.query[cells.document[pair[0]]]
    upper, lower = (np.bincount(query, weight * cells.clicks[rows] / cells.impressions[rows]) for rows in pair)
    top, bottom = float(upper.sum()), float(lower.sum())
    ratio, low, high = bottom / top if top else np.inf, 0.0, np.inf
    if top and bottom:
        spread = float(np.sqrt(((lower / bottom - upper / top) ** 2).sum()))
        low, high = (ratio * float(np.exp(sign * NORMAL * spread)) for sign in (-1, 1))
    of_model = None
    if rates is not None:
        first, second = (float(weight @ rates[rows]) for rows in pair)
        of_model = second / first if first else None
    return Move(above, above + 1, pair.shape[1], ratio, low, high, of_model)
