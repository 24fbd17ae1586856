"""Fit one group, from its histogram.   Observations -> Mixture"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from clickmix.groups.observations import Observations
from clickmix.mixtures.distributions import BinomialCounts, Distribution, distribution_of
from clickmix.mixtures.group_likelihood import GroupFit, GroupLikelihood, fit_mixture
from clickmix.mixtures.information import observed_information, standard_errors
from clickmix.mixtures.mixture import SEPARATED_FROM, Mixture, Verdict, left_over, silent
from clickmix.types import Floats


def fit_group(seen: Observations, family: Literal["binomial", "gaussian"], *, grades: int = 2) -> Mixture:
    """Fit one group; give it a single rate if that explains it as well, by BIC over documents.

    >>> from clickmix import Counts, fit_group
    >>> from clickmix.groups.places import observations_of, read_histogram
    >>> counts = Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> (seen,) = observations_of(read_histogram(counts), np.zeros(1, dtype=int))
    >>> [round(rate, 2) for rate in fit_group(seen, "binomial").rates]
    [0.06, 0.5]
    """
    nothing = silent(family, *seen.totals)
    if nothing is not None:
        return nothing
    kind = distribution_of(family, grades=grades)
    fit = _in_order(fit_mixture(seen, kind))
    bics = _bics(seen, kind, fit)
    one_rate = bics[0] >= bics[1]
    if family == "gaussian" and not one_rate:
        # Rates of few impressions scatter more than those of many; to a Gaussian that alone looks like two components.
        counts = _bics(seen, BinomialCounts(), fit_mixture(seen, BinomialCounts()))
        one_rate = counts[0] >= counts[1]
    mixture = one_rate_mixture(seen, family) if one_rate else describe(seen, kind, fit.prior, fit.parameters)
    if not fit.converged and not one_rate:
        mixture = replace(mixture, verdict=Verdict.NOT_CONVERGED)
    return replace(mixture, log_likelihoods=fit.climbed, bic=bics[0], bic_one_rate=bics[1])


def describe(seen: Observations, family: Distribution, prior: Floats, parameters: Floats) -> Mixture:
    """The parameters of one group as a mixture with a verdict."""
    if parameters[0, 0, 0] >= parameters[0, 1, 0]:
        return one_rate_mixture(seen, family.name)
    problem = GroupLikelihood(seen, family)
    errors = None
    if family.name == "binomial":
        errors = standard_errors(observed_information(seen, problem.pack(prior, parameters)))[-2:]
    weights = np.exp(problem.log_prior(prior))[:, 0]
    plain = Mixture(
        family.name,
        Verdict.OVERLAPPING,
        tuple((weights / weights.sum()).tolist()),
        tuple(np.linspace(parameters[0, 0, 0], parameters[0, 1, 0], family.grades).tolist()),
        tuple(parameters[1, :, 0].tolist()) if len(parameters) > 1 else None,
        None if errors is None or np.isnan(errors).any() else tuple(errors.tolist()),
    )
    separation, error = left_over(plain.posterior(seen.impressions, seen.clicks), seen.multiplicity)
    verdict = Verdict.SEPARATED if separation >= SEPARATED_FROM else Verdict.OVERLAPPING
    return replace(plain, verdict=verdict, separation=separation, error=error)


def one_rate_mixture(seen: Observations, family: str) -> Mixture:
    """All documents of a group at one rate."""
    m = seen.multiplicity
    return Mixture(family, Verdict.ONE_RATE, (1.0,), (float(m @ seen.clicks / (m @ seen.impressions)),))


def one_rate_log_likelihoods(seen: Observations, family: Distribution) -> Floats:
    """Per group, the log-likelihood of the best single rate, without the family's constant."""
    weights = np.ones((family.grades, len(seen.clicks)))
    parameters = family.maximise(weights, seen)
    parameters = np.repeat(parameters.mean(axis=1, keepdims=True), 2, axis=1)
    return seen.per_group(family.log_density(parameters, seen)[0])


def _bics(seen: Observations, family: Distribution, fit: GroupFit) -> tuple[float, float]:
    """BIC over documents, of all grades and of one rate."""
    log_documents, k = float(np.log(seen.multiplicity.sum())), family.parameters_per_end
    graded = -2 * fit.log_likelihood + (2 * k + family.grades - 1) * log_documents
    one = float(one_rate_log_likelihoods(seen, family)[0]) + family.constant(seen)
    return graded, -2 * one + k * log_documents


def _in_order(fit: GroupFit) -> GroupFit:
    """The fit with the higher rate second; a Gaussian's EM can end with them the other way round."""
    if fit.parameters[0, 0, 0] <= fit.parameters[0, 1, 0]:
        return fit
    return replace(fit, prior=-fit.prior, parameters=fit.parameters[:, ::-1], log_posterior=fit.log_posterior[::-1])
