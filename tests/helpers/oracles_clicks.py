"""Slow and obvious versions of the user models: one session, one pattern of clicks, one decision at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from clickmix.lab.users import Cascade, DependentClick, DynamicBayesian, PositionBased, User, UserBrowsing
from clickmix.types import Floats, Ints

Pattern = tuple[int, ...]


def patterns(length: int) -> list[Pattern]:
    """All 2^length ways to click on a list."""
    return list(itertools.product((0, 1), repeat=length))


def pattern_probability(
    user: User, relevance: Sequence[float], pattern: Pattern, *, satisfying: Sequence[float] | None = None
) -> float:
    """P(exactly these clicks), by following every decision a person can take.

    `satisfying` is how relevant results are, where that is not how relevant they look.
    """
    e1, e0 = user.trust.relevant, user.trust.irrelevant
    attraction = [r * e1[k] + (1 - r) * e0[k] for k, r in enumerate(relevance)]
    match user:
        case PositionBased():
            return _position_based(user, attraction, pattern)
        case UserBrowsing():
            return _user_browsing(user, attraction, pattern)
        case DependentClick():
            return _dependent_click(user, attraction, pattern, k=0)
        case DynamicBayesian():  # and its simplified form
            actual = relevance if satisfying is None else satisfying
            s1, s0 = user.satisfied_relevant, user.satisfied_irrelevant
            return _dynamic_bayesian(user, attraction, [r * s1 + (1 - r) * s0 for r in actual], pattern, k=0)
        case Cascade():
            return _cascade(attraction, pattern)
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


def _dynamic_bayesian(
    user: DynamicBayesian, attraction: list[float], satisfaction: list[float], pattern: Pattern, *, k: int
) -> float:
    """From position k on, which is examined."""
    if k == len(pattern):
        return 1.0
    nothing_more = 1.0 if not any(pattern[k + 1 :]) else 0.0
    onwards = user.continuation * _dynamic_bayesian(user, attraction, satisfaction, pattern, k=k + 1)
    not_satisfied = onwards + (1 - user.continuation) * nothing_more
    if not pattern[k]:
        return (1 - attraction[k]) * not_satisfied
    return attraction[k] * (satisfaction[k] * nothing_more + (1 - satisfaction[k]) * not_satisfied)


def _cascade(attraction: list[float], pattern: Pattern) -> float:
    probability = 1.0
    for a, clicked in zip(attraction, pattern, strict=True):
        if clicked:
            return probability * a if sum(pattern) == 1 else 0.0
        probability *= 1 - a
    return probability


def marginal(user: User, relevance: Sequence[float], k: int) -> float:
    """P(click at index k), summed over all patterns."""
    every = patterns(len(relevance))
    return sum(pattern_probability(user, relevance, pattern) for pattern in every if pattern[k])


def conditional(
    user: User, relevance: Sequence[float], pattern: Pattern, k: int, *, satisfying: Sequence[float] | None = None
) -> float:
    """P(click at index k | what happened above it), as a ratio of sums over patterns."""
    alike = [other for other in patterns(len(relevance)) if other[:k] == pattern[:k]]
    chances = {other: pattern_probability(user, relevance, other, satisfying=satisfying) for other in alike}
    return sum(chance for other, chance in chances.items() if other[k]) / sum(chances.values())


def standard_errors(probabilities: Callable[[Floats], Floats], theta: Floats, sessions: Ints) -> Floats:
    """From Fisher's information: sum over lists n and patterns of (dp/dtheta)(dp/dtheta)' n / p.

    `probabilities` gives P(pattern) as (lists, patterns); `sessions` says how many saw each list.
    """
    p = probabilities(theta)
    slopes = np.array([_slope(probabilities, theta, i) for i in range(len(theta))])
    weights = np.divide(np.asarray(sessions)[:, None], p, out=np.zeros_like(p), where=p > 0)  # others never happen
    information = np.einsum("ilp,jlp,lp->ij", slopes, slopes, weights)
    errors: Floats = np.sqrt(np.diag(np.linalg.inv(information)))
    return errors


def _slope(function: Callable[[Floats], Floats], theta: Floats, i: int) -> Floats:
    h = np.zeros(len(theta))
    h[i] = 1e-5
    slope: Floats = (function(theta + h) - function(theta - h)) / 2e-5
    return slope
