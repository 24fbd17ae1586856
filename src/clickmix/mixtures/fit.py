"""Fit a two-part mixture to documents with one relevance each, by EM.   Observations -> Fit

For document d with cells i in groups g(i), prior logit eta_d and component densities f_0, f_1:
    log P(d, R=k) = log P(R=k | eta_d) + sum_i log f_k(i)            (E-step: normalise over k, in log space)
A group's histogram is the special case of one cell per document; documents that move have several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, log_expit, logit

from clickmix.mixtures.em import Vector, climb
from clickmix.mixtures.families import Family
from clickmix.mixtures.observations import Floats, Observations

Prior = Literal["position", "flat"]

GAIN_PER_DOCUMENT = 1e-12
START_QUANTILES = (0.5, 0.75, 0.9, 0.97)
START_CONFIDENCE = 0.9
LARGEST_LOGIT = 30.0


@dataclass(frozen=True)
class Fit:
    """Prior logits (one, or one per group), the family's parameters, and how they were reached."""

    prior: Floats
    parameters: Floats
    relevance: Floats  # per document: posterior of the better component
    log_likelihoods: tuple[float, ...]
    converged: bool


class Problem:
    """Observations, family and kind of prior: the function that EM climbs."""

    def __init__(self, seen: Observations, family: Family, *, prior: Prior) -> None:
        self.seen, self.family = seen, family
        self.prior_by_group = prior == "position" and seen.groups > 1
        self.priors = seen.groups if self.prior_by_group else 1
        self.constant = family.constant(seen)

    def pack(self, prior: Floats, parameters: Floats) -> Vector:
        """All parameters in one vector without bounds."""
        return np.concatenate([prior, self.family.unbounded(parameters).ravel()])

    def unpack(self, x: Vector) -> tuple[Floats, Floats]:
        """Prior logits and the family's parameters."""
        shape = (self.family.parameters_per_component, 2, self.seen.groups)
        prior = np.clip(x[: self.priors], -LARGEST_LOGIT, LARGEST_LOGIT)
        return prior, self.family.bounded(x[self.priors :].reshape(shape), self.seen)

    def _unordered(self, x: Vector) -> tuple[Floats, Floats]:
        """Like unpack, but rates may be in any order: a gradient belongs to a smooth function."""
        shape = (self.family.parameters_per_component, 2, self.seen.groups)
        return x[: self.priors], self.family.bounded(x[self.priors :].reshape(shape), self.seen, in_order=False)

    def prior_logits(self, prior: Floats) -> Floats:
        """eta_d: the common prior, or the mean of the groups' priors weighted by the document's impressions."""
        if self.prior_by_group:
            return np.asarray(self.seen.shares @ prior)
        return prior[:1]

    def expect(self, prior: Floats, parameters: Floats) -> tuple[float, Floats]:
        """E-step: the log-likelihood, and each document's relevance."""
        density = self.family.log_density(parameters, self.seen)
        eta = self.prior_logits(prior)
        log_0 = log_expit(-eta) + self.seen.per_document(density[0])
        log_1 = log_expit(eta) + self.seen.per_document(density[1])
        total = np.logaddexp(log_0, log_1)
        return float(self.seen.multiplicity @ total) + self.constant, np.exp(log_1 - total)

    def maximise(self, relevance: Floats, prior: Floats) -> tuple[Floats, Floats]:
        """M-step: the priors and parameters that fit best when each document is relevant with this probability."""
        r = relevance[self.seen.document]
        parameters = self.family.maximise(np.array([1 - r, r]), self.seen)
        return self._maximise_prior(relevance, prior), parameters

    def step(self, x: Vector) -> tuple[float, Vector]:
        """The log-likelihood at x, and the point after one EM step."""
        prior, parameters = self.unpack(x)
        value, relevance = self.expect(prior, parameters)
        return value, self.pack(*self.maximise(relevance, prior))

    def slope(self, x: Vector) -> tuple[float, Vector]:
        """The log-likelihood at x and its gradient: that of the complete one, with relevance as expected at x."""
        prior, parameters = self._unordered(x)
        value, relevance = self.expect(prior, parameters)
        return value, self._score(prior, parameters, relevance)[0]

    def curvature(self, x: Vector) -> Vector:
        """The information that complete data would have in each coordinate."""
        prior, parameters = self._unordered(x)
        return self._score(prior, parameters, self.expect(prior, parameters)[1])[1]

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Logits within what a float can tell from 0 and 1."""
        lowest = self.family.lowest(self.seen).ravel()
        highest = -lowest if self.family.name == "binomial" else np.full_like(lowest, np.inf)
        return [(-LARGEST_LOGIT, LARGEST_LOGIT)] * self.priors + [
            (low if np.isfinite(low) else None, high if np.isfinite(high) else None)
            for low, high in zip(lowest, highest, strict=True)
        ]

    def _score(self, prior: Floats, parameters: Floats, relevance: Floats) -> tuple[Vector, Vector]:
        m, pi = self.seen.multiplicity, expit(self.prior_logits(prior))
        r = relevance[self.seen.document]
        slope, curvature = self.family.score(parameters, np.array([1 - r, r]), self.seen)
        off, spread = m * (relevance - pi), m * pi * (1 - pi)
        if self.prior_by_group:
            priors = self.seen.shares.T @ off, self.seen.shares.power(2).T @ spread
        else:
            priors = np.array([off.sum()]), np.array([spread.sum()])
        return np.concatenate([priors[0], slope.ravel()]), np.concatenate([priors[1], curvature.ravel()])

    def _maximise_prior(self, relevance: Floats, prior: Floats) -> Floats:
        m = self.seen.multiplicity
        if not self.prior_by_group:
            return np.asarray(np.clip(logit(np.array([m @ relevance / m.sum()])), -LARGEST_LOGIT, LARGEST_LOGIT))
        return self._newton(relevance, prior)

    def _newton(self, relevance: Floats, prior: Floats) -> Floats:
        """One Newton step of the logistic regression of relevance on the shares, halved until it is no loss.

        The shortest of all Newton steps: priors of groups that the data cannot tell apart stay together.
        """
        m, shares = self.seen.multiplicity, self.seen.shares
        pi = expit(self.prior_logits(prior))
        gradient = shares.T @ (m * (relevance - pi))
        hessian = (shares.T @ shares.multiply((m * pi * (1 - pi))[:, None])).toarray()
        direction = np.linalg.lstsq(hessian, gradient, rcond=1e-9)[0]
        before = self._prior_fit(relevance, prior)
        for halvings in range(30):
            candidate = np.asarray(np.clip(prior + direction / 2**halvings, -LARGEST_LOGIT, LARGEST_LOGIT))
            if self._prior_fit(relevance, candidate) >= before:
                return candidate
        return prior

    def _prior_fit(self, relevance: Floats, prior: Floats) -> float:
        eta = self.prior_logits(prior)
        return float(self.seen.multiplicity @ (relevance * eta + log_expit(-eta)))


def fit_mixture(seen: Observations, family: Family, *, prior: Prior = "position") -> Fit:
    """Climb from several starts, the best one to the end."""
    problem = Problem(seen, family, prior=prior)
    path = climb(problem, _starts(problem), tolerance=GAIN_PER_DOCUMENT * float(seen.multiplicity.sum()))
    prior_logits, parameters = problem.unpack(path.parameters)
    _, relevance = problem.expect(prior_logits, parameters)
    return Fit(prior_logits, parameters, relevance, path.log_likelihoods, path.converged)


def _starts(problem: Problem) -> list[Vector]:
    """Call the most clicked documents relevant: the upper half, quarter, tenth, and the top 3 %.

    Most clicked means most clicks beside what the average document would have got in the same groups.
    """
    seen = problem.seen
    rate = seen.per_group(seen.clicks) / np.maximum(seen.per_group(seen.impressions), 1)
    expected = seen.per_document(seen.impressions * rate[seen.group])
    score = (seen.per_document(seen.clicks) + 1) / (expected + 1)
    cuts = dict.fromkeys(float(cut) for cut in _quantiles(score, seen.multiplicity))
    starts = []
    for cut in cuts:
        relevance = np.where(score > cut, START_CONFIDENCE, 1 - START_CONFIDENCE)
        prior = np.full(problem.priors, logit(seen.multiplicity @ relevance / seen.multiplicity.sum()))
        starts.append(problem.pack(*problem.maximise(relevance, prior)))
    return starts


def _quantiles(values: Floats, weights: Floats) -> Floats:
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    places = np.searchsorted(cumulated, np.array(START_QUANTILES) * cumulated[-1])
    return np.asarray(values[order][np.minimum(places, len(values) - 1)])
