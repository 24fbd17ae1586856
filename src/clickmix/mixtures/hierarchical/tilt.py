"""Tilt: what a document's score changes, if it is known from something other than clicks.

    Model, Cells, scores -> probabilities
A score s(d) is one more covariate of the prior, added to the share v of the query:
    P(g | d) = softmax_g(eta_g(d) + v x + s x),   x = g / (G-1)
Without the score, given what is known about its query, a document has the prior p and the posterior q. With it, they
become p_g e^(s x) and q_g e^(s x), divided by their sums. The log-likelihood gains log E_q e^(s x) - log E_p e^(s x).
Its slope in s is the mean of x after clicks minus the mean before; the variance of x before clicks bounds how fast the
slope falls.
"""

from __future__ import annotations

import numpy as np

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.climb import expected
from clickmix.mixtures.hierarchical.label import grades_seen
from clickmix.mixtures.hierarchical.problem import Model
from clickmix.types import Floats


def before_and_after(model: Model, cells: Cells) -> tuple[Floats, Floats]:
    """Grade x entry of the cells: the probability of each grade before and after the document's own clicks."""
    problem, seen = expected(model, cells)
    query = cells.query if len(problem.nodes.at) > 1 else np.zeros_like(cells.query)
    before = np.zeros((model.grades, len(cells.query)))
    for v, share in enumerate(problem.nodes.v):
        prior = tilted(seen.prior, np.full(cells.patterns, share))[0]
        before += seen.weight[:, :, v].sum(axis=1)[query] * prior[:, cells.entry]
    return before, grades_seen(problem, seen)


def tilted(probability: Floats, score: Floats) -> tuple[Floats, Floats]:
    """Grade x document probabilities with a score for each document, and log E e^(s x).

    >>> tilted(np.array([[0.5], [0.5]]), np.array([np.log(3)]))[0].ravel().round(2).tolist()
    [0.25, 0.75]
    """
    x = np.linspace(0, 1, len(probability))[:, None]
    weighed = probability * np.exp(score * x)
    total = weighed.sum(axis=0)
    return weighed / total, np.log(total)


def gained(before: Floats, after: Floats, score: Floats) -> Floats:
    """What scores add to the log-likelihood of each document's clicks.

    >>> before, after = np.array([[0.9], [0.1]]), np.array([[0.2], [0.8]])  # clicked more than most
    >>> [gained(before, after, np.array([score])).round(2).tolist() for score in (1.0, -1.0)]
    [[0.71], [-0.64]]
    """
    return tilted(after, score)[1] - tilted(before, score)[1]


def slope(before: Floats, after: Floats, score: Floats) -> tuple[Floats, Floats]:
    """How fast each document's log-likelihood rises with its score, and a bound on how fast that slope falls."""
    x = np.linspace(0, 1, len(before))[:, None]
    prior, posterior = tilted(before, score)[0], tilted(after, score)[0]
    mean = (prior * x).sum(axis=0)
    return (posterior * x).sum(axis=0) - mean, (prior * x * x).sum(axis=0) - mean**2
