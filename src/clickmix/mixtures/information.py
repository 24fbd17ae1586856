"""Standard errors of binomial rates, from the observed information of the mixture.   Fit -> standard errors

Louis (1982): observed information = expected complete information - variance of the complete score. With
z = relevance of a document, the complete score on the logit scale is linear in z, so its variance is r(1-r) d d' with
    d = (shares of the document's impressions; -(c - n p0) and (c - n p1) of its cells, by group).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.special import expit

from clickmix.mixtures.fit import Fit
from clickmix.mixtures.observations import Floats, Observations


def rate_errors(seen: Observations, fit: Fit) -> Floats:
    """Component x group: standard errors of the rates' logits; NaN where the information does not allow them."""
    r, m = fit.relevance, seen.multiplicity
    p0, p1 = fit.parameters[0]
    by_prior = len(fit.prior) > 1
    shares = seen.shares if by_prior else scipy.sparse.csr_matrix(np.ones((len(m), 1)))
    pi = expit(shares @ fit.prior)
    d = scipy.sparse.hstack(
        [
            shares,
            _by_group(seen, -(seen.clicks - seen.impressions * p0[seen.group])),
            _by_group(seen, seen.clicks - seen.impressions * p1[seen.group]),
        ],
        format="csr",
    )
    information = -(d.T @ d.multiply((m * r * (1 - r))[:, None])).toarray()
    priors = shares.shape[1]
    information[:priors, :priors] += (shares.T @ shares.multiply((m * pi * (1 - pi))[:, None])).toarray()
    cell = r[seen.document]
    complete = [
        seen.per_group((1 - cell) * seen.impressions) * p0 * (1 - p0),
        seen.per_group(cell * seen.impressions) * p1 * (1 - p1),
    ]
    information[np.arange(priors, len(information)), np.arange(priors, len(information))] += np.concatenate(complete)
    return _errors(information)[priors:].reshape(2, seen.groups)


def _by_group(seen: Observations, cells: Floats) -> scipy.sparse.csr_matrix:
    shape = (len(seen.multiplicity), seen.groups)
    return scipy.sparse.csr_matrix((cells, (seen.document, seen.group)), shape=shape)


def _errors(information: Floats) -> Floats:
    """Square roots of the inverse's diagonal; NaN for what is flat or curved the wrong way."""
    values, vectors = np.linalg.eigh(information)
    bad = values <= 1e-12 * max(values.max(), 1.0)
    variance = (vectors[:, ~bad] ** 2 / values[~bad]).sum(axis=1)
    touched = (vectors[:, bad] ** 2).sum(axis=1) > 1e-6
    return np.where(touched | (variance <= 0), np.nan, np.sqrt(variance))
