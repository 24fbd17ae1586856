"""Two ways in which clicks scatter around a grade's rate: binomial (clicks are counts), Gaussian (rates are numbers).

Parameters are an array: kind of parameter x end x 1. The ends are the lowest and the highest grade; grades between them
have evenly spaced rates. A distribution gives the log density of every cell under every grade, the parameters that best
fit weighted cells, and the parameters on a scale without bounds, for long steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import expit, logit

from clickmix.groups.observations import Observations
from clickmix.types import Floats

LOWEST_RATE = 1e-12  # with a rate of exactly 0 or 1, one click or one skip would be infinite evidence
LEAST_CLICKS = 0.15  # added to a document's clicks for the least variance; .1 and .2 give nearly the same labels


class Distribution(Protocol):
    """What EM needs from a distribution."""

    name: ClassVar[str]
    parameters_per_end: ClassVar[int]

    @property
    def grades(self) -> int:
        """How many grades of relevance there are."""

    def log_density(self, parameters: Floats, seen: Observations) -> Floats:
        """Grade x cell: log density, up to `constant`."""

    def constant(self, seen: Observations) -> float:
        """The part of the log-likelihood that does not depend on parameters."""

    def maximise(self, weights: Floats, seen: Observations, parameters: Floats | None = None) -> Floats:
        """Parameters that fit better than `parameters` if cell i has grade k with weight `weights[k, i]`."""

    def score(self, parameters: Floats, weights: Floats, seen: Observations) -> tuple[Floats, Floats]:
        """Slope and curvature (made positive) of the weighted log density in each unbounded parameter."""

    def unbounded(self, parameters: Floats) -> Floats:
        """The parameters on a scale without bounds."""

    def bounded(self, values: Floats, seen: Observations, *, in_order: bool = True) -> Floats:
        """The parameters from that scale, within their bounds."""

    def lowest(self, seen: Observations) -> Floats:
        """The lowest value of each unbounded parameter."""


@dataclass(frozen=True)
class BinomialCounts:
    """clicks ~ Binomial(impressions, rate of the grade): parameters[0] are the rates of the ends, end x group.

    The click rate of a document of relevance x = k / (grades - 1) is (1 - x) low + x high, as if each impression found
    it relevant with probability x. If that finding is one more hidden variable, the EM step has a closed form, in terms
    of the clicks and skips that each end accounts for.
    """

    grades: int = 2

    name: ClassVar[str] = "binomial"
    parameters_per_end: ClassVar[int] = 1

    @cached_property
    def shares(self) -> Floats:
        """Grade x end: 1 - x and x."""
        x = np.arange(self.grades) / (self.grades - 1)
        return np.stack([1 - x, x], axis=1)

    def rates(self, parameters: Floats) -> Floats:
        """Grade x group: the rates of all grades."""
        return parameters[0] if self.grades == 2 else np.asarray(self.shares @ parameters[0])

    def log_density(self, parameters: Floats, seen: Observations) -> Floats:
        """c log p + (n - c) log(1 - p)."""
        p = self.rates(parameters)  # take logarithms of a few rates, not of a rate per cell
        return np.asarray(seen.clicks * np.log(p) + seen.skips * np.log1p(-p))

    def constant(self, seen: Observations) -> float:
        """Sum of log C(n, c)."""
        return float((seen.multiplicity * seen.log_choose).sum())

    def maximise(self, weights: Floats, seen: Observations, parameters: Floats | None = None) -> Floats:
        """Ratio of sums, clicks / impressions of each end; the highest rate may not be below the lowest.

        If it came out below, the best fit in order has both rates equal. With two grades, each end has its own
        documents, and nothing depends on `parameters`.
        """
        clicks, skips = self._of_ends(weights, seen, parameters)
        p = _ratio(clicks, clicks + skips)
        if (p[0] > p[1]).any():
            p = np.where(p[0] <= p[1], p, _ratio(clicks.sum(axis=0), (clicks + skips).sum(axis=0)))
        return _within(p)[None]

    def score(self, parameters: Floats, weights: Floats, seen: Observations) -> tuple[Floats, Floats]:
        """In the logit of p: clicks - impressions p, and impressions p (1 - p), of each end."""
        p = parameters[0]
        clicks, skips = self._of_ends(weights, seen, parameters)
        shown = clicks + skips
        return (clicks - shown * p)[None], (shown * p * (1 - p))[None]

    def _of_ends(self, weights: Floats, seen: Observations, parameters: Floats | None) -> tuple[Floats, Floats]:
        """End x group: the clicks and skips that each end accounts for."""
        clicks, skips = seen.shared_out(weights, seen.clicks), seen.shared_out(weights, seen.skips)
        if self.grades == 2 or parameters is None:
            return (clicks, skips) if self.grades == 2 else (self.shares.T @ clicks, self.shares.T @ skips)
        ends, p = parameters[0], self.rates(parameters)
        return ends * (self.shares.T @ (clicks / p)), (1 - ends) * (self.shares.T @ (skips / (1 - p)))

    def unbounded(self, parameters: Floats) -> Floats:
        """Logits of the rates."""
        return np.asarray(logit(parameters))

    def bounded(self, values: Floats, seen: Observations, *, in_order: bool = True) -> Floats:
        """The rates; `in_order` means that the last is not below the first."""
        p = _within(expit(values))
        if not in_order or (p[:, 0] <= p[:, -1]).all():
            return p
        return np.asarray(np.where(p[:, :1] <= p[:, -1:], p, p.mean(axis=1, keepdims=True)))

    def lowest(self, seen: Observations) -> Floats:
        """The logit of the lowest rate; the highest is its mirror image."""
        return np.full((1, 2, 1), logit(LOWEST_RATE))


@dataclass(frozen=True)
class GaussianRates:
    """rate ~ Normal(mean, variance), two grades: parameters[0] are means, parameters[1] variances, end x group."""

    grades: int = 2

    name: ClassVar[str] = "gaussian"
    parameters_per_end: ClassVar[int] = 2

    def log_density(self, parameters: Floats, seen: Observations) -> Floats:
        """-(x - mu)^2 / (2 s^2) - log(2 pi s^2) / 2."""
        mean, variance = parameters
        level = -np.log(2 * np.pi * variance) / 2
        precision = -1 / (2 * variance)
        squares = (seen.rates - mean) ** 2
        return np.asarray(squares * precision + level)

    def constant(self, seen: Observations) -> float:
        """0: the log density leaves nothing out."""
        return 0.0

    def maximise(self, weights: Floats, seen: Observations, parameters: Floats | None = None) -> Floats:
        """Weighted mean and variance of the rates, the variance with a floor."""
        ones = np.ones_like(seen.rates)
        total = seen.shared_out(weights, ones)
        mean = _ratio(seen.shared_out(weights, seen.rates), total)
        variance = _ratio(seen.shared_out(weights * (seen.rates - mean) ** 2, ones), total)
        return np.array([mean, np.maximum(variance, self._floor(seen))])

    def _floor(self, seen: Observations) -> Floats:
        """Per group: the binomial variance of rates of documents with slightly more than the group's mean rate.

        Without a floor, documents that were never clicked become a component without variance, which beats every other
        fit; and rates that are all equal have no variance at all.
        """
        documents = np.maximum(seen.per_group(np.ones_like(seen.clicks)), 1)
        shown = np.maximum(seen.per_group(seen.impressions), 1)
        p = np.minimum((seen.per_group(seen.clicks) + LEAST_CLICKS * documents) / shown, 0.5)
        return np.asarray(p * (1 - p) * np.maximum(seen.per_group(1 / seen.impressions) / documents, 1e-12))

    def score(self, parameters: Floats, weights: Floats, seen: Observations) -> tuple[Floats, Floats]:
        """In the mean: sum r (x - mu) / v, and sum r / v; in log v: sum r ((x - mu)^2 / v - 1) / 2, and sum r / 2."""
        mean, variance = parameters
        ones, off = np.ones_like(seen.rates), seen.rates - mean
        total, first, second = (seen.shared_out(part, ones) for part in (weights, weights * off, weights * off * off))
        slope = np.array([first / variance, (second / variance - total) / 2])
        return slope, np.array([total / variance, total / 2])

    def unbounded(self, parameters: Floats) -> Floats:
        """Means, and logarithms of variances."""
        return np.array([parameters[0], np.log(parameters[1])])

    def bounded(self, values: Floats, seen: Observations, *, in_order: bool = True) -> Floats:
        """Means, and variances with their floor."""
        return np.array([values[0], np.maximum(np.exp(values[1]), self._floor(seen))])

    def lowest(self, seen: Observations) -> Floats:
        """No bound for means, the floor for logarithms of variances."""
        floor = np.broadcast_to(np.log(self._floor(seen)), (2, 1))
        return np.array([np.full((2, 1), -np.inf), floor])


def _within(rates: Floats) -> Floats:
    return np.minimum(np.maximum(rates, LOWEST_RATE), 1 - LOWEST_RATE)


def _ratio(above: Floats, below: Floats) -> Floats:
    """above / below, and 0 where below is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def distribution_of(name: str, *, grades: int = 2) -> Distribution:
    """The family of that name."""
    return GaussianRates() if name == "gaussian" else BinomialCounts(grades)
