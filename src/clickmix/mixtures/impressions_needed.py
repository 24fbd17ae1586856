"""How many impressions a document needs before its label can be relied on.   Mixture -> a number

The paper asks for n = Omega((max sigma / (mu_1 - mu_0))^2) impressions; here is the number itself. With n impressions
of a document of unknown relevance r, c of them clicked,
    V(n) = sum_c P(c) Var(r | c),    P(c) = sum_k w_k Binomial(c; n, p_k)
is the expected squared error of its label. It never rises with n, so the n that brings it under a target is found by
doubling and halving.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from scipy.special import betaln, gammaln, xlog1py, xlogy

from clickmix.errors import SettingError
from clickmix.mixtures.mixture import Mixture
from clickmix.types import Floats, Ints

TARGET = 0.1  # root mean squared error of labels under which they are called trustworthy
MOST = 1_000_000  # impressions; beyond, nobody waits for them
MOST_APPEALING = 5_000  # impressions; where documents differ in appeal, more of the same one say nothing new
TAIL = 9.0  # standard deviations, and as many clicks: what lies further out has a probability below 1e-15


def expected_error(mixture: Mixture, impressions: int) -> float:
    """The expected root mean squared error of labels for documents with this many impressions in the group.

    >>> from clickmix import Mixture, Verdict
    >>> mixture = Mixture("binomial", Verdict.SEPARATED, weights=(0.7, 0.3), rates=(0.1, 0.5))
    >>> tuple(round(expected_error(mixture, impressions), 2) for impressions in (0, 5, 20))
    (0.46, 0.29, 0.1)
    """
    if not (isinstance(impressions, Integral) and impressions >= 0):
        raise SettingError(f"impressions={impressions!r}: expected a whole number from 0.")
    return float(np.sqrt(_variance(mixture, impressions)))


def impressions_for(mixture: Mixture, *, target: float = TARGET) -> int | None:
    """The fewest impressions per document that bring `expected_error` down to `target`.

    None if clicks say nothing about relevance, if even a million impressions are too few, and for a Gaussian mixture,
    which cannot predict how its rates scatter with more impressions.

    >>> from clickmix import Mixture, Verdict
    >>> mixture = Mixture("binomial", Verdict.SEPARATED, weights=(0.7, 0.3), rates=(0.1, 0.5))
    >>> impressions_for(mixture), impressions_for(mixture, target=0.2)
    (21, 11)
    """
    check_target(target)
    if not mixture.informative or mixture.variances is not None:
        return None
    low, high = -1, 1  # too few, enough
    while expected_error(mixture, high) > target:
        if high == MOST:
            return None
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if expected_error(mixture, middle) > target else (low, middle)
    return high


def check_target(target: float) -> None:
    """Refuse an error that no number of impressions reaches."""
    if not target > 0:
        raise SettingError(f"target={target!r}: expected the largest acceptable error of labels, a number above 0.")


def _variance(mixture: Mixture, n: int) -> float:
    """V(n), summed over all numbers of clicks that are not out of the question."""
    p, w = np.array(mixture.rates)[:, None], np.array(mixture.weights)[:, None]
    if mixture.alike is not None:
        n = min(n, MOST_APPEALING)
        a, c = p * np.array(mixture.alike)[:, None], np.arange(n + 1)
        b = a / p - a
        logs = betaln(a + c, b + n - c) - betaln(a, b)
    else:
        c = _likely_clicks(n, p.ravel())
        logs = xlogy(c, p) + xlog1py(n - c, -p)
    log_choose = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
    joint = w * np.exp(log_choose + logs)
    x, total = np.linspace(0, 1, len(p)), joint.sum(axis=0)
    mean, square = x @ joint, (x * x) @ joint
    return max(0.0, float((square - np.divide(mean * mean, total, out=np.zeros_like(total), where=total > 0)).sum()))


def _likely_clicks(n: int, rates: Floats) -> Ints:
    """The numbers of clicks near what some rate gives: between two that are far apart there may be a million more."""
    middle, reach = n * rates, TAIL * np.sqrt(n * rates * (1 - rates)) + TAIL
    ends = zip((middle - reach).tolist(), (middle + reach).tolist(), strict=True)
    return np.unique(np.concatenate([np.arange(max(0, int(low)), min(n, int(high) + 1) + 1) for low, high in ends]))
