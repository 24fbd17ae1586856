"""The prior of a document depends on where it was shown, and how often: hat functions of both.   Cells -> columns"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.spread import hats
from clickmix.types import Floats

TINY = 1e-9
LEAST_GAP = 0.3  # of log impressions between knots


def prior_columns(cells: Cells, knots: tuple[Floats, Floats]) -> csr_array:
    """Pattern x knot, sparse: where a document was shown, the mean over its impressions, and how often.

    How often counts from the second knot on. A document of which only a place is known, with no impression, counts as
    shown once.
    """
    shown = np.maximum(cells.impressions, TINY)
    total = cells.per_pattern(shown)
    share = shown / total[cells.pattern]
    places = csr_array((share, (cells.pattern, cells.place)), shape=(cells.patterns, len(cells.places)))
    where = places @ hats(np.log(cells.places.position), knots[0])
    often = hats(np.log(np.maximum(total, 1)), knots[1])
    return csr_array(hstack([where, often[:, 1:]]))


def prior_knots(cells: Cells) -> tuple[Floats, Floats]:
    """Knots of mean log position, about a quarter of it apart; and of log impressions, at quarters of documents."""
    at = np.log(cells.places.position)
    steps = np.concatenate([np.arange(1, 7), np.rint(8 * 1.25 ** np.arange(60))])
    inner = np.log(steps[(steps > np.exp(at.min()) + 0.5) & (steps < np.exp(at.max()) - 0.5)])
    where = np.unique(np.concatenate([[at.min()], inner, [at.max()]]))
    shown, m = np.log(np.maximum(cells.per_pattern(cells.impressions), 1)), cells.multiplicity
    order = np.argsort(shown)
    share = np.cumsum(m[order]) / m.sum()
    quarters = shown[order][np.minimum(np.searchsorted(share, (0.0, 0.25, 0.5, 0.75, 1.0)), len(order) - 1)]
    often = [float(quarters[0])]
    for value in quarters[1:].tolist():
        if value > often[-1] + LEAST_GAP:
            often.append(value)
    return where, np.array(often)
