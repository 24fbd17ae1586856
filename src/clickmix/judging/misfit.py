"""Whether a group has documents at a click rate that its mixture does not know.   Observations, Mixture -> Misfit

For a rate q and a share s of documents, the fitted density f becomes (1 - s) f + s Binomial(q). How much that gains,
    gain(q) = 2 max_s sum over documents of log(1 - s + s Binomial(c; n, q) / f(n, c)),
is small at every q when the mixture is right, and large where a robot, a second audience or a grade between was missed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from clickmix.groups.observations import Observations
from clickmix.mixtures.mixture import Mixture
from clickmix.mixtures.nonparametric import rate_grid
from clickmix.types import Floats

RATES = 40
HALVINGS = 24
LARGEST_LOG = 600.0


@dataclass(frozen=True)
class Misfit:
    """The rate that would improve a mixture most, the share of documents it would get, and twice the log-likelihood."""

    rate: float
    share: float
    gain: float


def find_misfits(seen: Observations, mixture: Mixture) -> tuple[Misfit, Misfit]:
    """The best single rate to add to a binomial mixture, all else unchanged: between its rates, and beyond them."""
    q = rate_grid(seen, RATES)
    share, gain = _best_shares(seen, mixture, q)
    between = (mixture.rates[0] < q) & (q < mixture.rates[-1])
    return _best(q, share, gain, between), _best(q, share, gain, ~between)


def _best(q: Floats, share: Floats, gain: Floats, among: Floats) -> Misfit:
    best = int(np.where(among, gain, -np.inf).argmax())
    return Misfit(float(q[best]), float(share[best]), max(0.0, float(gain[best])) if among[best] else 0.0)


def _best_shares(seen: Observations, mixture: Mixture, q: Floats) -> tuple[Floats, Floats]:
    """Per rate the share that gains most, and what it gains; the slope in the share only falls."""
    excess = np.exp(np.minimum(_log_density(seen, q) - _log_mixed(seen, mixture), LARGEST_LOG)) - 1
    m = seen.multiplicity
    low, high = np.full(len(q), -20.0), np.full(len(q), 10.0)  # logits of the share
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        climbs = np.einsum("c,cr->r", m, excess / (1 + expit(middle) * excess)) > 0
        low, high = np.where(climbs, middle, low), np.where(climbs, high, middle)
    return np.asarray(expit(low)), np.asarray(2 * np.einsum("c,cr->r", m, np.log1p(expit(low) * excess)))


def _log_density(seen: Observations, rates: Floats) -> Floats:
    """Cell x rate, without log C(n, c)."""
    return np.asarray(np.outer(seen.clicks, np.log(rates)) + np.outer(seen.skips, np.log1p(-rates)))


def _log_mixed(seen: Observations, mixture: Mixture) -> Floats:
    logs = _log_density(seen, np.array(mixture.rates)) + np.log(np.maximum(mixture.weights, np.finfo(float).tiny))
    return np.asarray(np.logaddexp.reduce(logs, axis=1)[:, None])
