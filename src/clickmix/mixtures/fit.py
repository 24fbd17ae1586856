"""Fit a two-part mixture to documents with one relevance each, by EM.   Observations -> Fit

For document d with cells i in groups g(i), prior logit eta_d and component densities f_0, f_1:
    log P(d, R=k) = log P(R=k | eta_d) + sum_i log f_k(i)            (E-step: normalise over k, in log space)
A group's histogram is the special case of one cell per document; documents that move have several. The prior logit is
one number, or linear in some columns of the document's groups: eta_d = x_d' theta, x_d their mean over impressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit

from clickmix.mixtures.em import Vector, climb
from clickmix.mixtures.families import Family
from clickmix.mixtures.observations import Floats, Observations

Prior = Literal["position", "flat"]

GAIN_PER_DOCUMENT = 1e-11
START_QUANTILES = (0.5, 0.75, 0.9, 0.97)
START_CONFIDENCE = 0.9
LARGEST_LOGIT = 30.0


@dataclass(frozen=True)
class Pull:
    """What is known of a group's prior logit from other groups: about `mean`, give or take `deviation`.

    Where a group's own clicks are clear they overrule it; where they leave weight and rate undetermined, it decides.
    """

    mean: float
    deviation: float

    def log_density(self, logit: float) -> float:
        """Of a normal distribution, up to a constant."""
        return -(((logit - self.mean) / self.deviation) ** 2) / 2


@dataclass(frozen=True)
class Fit:
    """Theta (a prior logit, or one coefficient per column), the family's parameters, and how they were reached.

    With a pull, what is climbed is the log-likelihood plus the pull's log density.
    """

    prior: Floats
    parameters: Floats
    log_odds: Floats  # per document, of the better component; beyond 37 relevance itself can no longer tell
    log_likelihood: float
    climbed: tuple[float, ...]
    converged: bool

    @property
    def relevance(self) -> Floats:
        """Per document: posterior of the better component."""
        return np.asarray(expit(self.log_odds))


class Problem:
    """Observations, family and kind of prior: the function that EM climbs."""

    def __init__(
        self, seen: Observations, family: Family, *, columns: Floats | None = None, pull: Pull | None = None
    ) -> None:
        self.seen, self.family, self.pull = seen, family, pull
        self.x = None if columns is None else seen.shares_of(columns)
        self.priors = 1 if self.x is None else self.x.shape[1]
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
        """eta_d = x_d' theta; a common prior is a single number for all."""
        return prior[:1] if self.x is None else np.asarray(self.x @ prior)

    def expect(self, prior: Floats, parameters: Floats) -> tuple[float, Floats]:
        """E-step: the log-likelihood, and each document's relevance."""
        value, log_odds = self.log_odds(prior, parameters)
        return value, np.asarray(expit(log_odds))

    def log_odds(self, prior: Floats, parameters: Floats) -> tuple[float, Floats]:
        """The log-likelihood, and each document's log odds of being relevant."""
        density = self.family.log_density(parameters, self.seen)
        eta = self.prior_logits(prior)
        log_0 = log_expit(-eta) + self.seen.per_document(density[0])
        log_1 = log_expit(eta) + self.seen.per_document(density[1])
        value = float(self.seen.multiplicity @ np.logaddexp(log_0, log_1)) + self.constant
        return value, np.asarray(log_1 - log_0)

    def maximise(self, relevance: Floats, prior: Floats) -> tuple[Floats, Floats]:
        """M-step: the priors and parameters that fit best when each document is relevant with this probability."""
        r = self._of_cells(relevance)
        parameters = self.family.maximise(np.array([1 - r, r]), self.seen)
        return self._maximise_prior(relevance, prior), parameters

    def step(self, x: Vector) -> tuple[float, Vector]:
        """The log-likelihood at x, and the point after one EM step."""
        prior, parameters = self.unpack(x)
        value, relevance = self.expect(prior, parameters)
        return value + self._pulled(prior), self.pack(*self.maximise(relevance, prior))

    def slope(self, x: Vector) -> tuple[float, Vector]:
        """The log-likelihood at x and its gradient: that of the complete one, with relevance as expected at x."""
        prior, parameters = self._unordered(x)
        value, relevance = self.expect(prior, parameters)
        return value + self._pulled(prior), self._score(prior, parameters, relevance)[0]

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
        r = self._of_cells(relevance)
        slope, curvature = self.family.score(parameters, np.array([1 - r, r]), self.seen)
        off, spread = m * (relevance - pi), m * pi * (1 - pi)
        x = np.ones((len(m), 1)) if self.x is None else self.x
        priors = off @ x, spread @ x**2
        if self.pull is not None:
            precision = self.pull.deviation**-2
            priors = priors[0] - precision * (prior - self.pull.mean), priors[1] + precision
        return np.concatenate([priors[0], slope.ravel()]), np.concatenate([priors[1], curvature.ravel()])

    def _of_cells(self, documents: Floats) -> Floats:
        return documents if self.seen.one_cell_each else documents[self.seen.document]

    def _pulled(self, prior: Floats) -> float:
        return 0.0 if self.pull is None else self.pull.log_density(float(prior[0]))

    def _maximise_prior(self, relevance: Floats, prior: Floats) -> Floats:
        if self.x is not None:
            return self._newton(self.x, relevance, prior)
        total = float(self.seen.multiplicity.sum())
        relevant = float(self.seen.multiplicity @ relevance)
        best = relevant / total
        eta = float(logit(best)) if 0 < best < 1 else (-LARGEST_LOGIT if best <= 0 else LARGEST_LOGIT)
        if self.pull is not None:
            eta = _pulled_logit(relevant, total, self.pull)
        return np.array([min(max(eta, -LARGEST_LOGIT), LARGEST_LOGIT)])

    def _newton(self, x: Floats, relevance: Floats, prior: Floats) -> Floats:
        """One Newton step of the logistic regression of relevance on x, halved until it is no loss.

        The shortest of all Newton steps: what the data cannot tell apart stays as it was.
        """
        m, pi = self.seen.multiplicity, expit(self.prior_logits(prior))
        gradient = x.T @ (m * (relevance - pi))
        hessian = x.T @ (x * (m * pi * (1 - pi))[:, None])
        direction = np.linalg.lstsq(hessian, gradient, rcond=1e-9)[0]
        before = self._prior_fit(relevance, prior)
        for halvings in range(30):
            candidate = np.clip(prior + direction / 2**halvings, -LARGEST_LOGIT, LARGEST_LOGIT)
            if self._prior_fit(relevance, candidate) >= before:
                return np.asarray(candidate)
        return prior

    def _prior_fit(self, relevance: Floats, prior: Floats) -> float:
        eta = self.prior_logits(prior)
        return float(self.seen.multiplicity @ (relevance * eta + log_expit(-eta)))


def _pulled_logit(relevant: float, total: float, pull: Pull) -> float:
    """The maximum of relevant eta - total log(1 + e^eta) + log density of the pull: its slope falls, so bisect."""

    def slope(eta: float) -> float:
        return relevant - total * float(expit(eta)) - (eta - pull.mean) / pull.deviation**2

    return float(brentq(slope, -LARGEST_LOGIT - abs(pull.mean), LARGEST_LOGIT + abs(pull.mean), xtol=1e-13))


def fit_mixture(seen: Observations, family: Family, *, columns: Floats | None = None, pull: Pull | None = None) -> Fit:
    """Climb from several starts, the best one to the end. A pull is for a prior that is a single number."""
    problem = Problem(seen, family, columns=columns, pull=pull)
    path = climb(problem, _starts(problem), tolerance=GAIN_PER_DOCUMENT * float(seen.multiplicity.sum()))
    prior_logits, parameters = problem.unpack(path.parameters)
    log_likelihood, log_odds = problem.log_odds(prior_logits, parameters)
    return Fit(prior_logits, parameters, log_odds, log_likelihood, path.log_likelihoods, path.converged)


def _starts(problem: Problem) -> list[Vector]:
    """Call the most clicked documents relevant: the upper half, quarter, tenth and top 3 %, or as many as a pull says.

    Most clicked means most clicks beside what the average document would have got in the same groups.
    """
    seen = problem.seen
    rate = seen.per_group(seen.clicks) / np.maximum(seen.per_group(seen.impressions), 1)
    expected = seen.per_document(seen.impressions * rate[seen.group])
    score = (seen.per_document(seen.clicks) + 1) / (expected + 1)
    quantiles = START_QUANTILES if problem.pull is None else (float(expit(-problem.pull.mean)),)
    cuts = dict.fromkeys(float(cut) for cut in _quantiles(score, seen.multiplicity, quantiles))
    starts = []
    for cut in cuts:
        relevance = np.where(score > cut, START_CONFIDENCE, 1 - START_CONFIDENCE)
        prior = np.zeros(problem.priors)
        prior[0] = logit(seen.multiplicity @ relevance / seen.multiplicity.sum())  # the first column is all ones
        starts.append(problem.pack(*problem.maximise(relevance, prior)))
    return starts


def _quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> Floats:
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    places = np.searchsorted(cumulated, np.array(shares) * cumulated[-1])
    return np.asarray(values[order][np.minimum(places, len(values) - 1)])
