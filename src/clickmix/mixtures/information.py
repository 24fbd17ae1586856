"""Observed information of a binomial mixture, and the standard errors it gives.   Problem -> information

Louis (1982): observed information = expected information if grades were known - variance of the score. With grade k
known, a document's score is s_k, and its probability r_k:
    variance of the score = sum over documents of  sum_k r_k s_k s_k' - s s',   s = sum_k r_k s_k.
Coordinates are those of `Problem.pack`: prior logits, then the logits of the ends' rates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from clickmix.groups.observations import Observations
from clickmix.mixtures.distributions import Distribution
from clickmix.mixtures.group_likelihood import GroupLikelihood, gram
from clickmix.types import Floats


def rate_errors(problem: GroupLikelihood, prior: Floats, parameters: Floats) -> Floats:
    """End x group: standard errors of the rates' logits; NaN where the information does not allow them."""
    errors = standard_errors(observed_information(problem, prior, parameters))
    return errors[-2 * problem.seen.groups :].reshape(2, problem.seen.groups)


def observed_information(problem: GroupLikelihood, prior: Floats, parameters: Floats) -> Floats:
    """Minus the second derivatives of the log-likelihood at a point."""
    seen, m = problem.seen, problem.seen.multiplicity
    posterior = problem.expect(prior, parameters)[1]
    x = np.asarray(problem.x[seen.group] if seen.one_cell_each else problem.x)
    pi = np.exp(problem.log_prior(prior))[1:]
    pi = seen.per_cell(pi) if seen.one_cell_each else pi
    total = _if_grades_were_known(problem, parameters, posterior, x, pi)
    mean: Any = 0.0
    for k in range(problem.family.grades):
        score = _score(problem, parameters, x, pi, k)
        total -= _gram(score, m * posterior[k])
        mean = mean + _times(score, posterior[k])
    return total + _gram(mean, m)


def _score(problem: GroupLikelihood, parameters: Floats, x: Floats, pi: Floats, k: int) -> Any:
    """Document x coordinate: the slope of a document's log-likelihood if its grade is k.

    Prior: x (1[k = j] - pi_j). Rates, with share the part of an end in p: share p_e (1 - p_e) (c/p - skips/(1 - p)).
    """
    seen, (shares, p) = problem.seen, _grades(problem.family, parameters)
    known = (np.arange(1, len(pi) + 1) == k) - pi.T  # columns of `Problem.pack` go by column first, then by grade
    priors = np.broadcast_to((x[:, :, None] * known[:, None, :]).reshape(len(x), -1), (len(x), x.shape[1] * len(pi)))
    rate = seen.per_cell(p[k : k + 1])[0]
    off = seen.clicks / rate - seen.skips / (1 - rate)
    steps = seen.per_cell(parameters[0] * (1 - parameters[0]))
    return _side_by_side(priors, *(_by_group(seen, shares[k, e] * steps[e] * off) for e in range(2)))


def _if_grades_were_known(
    problem: GroupLikelihood, parameters: Floats, posterior: Floats, x: Floats, pi: Floats
) -> Floats:
    seen, (shares, p), ends = problem.seen, _grades(problem.family, parameters), parameters[0]
    cells = posterior if seen.one_cell_each else posterior[:, seen.document]
    clicks, skips = seen.shared_out(cells, seen.clicks), seen.shared_out(cells, seen.skips)
    bend, off, steps = clicks / p**2 + skips / (1 - p) ** 2, clicks / p - skips / (1 - p), ends * (1 - ends)
    priors, diagonal = x.shape[1] * len(pi), np.arange(seen.groups)
    total = np.zeros((priors + 2 * seen.groups,) * 2)
    for i, j in np.ndindex(len(pi), len(pi)):
        spread = np.broadcast_to(seen.multiplicity * pi[i] * ((i == j) - pi[j]), len(x))
        total[i : priors : len(pi), j : priors : len(pi)] = _gram(x, spread)
    for e, f in np.ndindex(2, 2):
        block = ((shares[:, e] * shares[:, f]) @ bend) * steps[e] * steps[f]
        block = block - (e == f) * (shares[:, e] @ off) * steps[e] * (1 - 2 * ends[e])
        total[priors + e * seen.groups + diagonal, priors + f * seen.groups + diagonal] = block
    return total


def _grades(family: Distribution, parameters: Floats) -> tuple[Floats, Floats]:
    """Grade x end: the part of each end in a grade's rate; grade x group: the rates."""
    x = np.linspace(0, 1, family.grades)
    shares = np.stack([1 - x, x], axis=1)
    return shares, np.asarray(shares @ parameters[0])


def _by_group(seen: Observations, cells: Floats) -> Any:
    """Documents x groups; plain columns for a single group, where sparse ones only cost time."""
    if seen.groups == 1:
        return seen.per_document(cells)[:, None]
    shape = (len(seen.multiplicity), seen.groups)
    return scipy.sparse.csr_matrix((cells, (seen.document, seen.group)), shape=shape)


def _side_by_side(*blocks: Any) -> Any:
    plain = all(isinstance(block, np.ndarray) for block in blocks)
    return np.hstack(blocks) if plain else scipy.sparse.hstack(blocks, format="csr")


def _times(d: Any, weights: Floats) -> Any:
    return d * weights[:, None] if isinstance(d, np.ndarray) else d.multiply(weights[:, None]).tocsr()


def _gram(d: Any, weights: Floats) -> Floats:
    """d' diag(weights) d."""
    if isinstance(d, np.ndarray):
        return gram(d, weights)
    return np.asarray((d.T @ d.multiply(weights[:, None])).toarray())


def standard_errors(information: Floats) -> Floats:
    """Square roots of the inverse's diagonal; NaN for what is flat or curved the wrong way."""
    values, vectors = np.linalg.eigh(information)
    bad = values <= 1e-12 * max(values.max(), 1.0)
    variance = (vectors[:, ~bad] ** 2 / values[~bad]).sum(axis=1)
    touched = (vectors[:, bad] ** 2).sum(axis=1) > 1e-6
    return np.where(touched | (variance <= 0), np.nan, np.sqrt(variance))
