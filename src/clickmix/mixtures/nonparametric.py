"""A mixture without a shape: any distribution of click rates, on a grid, by maximum likelihood.   -> Mixture

The data do not say which rate means relevant, so a rule does. In the fitted distribution, one document in ten is below
the rate of relevance 0, and one in a hundred is above the rate of relevance 1; between them relevance is linear in the
rate. The weights are then fitted on an even scale between those two rates, so that a document's cells add up as usual.
"""

from __future__ import annotations

import numpy as np

from clickmix.groups.observations import Observations
from clickmix.mixtures.distributions import LOWEST_RATE, BinomialCounts
from clickmix.mixtures.mixture import Mixture, silent
from clickmix.mixtures.single import describe, one_rate_log_likelihoods, one_rate_mixture
from clickmix.types import Floats

GRID = 60  # rates, evenly spaced in the arcsine of their root, which gives a binomial about the same spread everywhere
STEPS = 21  # steps of relevance between 0 and 1
LOWEST_SHARE, HIGHEST_SHARE = 0.1, 0.99
ROUNDS = 500
GAIN_PER_DOCUMENT = 1e-7


def fit_nonparametric(seen: Observations) -> Mixture:
    """Fit one group; it gets one rate if any distribution gains less than BIC demands for two grades."""
    m = seen.multiplicity
    nothing = silent("binomial", *seen.totals)
    if nothing is not None:
        return nothing
    rates = rate_grid(seen, GRID)
    weights, value = _weights(seen, rates)
    if 2 * (value - float(one_rate_log_likelihoods(seen, BinomialCounts())[0])) <= 2 * np.log(m.sum()):
        return one_rate_mixture(seen, "binomial")
    low, high = np.interp([LOWEST_SHARE, HIGHEST_SHARE], np.cumsum(weights) - weights / 2, rates)
    even = np.linspace(low, high, STEPS)
    shares = np.maximum(_weights(seen, even)[0], np.finfo(float).tiny)
    return describe(seen, BinomialCounts(STEPS), np.log(shares[None, 1:] / shares[0]), np.array([[[low], [high]]]))


def rate_grid(seen: Observations, size: int) -> Floats:
    """`size` rates between the lowest and the highest that clicks suggest, with half a click more or less."""
    rates = (seen.clicks + 0.5) / (seen.impressions + 1)
    low, high = (float(np.arcsin(np.sqrt(end))) for end in (max(rates.min() / 2, LOWEST_RATE), rates.max()))
    return np.asarray(np.sin(np.linspace(low, high, size)) ** 2)


def _weights(seen: Observations, rates: Floats) -> tuple[Floats, float]:
    """The weights by EM, which has only one top, and the log-likelihood there."""
    logs = np.outer(seen.clicks, np.log(rates)) + np.outer(seen.skips, np.log1p(-rates))
    highest = logs.max(axis=1)
    density = np.exp(logs - highest[:, None])
    m, total = seen.multiplicity, seen.multiplicity.sum()
    weights, before = np.full(len(rates), 1 / len(rates)), -np.inf
    for _ in range(ROUNDS):
        mixed = density @ weights
        value = float(m @ (np.log(mixed) + highest))
        if value - before <= GAIN_PER_DOCUMENT * total:
            break
        weights, before = weights * (density.T @ (m / mixed)) / total, value
    return weights, value
