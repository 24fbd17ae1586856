"""Groups at one position, each examined with a chance of its own.   Observations of groups -> Mixtures

What people do with a document that they examine depends on its grade and position alone, so the groups of a position
share everything but a factor:
    rate of grade k in group g = examination_g (low + k/(G-1) (high - low)),
and the shares of grades in a group are drawn towards those of the position, as if it had `DRAWN` documents more. A
group of a hundred documents could not tell the rate of a grade that it may not even hold; together they can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit

from clickmix.groups.observations import Observations
from clickmix.mixtures.families import Binomial
from clickmix.mixtures.mixture import Mixture, silent
from clickmix.mixtures.problem import Problem
from clickmix.mixtures.single import describe, fit_group, one_rate_mixture
from clickmix.types import Floats, Ints

DRAWN = 30.0  # documents
GAIN_PER_DOCUMENT = 1e-7
MOST_STEPS = 500
LEAST, MOST = 1e-9, 1 - 1e-9


@dataclass(frozen=True)
class _Point:
    """Shares of grades (group x grade), examination by group, and the ends' rates if it is 1."""

    shares: Floats
    examination: Floats
    ends: Floats

    def rates(self) -> Floats:
        """Group x grade."""
        attraction = np.linspace(self.ends[0], self.ends[1], self.shares.shape[1])
        return np.asarray(np.clip(self.examination[:, None] * attraction, LEAST, MOST))


def fit_examined(groups: Sequence[Observations], *, grades: int) -> list[Mixture]:
    """A mixture for each group of one position; one rate each if that explains the position as well, by BIC."""
    quiet = [silent("binomial", *group.totals) for group in groups]
    heard = [group for group, nothing in zip(groups, quiet, strict=True) if nothing is None]
    if not heard:
        return [mixture for mixture in quiet if mixture is not None]
    whole = fit_group(_pooled(heard), "binomial", grades=grades)
    if not whole.informative:
        return [mixture or one_rate_mixture(group, "binomial") for group, mixture in zip(groups, quiet, strict=True)]
    point, family = _climb(heard, whole), Binomial(grades)
    fitted = iter(
        _described(group, family, shares, rates)
        for group, shares, rates in zip(heard, point.shares, point.rates(), strict=True)
    )
    return [mixture or next(fitted) for mixture in quiet]


def _pooled(groups: Sequence[Observations]) -> Observations:
    columns = zip(*((group.impressions, group.clicks, group.multiplicity) for group in groups), strict=True)
    return Observations.histogram(*(np.concatenate(column) for column in columns))


def _described(group: Observations, family: Binomial, shares: Floats, rates: Floats) -> Mixture:
    problem = Problem(group, family)
    row = np.concatenate([np.log(shares[1:] / shares[0]), logit(rates[[0, -1]])])
    return describe(group, family, *problem.unpack(row))


def _climb(groups: Sequence[Observations], whole: Mixture) -> _Point:
    """EM from the fit of the whole position, each group examined as much as it was clicked."""
    seen, member = _pooled(groups), np.repeat(np.arange(len(groups)), [len(group.clicks) for group in groups])
    clicks, shown = (
        np.bincount(member, weights=seen.multiplicity * column) for column in (seen.clicks, seen.impressions)
    )
    examination = (clicks / shown) / (clicks.sum() / shown.sum())
    ends = np.array([whole.rates[0], whole.rates[-1]])
    examination = np.minimum(examination, 0.99 / ends[1])
    point, before = _Point(np.tile(whole.weights, (len(groups), 1)), examination, ends), -np.inf
    for _ in range(MOST_STEPS):
        value, posterior = _expect(seen, member, point)
        if value - before < GAIN_PER_DOCUMENT * seen.multiplicity.sum():
            break
        point, before = _maximise(seen, member, point, posterior), value
    return point


def _expect(seen: Observations, member: Ints, point: _Point) -> tuple[float, Floats]:
    """The log-likelihood with the prior on shares, and row x grade how many documents are expected to have it."""
    p, centre = point.rates(), _centre(point, seen, member)
    joint = np.log(point.shares)[member]
    joint = joint + seen.clicks[:, None] * np.log(p)[member] + seen.skips[:, None] * np.log1p(-p)[member]
    highest = joint.max(axis=1, keepdims=True)
    posterior = np.exp(joint - highest)
    total = posterior.sum(axis=1, keepdims=True)
    value = float(
        (seen.multiplicity * (highest + np.log(total))[:, 0]).sum() + DRAWN * (centre * np.log(point.shares)).sum()
    )
    return value, posterior / total * seen.multiplicity[:, None]


def _centre(point: _Point, seen: Observations, member: Ints) -> Floats:
    """Shares of grades at the whole position."""
    documents = np.bincount(member, weights=seen.multiplicity)
    return np.asarray(documents @ point.shares / documents.sum())


def _maximise(seen: Observations, member: Ints, point: _Point, posterior: Floats) -> _Point:
    documents, clicks, shown = (
        _per_group(member, posterior * column[:, None], len(point.examination))
        for column in (np.ones_like(seen.clicks), seen.clicks, seen.impressions)
    )
    centre = documents.sum(axis=0) / documents.sum()
    shares = documents + DRAWN * np.maximum(centre, 1e-12)
    point = replace(point, shares=np.asarray(shares / shares.sum(axis=1, keepdims=True)))
    return _better_ends(_better_examination(point, clicks, shown - clicks), clicks, shown - clicks)


def _better_examination(point: _Point, clicks: Floats, skips: Floats) -> _Point:
    """One Newton step for each group: the slope of sum_k c log(e a_k) + s log(1 - e a_k) in e."""
    e, a = point.examination[:, None], np.linspace(point.ends[0], point.ends[1], clicks.shape[1])
    slope = (clicks / e - skips * a / (1 - e * a)).sum(axis=1)
    bend = (clicks / e**2 + skips * (a / (1 - e * a)) ** 2).sum(axis=1)
    moved = np.clip(point.examination + slope / bend, point.examination / 2, 2 * point.examination)
    return replace(point, examination=np.minimum(moved, 0.9999 / point.ends[1]))


def _better_ends(point: _Point, clicks: Floats, skips: Floats) -> _Point:
    """One Newton step for both ends, halved until they are in order and between 0 and 1."""
    e, share = point.examination[:, None], np.linspace(0, 1, clicks.shape[1])
    a = point.ends[0] + share * (point.ends[1] - point.ends[0])
    slope = (clicks / a - skips * e / (1 - e * a)).sum(axis=0)
    bend = (clicks / a**2 + skips * (e / (1 - e * a)) ** 2).sum(axis=0)
    x = np.stack([1 - share, share])
    move = np.linalg.solve((x * bend) @ x.T + 1e-9 * np.eye(2), x @ slope)
    highest = 0.9999 / float(point.examination.max())
    for _ in range(30):
        low, high = point.ends + move
        if 0 < low < high < highest:
            return replace(point, ends=point.ends + move)
        move = move / 2
    return point


def _per_group(member: Ints, rows: Floats, groups: int) -> Any:
    return np.stack([np.bincount(member, weights=column, minlength=groups) for column in rows.T], axis=1)
