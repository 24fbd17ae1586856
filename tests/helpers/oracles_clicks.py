"""Slow and obvious versions of the user models: one session, one pattern of clicks, one decision at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from clickmix.lab.users import DependentClick, PositionBased, User, UserBrowsing
from clickmix.types import Floats, Ints

Pattern = tuple[int, ...]


def patterns(length: int) -> list[Pattern]:
    """All 2^length ways to click on a list."""
    return list(itertools.product((0, 1), repeat=length))


def pattern_probability(user: User, relevance: Sequence[float], pattern: Pattern) -> float:
    """P(exactly these clicks), by following every decision a person can take."""
    e1, e0 = user.trust.relevant, user.trust.irrelevant
    attraction = [r * e1[k] + (1 - r) * e0[k] for k, r in enumerate(relevance)]
    if isinstance(user, PositionBased):
        return _position_based(user, attraction, pattern)
    if isinstance(user, UserBrowsing):
        return _user_browsing(user, attraction, pattern)
    if isinstance(user, DependentClick):
        return _dependent_click(user, attraction, pattern, k=0)
    raise TypeError(user)


def _position_based(user: PositionBased, attraction: list[float], pattern: Pattern) -> float:
    probability = 1.0
    for k, clicked in enumerate(pattern):
        p = user.examination[k] * attraction[k]
        probability *= p if clicked else 1 - p
    return probability


def _user_browsing(user: UserBrowsing, attraction: list[float], pattern: Pattern) -> float:
    probability, last = 1.0, 0
    for k, clicked in enumerate(pattern):
        p = user.examination[k, last] * attraction[k]
        probability *= p if clicked else 1 - p
        last = k + 1 if clicked else last
    return probability


def _dependent_click(user: DependentClick, attraction: list[float], pattern: Pattern, *, k: int) -> float:
    """From position k on, which is examined."""
    if k == len(pattern):
        return 1.0
    if not pattern[k]:
        return (1 - attraction[k]) * _dependent_click(user, attraction, pattern, k=k + 1)
    going_on = user.going_on[k] if k + 1 < user.positions else 0.0
    stopped = 1.0 if not any(pattern[k + 1 :]) else 0.0
    rest = going_on * _dependent_click(user, attraction, pattern, k=k + 1) + (1 - going_on) * stopped
    return attraction[k] * rest


def marginal(user: User, relevance: Sequence[float], k: int) -> float:
    """P(click at index k), summed over all patterns."""
    every = patterns(len(relevance))
    return sum(pattern_probability(user, relevance, pattern) for pattern in every if pattern[k])


def conditional(user: User, relevance: Sequence[float], pattern: Pattern, k: int) -> float:
    """P(click at index k | what happened above it), as a ratio of sums over patterns."""
    alike = [other for other in patterns(len(relevance)) if other[:k] == pattern[:k]]
    total = sum(pattern_probability(user, relevance, other) for other in alike)
    return sum(pattern_probability(user, relevance, other) for other in alike if other[k]) / total


def standard_errors(probabilities: Callable[[Floats], Floats], theta: Floats, sessions: Ints) -> Floats:
    """From Fisher's information: sum over lists n and patterns of (dp/dtheta)(dp/dtheta)' n / p.

    `probabilities` gives P(pattern) as (lists, patterns); `sessions` says how many saw each list.
    """
    p = probabilities(theta)
    slopes = np.array([_slope(probabilities, theta, i) for i in range(len(theta))])
    information = np.einsum("ilp,jlp,lp->ij", slopes, slopes, np.asarray(sessions)[:, None] / p)
    errors: Floats = np.sqrt(np.diag(np.linalg.inv(information)))
    return errors


def _slope(function: Callable[[Floats], Floats], theta: Floats, i: int) -> Floats:
    h = np.zeros(len(theta))
    h[i] = 1e-5
    slope: Floats = (function(theta + h) - function(theta - h)) / 2e-5
    return slope
