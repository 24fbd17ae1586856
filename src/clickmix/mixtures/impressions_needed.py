"""How many impressions a document needs before its label is reliable.   Mixture -> a number

The paper asks for n = Omega((max sigma / (mu_1 - mu_0))^2) impressions; this module computes the number itself. With n
impressions of a document of unknown relevance r, c of them clicked,
    V(n) = sum_c P(c) Var(r | c),    P(c) = sum_k w_k Binomial(c; n, p_k)
is the expected squared error of its label. It never rises with n, so doubling and halving find the n that brings it
below a target.

    squared error(s) = sum over groups of documents V(s impressions per document) / documents
is the expected squared error of a log's labels with s times the impressions. If s_0 gives today's error and s_1 gives
the goal, the log needs s_1 / s_0 times its data.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from numbers import Integral

import numpy as np
from scipy.special import betaln, gammaln, xlog1py, xlogy

from clickmix.errors import SettingError
from clickmix.mixtures.mixture import Group, Mixture
from clickmix.types import Floats, Ints

TARGET = 0.1  # largest root mean squared error of trustworthy labels
MOST = 1_000_000  # impressions; nobody waits for more
MOST_APPEALING = 5_000  # impressions; if documents differ in appeal, more impressions of one say nothing new
MOST_GROUPS = 100  # groups to look at, to find how much more data they need
LEAST_DATA = 1e-3  # factor on the impressions: where the search ends
EXACT = 1e-3  # factor: how exactly it is found
TAIL = 9.0  # standard deviations, and as many clicks: anything further out has a probability below 1e-15


def expected_error(mixture: Mixture, impressions: int) -> float:
    """The expected root mean squared error of labels of documents with this many impressions in the group.

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

    None if clicks say nothing about relevance, if even a million impressions are too few, or for a Gaussian mixture,
    which cannot predict how rates scatter with more impressions.

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


def prior_squared_error(groups: Sequence[Group]) -> float:
    """The expected squared error of labels without any clicks."""
    documents = sum(group.documents for group in groups)
    return sum(group.documents * group.prior_variance for group in groups) / documents


def times_more_data(groups: Sequence[Group], *, today: float, goal: float) -> float | None:
    """How many times the impressions it takes to bring the expected squared error of labels from `today` to `goal`.

    Infinite if no realistic amount would do, None if it cannot be predicted.
    """
    if any(group.mixture.variances is not None for group in groups):
        return None  # a Gaussian cannot predict how rates scatter with more impressions
    # With thousands of positions, some are enough to show how errors fall.
    asked = groups[:: math.ceil(len(groups) / MOST_GROUPS)]
    # Both searches need the same few numbers of impressions again and again.
    errors = [functools.cache(functools.partial(expected_error, group.mixture)) for group in asked]
    documents = sum(group.documents for group in asked)

    def squared_error(times: float) -> float:
        pairs = zip(asked, errors, strict=True)
        return sum(group.documents * _squared_error(group, times, error) for group, error in pairs) / documents

    now, then = _solve(squared_error, today), _solve(squared_error, goal)
    return math.inf if now is None or then is None else max(1.0, then / now)


def check_target(target: float) -> None:
    """Refuse an error that no number of impressions reaches."""
    if not target > 0:
        raise SettingError(f"target={target!r}: expected the largest acceptable error of labels, a number above 0.")


def _squared_error(group: Group, times: float, error: Callable[[int], float]) -> float:
    """The expected squared error with `times` the impressions, interpolated between whole numbers."""
    if not group.mixture.informative:
        return group.squared_error
    n = min(times * group.impressions / group.documents, MOST - 1)
    below = math.floor(n)
    squares = [error(whole) ** 2 for whole in (below, below + 1)]
    return squares[0] + (n - below) * (squares[1] - squares[0])


def _solve(squared_error: Callable[[float], float], goal: float) -> float | None:
    """The factor at which a falling squared error reaches a goal, to a thousandth."""

    def above(log_times: float) -> float:
        return squared_error(math.exp(log_times)) - goal

    low, high = -1.0, 0.0  # up to as much data as there is
    while above(high) > 0:
        low, high = high, high + 1
        if high > math.log(MOST):
            return None
    while above(low) <= 0:
        low, high = low - 1, low
        if low < math.log(LEAST_DATA):
            return math.exp(high)
    while high - low > EXACT:  # scipy.optimize has this, but takes longer to load than the search
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > 0 else (low, middle)
    return math.exp((low + high) / 2)


def _variance(mixture: Mixture, n: int) -> float:
    """V(n), summed over all numbers of clicks that are not negligible."""
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
    """The numbers of clicks near what some rate gives; between two distant rates there may be a million others."""
    middle, reach = n * rates, TAIL * np.sqrt(n * rates * (1 - rates)) + TAIL
    ends = zip((middle - reach).tolist(), (middle + reach).tolist(), strict=True)
    return np.unique(np.concatenate([np.arange(max(0, int(low)), min(n, int(high) + 1) + 1) for low, high in ends]))
