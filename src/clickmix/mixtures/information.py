"""Standard errors of binomial rates, from the observed information of the mixture.   Fit -> standard errors

Louis (1982): observed information = expected complete information - variance of the complete score. With
z = relevance of a document, the complete score on the logit scale is linear in z, so its variance is r(1-r) d d' with
    d = (the columns of its prior; -(c - n p0) and (c - n p1) of its cells, by group).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import expit

from clickmix.mixtures.fit import Fit
from clickmix.mixtures.observations import Floats, Observations


def rate_errors(seen: Observations, fit: Fit, *, columns: Floats | None = None) -> Floats:
    """Component x group: standard errors of the rates' logits; NaN where the information does not allow them."""
    r, m = fit.relevance, seen.multiplicity
    p0, p1 = fit.parameters[0]
    x = np.ones((len(m), 1)) if columns is None else seen.shares_of(columns)
    pi = expit(x @ fit.prior)
    off = [-(seen.clicks - seen.impressions * p0[seen.group]), seen.clicks - seen.impressions * p1[seen.group]]
    d = _side_by_side(x, *(_by_group(seen, column) for column in off))
    priors, cell = x.shape[1], r[seen.document]
    information = -_gram(d, m * r * (1 - r))
    information[:priors, :priors] += _gram(x, m * pi * (1 - pi))
    complete = [
        seen.per_group((1 - cell) * seen.impressions) * p0 * (1 - p0),
        seen.per_group(cell * seen.impressions) * p1 * (1 - p1),
    ]
    diagonal = np.arange(priors, len(information))
    information[diagonal, diagonal] += np.concatenate(complete)
    return _errors(information)[priors:].reshape(2, seen.groups)


def _by_group(seen: Observations, cells: Floats) -> Any:
    """Documents x groups; plain columns for a single group, where sparse ones only cost time."""
    if seen.groups == 1:
        return cells[:, None]
    shape = (len(seen.multiplicity), seen.groups)
    return scipy.sparse.csr_matrix((cells, (seen.document, seen.group)), shape=shape)


def _side_by_side(*blocks: Any) -> Any:
    plain = all(isinstance(block, np.ndarray) for block in blocks)
    return np.hstack(blocks) if plain else scipy.sparse.hstack(blocks, format="csr")


def _gram(d: Any, weights: Floats) -> Floats:
    """d' diag(weights) d."""
    if isinstance(d, np.ndarray):
        return np.asarray(d.T @ (d * weights[:, None]))
    return np.asarray((d.T @ d.multiply(weights[:, None])).toarray())


def _errors(information: Floats) -> Floats:
    """Square roots of the inverse's diagonal; NaN for what is flat or curved the wrong way."""
    values, vectors = np.linalg.eigh(information)
    bad = values <= 1e-12 * max(values.max(), 1.0)
    variance = (vectors[:, ~bad] ** 2 / values[~bad]).sum(axis=1)
    touched = (vectors[:, bad] ** 2).sum(axis=1) > 1e-6
    return np.where(touched | (variance <= 0), np.nan, np.sqrt(variance))
