"""Fit a mixture of grades to documents with one relevance each, by EM.   Observations -> Fit

For document d with cells i in groups g(i), prior logits eta_dk (of grade k beside grade 0) and densities f_k:
    log P(d, grade k) = log softmax(0, eta_d)_k + sum_i log f_k(i)            (E-step: normalise over k, in log space)
A group's histogram is the special case of one cell per document; documents that move have several. Every group has a
prior of its own (documents that move: one for all); or prior logits are linear in some columns of the document's
groups: eta_d = x_d' theta, x_d their mean over impressions.
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
    """Theta (columns x grades above 0; without columns a row per group), the family's parameters, and the way there.

    `log_posterior` is grade x document: beyond 1 - 1e-16 a probability itself can no longer tell.
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


def gram(x: Floats, weights: Floats) -> Floats:
    """x' diag(weights) x, with the same digits whatever threads there are: BLAS adds up as they come."""
    return np.asarray(np.einsum("ri,rj->ij", x, x * weights[:, None]))


class GroupLikelihood:
    """Observations, family and kind of prior: the function that EM climbs."""

    def __init__(self, seen: Observations, family: Distribution, *, columns: Floats | None = None) -> None:
        self.seen, self.family = seen, family
        self.own_priors = columns is None and seen.one_cell_each
        # Documents with one prior stand in one row: a group's where each has its own cell, else every one's.
        x = np.eye(seen.groups) if self.own_priors else np.ones((seen.groups, 1)) if columns is None else columns
        self.x = x if seen.one_cell_each else seen.shares_of(x)
        self.rows = seen.per_group(np.ones_like(seen.clicks)) if seen.one_cell_each else seen.multiplicity
        self.shape = (x.shape[1], family.grades - 1)
        self.constant = family.constant(seen)

    def pack(self, prior: Floats, parameters: Floats) -> Floats:
        """All parameters in one vector without bounds."""
        return np.concatenate([prior.ravel(), self.family.unbounded(parameters).ravel()])

    def unpack(self, x: Floats, *, in_order: bool = True) -> tuple[Floats, Floats]:
        """Prior logits and the family's parameters; not in order for gradients, which belong to a smooth function."""
        priors = self.shape[0] * self.shape[1]
        ends = x[priors:].reshape(self.family.parameters_per_end, 2, self.seen.groups)
        prior = np.clip(x[:priors], -LARGEST_LOGIT, LARGEST_LOGIT).reshape(self.shape)
        return prior, self.family.bounded(ends, self.seen, in_order=in_order)

    def log_prior(self, prior: Floats) -> Floats:
        """Grade x row: log softmax(0, eta), eta = x theta."""
        eta = np.vstack([np.zeros(len(self.x)), (self.x @ prior).T])
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
        density, log_prior = self.family.log_density(parameters, self.seen), self.log_prior(prior)
        if self.seen.one_cell_each:
            return np.asarray(density + self.seen.per_cell(log_prior))
        return np.array([self.seen.per_document(cells) for cells in density]) + log_prior

    def log_posterior(self, prior: Floats, parameters: Floats) -> tuple[float, Floats]:
        """The log-likelihood, and grade x document the logarithm of each grade's probability."""
        joint = self._log_joint(prior, parameters)
        total = np.logaddexp.reduce(joint, axis=0)
        return float((self.seen.multiplicity * total).sum()) + self.constant, np.asarray(joint - total)

    def maximise(
        self, posterior: Floats, prior: Floats | None = None, parameters: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """M-step: priors and parameters that fit better when each document has each grade with this probability."""
        better = self.family.maximise(self._of_cells(posterior), self.seen, parameters)
        return self._maximise_prior(self._of_rows(posterior), prior), better

    def step(self, x: Floats) -> tuple[float, Floats]:
        """The log-likelihood at x, and the point after one EM step."""
        prior, parameters = self.unpack(x)
        value, posterior = self.expect(prior, parameters)
        return value, self.pack(*self.maximise(posterior, prior, parameters))

    def slope(self, x: Floats) -> tuple[float, Floats]:
        """The log-likelihood at x and its gradient: that of the complete one, with grades as expected at x."""
        prior, parameters = self.unpack(x, in_order=False)
        value, posterior = self.expect(prior, parameters)
        return value, self._score(prior, parameters, posterior)[0]

    def curvature(self, x: Floats) -> Floats:
        """The information that complete data would have in each coordinate."""
        prior, parameters = self.unpack(x, in_order=False)
        return self._score(prior, parameters, self.expect(prior, parameters)[1])[1]

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Logits within what a float can tell from 0 and 1."""
        lowest = self.family.lowest(self.seen).ravel()
        highest = -lowest if self.family.name == "binomial" else np.full_like(lowest, np.inf)
        return [(-LARGEST_LOGIT, LARGEST_LOGIT)] * (self.shape[0] * self.shape[1]) + [
            (low if np.isfinite(low) else None, high if np.isfinite(high) else None)
            for low, high in zip(lowest, highest, strict=True)
        ]

    def _score(self, prior: Floats, parameters: Floats, posterior: Floats) -> tuple[Floats, Floats]:
        slope, curvature = self.family.score(parameters, self._of_cells(posterior), self.seen)
        pi = np.exp(self.log_prior(prior))[1:]
        off, spread = self._of_rows(posterior)[1:] - self.rows * pi, self.rows * pi * (1 - pi)
        priors = (np.einsum("rc,kr->ck", x, rows) for x, rows in ((self.x, off), (self.x**2, spread)))
        both = zip(priors, (slope, curvature), strict=True)
        steepness, bend = (np.concatenate([of_prior.ravel(), of_rates.ravel()]) for of_prior, of_rates in both)
        return steepness, bend

    def _of_cells(self, documents: Floats) -> Floats:
        return documents if self.seen.one_cell_each else documents[:, self.seen.document]

    def _of_rows(self, documents: Floats) -> Floats:
        """Grade x row: how many documents of each grade."""
        if self.seen.one_cell_each:
            return self.seen.shared_out(documents, np.ones_like(self.seen.clicks))
        return documents * self.seen.multiplicity

    def _maximise_prior(self, graded: Floats, prior: Floats | None) -> Floats:
        if not self.own_priors:
            return self._newton(graded, np.zeros(self.shape) if prior is None else prior)
        logs = np.log(np.maximum(graded, np.finfo(float).tiny))
        return np.asarray(np.clip(logs[1:] - logs[0], -LARGEST_LOGIT, LARGEST_LOGIT).T)

    def _newton(self, graded: Floats, prior: Floats) -> Floats:
        """One Newton step of the logistic regression of grades on x, halved until it is no loss.

        The shortest of all Newton steps: what the data cannot tell apart stays as it was.
        """
        pi = np.exp(self.log_prior(prior))[1:]
        gradient = np.einsum("rc,kr->kc", self.x, graded[1:] - self.rows * pi).ravel()
        blocks = [
            [gram(self.x, self.rows * pi[k] * ((k == j) - pi[j])) for j in range(len(pi))] for k in range(len(pi))
        ]
        direction = np.linalg.lstsq(np.block(blocks), gradient, rcond=1e-9)[0].reshape(self.shape[::-1]).T
        before = self._prior_fit(graded, prior)
        for halvings in range(30):
            candidate = np.clip(prior + direction / 2**halvings, -LARGEST_LOGIT, LARGEST_LOGIT)
            if self._prior_fit(graded, candidate) >= before:
                return np.asarray(candidate)
        return prior

    def _prior_fit(self, graded: Floats, prior: Floats) -> float:
        return float((graded * self.log_prior(prior)).sum())


def fit_mixture(seen: Observations, family: Distribution, *, columns: Floats | None = None) -> GroupFit:
    """Climb from several starts, the best one to the end."""
    problem = GroupLikelihood(seen, family, columns=columns)
    path = climb(problem, starts(problem), tolerance=GAIN_PER_DOCUMENT * float(seen.multiplicity.sum()))
    return described(problem, path.parameters, path.log_likelihoods, converged=path.converged)


def described(problem: GroupLikelihood, x: Floats, climbed: tuple[float, ...], *, converged: bool) -> GroupFit:
    """A point of a problem as a fit."""
    prior, parameters = problem.unpack(x)
    log_likelihood, log_posterior = problem.log_posterior(prior, parameters)
    return GroupFit(prior, parameters, log_posterior, log_likelihood, climbed, converged)
