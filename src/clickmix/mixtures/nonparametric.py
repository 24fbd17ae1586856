"""A mixture without a shape: any distribution of click rates, on a grid, by maximum likelihood.   -> Mixture

Which rate means relevant is not in the data, so a rule says it: 0 is the rate that one document in ten is below, 1 the
rate that one in a hundred is above, both of the fitted distribution; between them relevance is even in the rate. The
weights are then fitted on an even scale between those two rates, so that the cells of a document add up as always.
"""

from __future__ import annotations

import numpy as np

from clickmix.groups.observations import Observations
from clickmix.mixtures.distributions import LOWEST_RATE, BinomialCounts
from clickmix.mixtures.mixture import Mixture, silent
from clickmix.mixtures.single import describe, one_rate_log_likelihoods, one_rate_mixture
from clickmix.types import Floats

GRID = 60  # rates, evenly spaced in the arcsine of their root, where a binomial has about the same spread everywhere
STEPS = 21  # of relevance between 0 and 1
LOWEST_SHARE, HIGHEST_SHARE = 0.1, 0.99
ROUNDS = 500
GAIN_PER_DOCUMENT = 1e-7


def fit_nonparametric(seen: Observations) -> Mixture:
    """Fit one group by itself; it has one rate where any distribution gains less than BIC asks for two grades."""
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
    """So many rates, from the lowest to the highest that the clicks suggest."""
    return np.asarray(np.sin(np.linspace(*_ends(seen), size)) ** 2)


def _ends(seen: Observations) -> tuple[float, float]:
    """Where the grid begins and ends: the lowest and highest rates seen, with half a click more or less."""
    low = ((seen.clicks + 0.5) / (seen.impressions + 1)).min()
    high = ((seen.clicks + 0.5) / (seen.impressions + 1)).max()
    return float(np.arcsin(np.sqrt(max(low / 2, LOWEST_RATE)))), float(np.arcsin(np.sqrt(high)))


def _weights(seen: Observations, rates: Floats) -> tuple[Floats, float]:
    """EM over the weights alone, which is climbing a hill with one top; and the log-likelihood there."""
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
