"""Mixture: what was fitted to one group, and a verdict on it from a closed list.   groups -> mixtures -> labels"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.mixtures.evidence import (
    Evidence,
    beta_binomial_evidence,
    binomial_evidence,
    gaussian_evidence,
    no_evidence,
)
from clickmix.mixtures.problem import mean_grade
from clickmix.types import Floats

SEPARATED_FROM = 0.8  # share of the uncertainty about relevance that the clicks must remove


class Verdict(enum.StrEnum):
    """The verdicts on a group, a closed list.

    >>> Verdict("no clicks") is Verdict.NO_CLICKS, str(Verdict.ONE_RATE)
    (True, 'one rate')
    """

    SEPARATED = "separated"
    OVERLAPPING = "overlapping"  # fitted, but labels are unsure
    ONE_RATE = "one rate"
    NO_CLICKS = "no clicks"
    ALL_CLICKED = "all clicked"
    TOO_FEW_DOCUMENTS = "too few documents"  # joined to a neighbour
    NOT_CONVERGED = "not converged"


@dataclass(frozen=True)
class Mixture:
    """The grades of one group, lowest rate first: two or more, or one if clicks say nothing about relevance.

    `weights` are the shares of documents of each grade. `standard_errors` are those of the lowest and the highest rate
    on the logit scale, where the information matrix allows them. `separation` is the share of the uncertainty about
    relevance that clicks in this group remove (0 none, 1 all), and `error` what they leave: the root mean squared error
    to expect of labels. `own` is how many parameters the group's own clicks determine; neighbours determine the rest.
    Where documents of a grade differ in appeal, its rate counts for `alike` impressions of a document.

    >>> mixture = Mixture("binomial", Verdict.SEPARATED, weights=(0.8, 0.2), rates=(0.1, 0.5))
    >>> mixture.relevance([10, 10], [1, 6]).round(3).tolist()
    [0.006, 0.997]
    """

    family: str
    verdict: Verdict
    weights: tuple[float, ...]
    rates: tuple[float, ...]
    variances: tuple[float, ...] | None = None
    standard_errors: tuple[float, ...] | None = None
    separation: float = 0.0
    error: float | None = None
    log_likelihoods: tuple[float, ...] = ()
    bic: float | None = None
    bic_one_rate: float | None = None
    own: float | None = None
    alike: tuple[float, ...] | None = None

    @property
    def informative(self) -> bool:
        """Whether clicks in this group count as evidence."""
        return len(self.rates) > 1

    @property
    def iterations(self) -> int:
        """Steps of the climb; `log_likelihoods` has the value before and after each."""
        return max(0, len(self.log_likelihoods) - 1)

    def evidence(self, *, grades: int) -> Evidence:
        """What a click and a skip in this group say about relevance, in a log of so many grades."""
        if not self.informative:
            return no_evidence(self.family, grades=grades)
        if self.alike is not None:
            return beta_binomial_evidence(self.rates, self.alike)
        if self.variances is None:
            return binomial_evidence(self.rates)
        return gaussian_evidence(self.rates, self.variances)

    def posterior(self, impressions: Any, clicks: Any) -> Floats:
        """Grade x document: the probability of each grade for a document seen in this group only."""
        ratios = self.evidence(grades=len(self.rates)).log_ratios(impressions, clicks)
        prior = np.log(np.maximum(self.weights, np.finfo(float).tiny))
        logs = np.concatenate([np.zeros((1, *np.shape(clicks))), ratios.reshape(-1, *np.shape(clicks))])
        logs = logs + prior.reshape(-1, *(1,) * np.ndim(clicks))
        return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=0)))

    def relevance(self, impressions: Any, clicks: Any) -> Floats:
        """The label of a document seen in this group only: the mean of its grades; nan where there is one rate."""
        return (
            mean_grade(self.posterior(impressions, clicks)) if self.informative else np.full(np.shape(clicks), np.nan)
        )


def silent(family: str, clicks: float, impressions: float) -> Mixture | None:
    """A group in which everything, or nothing, was clicked: EM would give equal rates and any weights at all."""
    if clicks == 0:
        return Mixture(family, Verdict.NO_CLICKS, (1.0,), (0.0,))
    if clicks == impressions:
        return Mixture(family, Verdict.ALL_CLICKED, (1.0,), (1.0,))
    return None


def left_over(posterior: Floats, documents: Floats) -> tuple[float, float]:
    """What clicks tell of relevance, by the law of total variance: separation, and the error they leave.

    separation = 1 - mean Var(relevance | clicks) / Var(relevance), error = the root of that mean.
    """
    x, total = np.linspace(0, 1, len(posterior)), documents.sum()
    mean, square = (np.einsum("k,kd->d", power, posterior) for power in (x, x * x))
    left = max(0.0, float((documents * (square - mean * mean)).sum() / total))
    spread = float((documents * square).sum() / total) - float((documents * mean).sum() / total) ** 2
    return (max(0.0, 1 - left / spread) if spread > 0 else 0.0), float(np.sqrt(left))
