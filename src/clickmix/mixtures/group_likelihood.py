"""Fit a mixture of grades to the documents of a group, by EM.   Observations -> GroupFit

For a document d with one cell, prior logits eta_k of the group (of grade k relative to grade 0) and densities f_k:
    log P(d, grade k) = log softmax(0, eta)_k + log f_k(cell)                 (E-step: normalise over k, in log space)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.groups.observations import Observations
from clickmix.mixtures.distributions import Distribution
from clickmix.mixtures.em import climb
from clickmix.mixtures.mixture import mean_grade
from clickmix.mixtures.starts import starts
from clickmix.types import Floats

GAIN_PER_DOCUMENT = 1e-9
LARGEST_LOGIT = 30.0


@dataclass(frozen=True)
class GroupFit:
    """Prior logits (1 x grades above 0), the distribution's parameters, and the way there.

    `log_posterior` is grade x document; a logarithm, because floats cannot hold probabilities between 1 - 1e-16 and 1.
    """

    prior: Floats
    parameters: Floats
    log_posterior: Floats
    log_likelihood: float
    climbed: tuple[float, ...]
    converged: bool

    @property
    def relevance(self) -> Floats:
        """Per document: the mean of its grades, from 0 to 1."""
        return mean_grade(np.exp(self.log_posterior))


class GroupLikelihood:
    """Observations and a distribution: the function that EM climbs."""

    def __init__(self, seen: Observations, family: Distribution) -> None:
        self.seen, self.family = seen, family
        self.documents = seen.per_group(np.ones_like(seen.clicks))
        self.priors = family.grades - 1
        self.constant = family.constant(seen)

    def pack(self, prior: Floats, parameters: Floats) -> Floats:
        """All parameters in one vector without bounds."""
        return np.concatenate([prior.ravel(), self.family.unbounded(parameters).ravel()])

    def unpack(self, x: Floats, *, in_order: bool = True) -> tuple[Floats, Floats]:
        """Prior logits and the family's parameters; not in order for gradients, which need a smooth function."""
        ends = x[self.priors :].reshape(self.family.parameters_per_end, 2, 1)
        prior = np.clip(x[: self.priors], -LARGEST_LOGIT, LARGEST_LOGIT)[None]
        return prior, self.family.bounded(ends, self.seen, in_order=in_order)

    def log_prior(self, prior: Floats) -> Floats:
        """Grade x 1: log softmax(0, eta)."""
        eta = np.vstack([np.zeros(1), prior.T])
        return np.asarray(eta - np.logaddexp.reduce(eta, axis=0))

    def expect(self, prior: Floats, parameters: Floats) -> tuple[float, Floats]:
        """E-step: the log-likelihood, and grade x document the probability of each grade."""
        joint = self._log_joint(prior, parameters)
        highest = joint.max(axis=0)
        posterior = np.exp(joint - highest)
        total = posterior.sum(axis=0)
        value = float((self.seen.multiplicity * (highest + np.log(total))).sum()) + self.constant
        return value, np.asarray(posterior / total)

    def _log_joint(self, prior: Floats, parameters: Floats) -> Floats:
        return np.asarray(self.family.log_density(parameters, self.seen) + self.log_prior(prior))

    def log_posterior(self, prior: Floats, parameters: Floats) -> tuple[float, Floats]:
        """The log-likelihood, and grade x document the logarithm of each grade's probability."""
        joint = self._log_joint(prior, parameters)
        total = np.logaddexp.reduce(joint, axis=0)
        return float((self.seen.multiplicity * total).sum()) + self.constant, np.asarray(joint - total)

    def maximise(self, posterior: Floats, parameters: Floats | None = None) -> tuple[Floats, Floats]:
        """M-step: priors and parameters that fit better if each document has each grade with this probability."""
        logs = np.log(np.maximum(self._graded(posterior), np.finfo(float).tiny))
        prior = np.clip(logs[1:] - logs[0], -LARGEST_LOGIT, LARGEST_LOGIT).T
        return prior, self.family.maximise(posterior, self.seen, parameters)

    def step(self, x: Floats) -> tuple[float, Floats]:
        """The log-likelihood at x, and the point after one EM step."""
        prior, parameters = self.unpack(x)
        value, posterior = self.expect(prior, parameters)
        return value, self.pack(*self.maximise(posterior, parameters))

    def slope(self, x: Floats) -> tuple[float, Floats]:
        """The log-likelihood at x and its gradient, which is that of the complete data with grades as expected at x."""
        prior, parameters = self.unpack(x, in_order=False)
        value, posterior = self.expect(prior, parameters)
        return value, self._score(prior, parameters, posterior)[0]

    def curvature(self, x: Floats) -> Floats:
        """The information of complete data in each coordinate."""
        prior, parameters = self.unpack(x, in_order=False)
        return self._score(prior, parameters, self.expect(prior, parameters)[1])[1]

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Bounds within which a float can distinguish probabilities from 0 and 1."""
        lowest = self.family.lowest(self.seen).ravel()
        highest = -lowest if self.family.name == "binomial" else np.full_like(lowest, np.inf)
        return [(-LARGEST_LOGIT, LARGEST_LOGIT)] * self.priors + [
            (low if np.isfinite(low) else None, high if np.isfinite(high) else None)
            for low, high in zip(lowest, highest, strict=True)
        ]

    def _score(self, prior: Floats, parameters: Floats, posterior: Floats) -> tuple[Floats, Floats]:
        slope, curvature = self.family.score(parameters, posterior, self.seen)
        pi = np.exp(self.log_prior(prior))[1:]
        off, spread = self._graded(posterior)[1:] - self.documents * pi, self.documents * pi * (1 - pi)
        both = zip((off, spread), (slope, curvature), strict=True)
        steepness, bend = (np.concatenate([of_prior.ravel(), of_rates.ravel()]) for of_prior, of_rates in both)
        return steepness, bend

    def _graded(self, posterior: Floats) -> Floats:
        """Grade x 1: how many documents of each grade."""
        return self.seen.shared_out(posterior, np.ones_like(self.seen.clicks))


def fit_mixture(seen: Observations, family: Distribution) -> GroupFit:
    """Climb from several starts, and from the best one to the top."""
    likelihood = GroupLikelihood(seen, family)
    path = climb(likelihood, starts(likelihood), tolerance=GAIN_PER_DOCUMENT * float(seen.multiplicity.sum()))
    prior, parameters = likelihood.unpack(path.parameters)
    log_likelihood, log_posterior = likelihood.log_posterior(prior, parameters)
    return GroupFit(prior, parameters, log_posterior, log_likelihood, path.log_likelihoods, path.converged)
