"""Fit all groups at once, each document having one relevance wherever it was shown.   Observations -> Mixtures"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clickmix.groups.observations import Observations
from clickmix.mixtures.families import Family, family_of
from clickmix.mixtures.information import rate_errors
from clickmix.mixtures.kinds.kind import GroupFits
from clickmix.mixtures.mixture import SEPARATED_FROM, Mixture, Verdict, left_over, silent
from clickmix.mixtures.problem import Fit, Problem, fit_mixture
from clickmix.mixtures.single import one_rate_log_likelihoods
from clickmix.types import Floats


@dataclass(frozen=True)
class JointFit:
    """A mixture and prior weights (group x grade) for every group; BIC over documents; the way up.

    `error` is the expected root mean squared error of labels, from all the places where a document was seen.
    """

    mixtures: tuple[Mixture, ...]
    priors: Floats
    bic: float
    log_likelihoods: tuple[float, ...]
    error: float

    def as_groups(self) -> GroupFits:
        """As groups; where no group tells grades apart, prior and error belong to nothing."""
        known = any(mixture.informative for mixture in self.mixtures)
        priors = list(self.priors) if known else [None] * len(self.mixtures)
        return GroupFits(self.mixtures, priors, self.log_likelihoods, error=self.error if known else None)


def fit_jointly(seen: Observations, family: str, *, grades: int = 2, positions: Any = None) -> JointFit:
    """Fit all groups at once, for documents that move between them.

    The prior logits of a group's grades are linear in the logarithm of its position where `positions` are given,
    otherwise the same everywhere. All groups have one rate when a rate per group explains the log as well, by BIC over
    documents; a single group has when tying its rates loses no more than BIC allows.
    """
    kind = family_of(family, grades=grades)
    flat = np.ones((seen.groups, 1))
    columns = flat if positions is None else np.column_stack([flat, np.log(np.asarray(positions, dtype=np.float64))])
    fit = fit_mixture(seen, kind, columns=columns)
    k, log_documents = kind.parameters_per_end, np.log(max(len(seen.multiplicity), 1))
    one_rate = one_rate_log_likelihoods(seen, kind)
    gain = 2 * (fit.log_likelihood - float(one_rate.sum()) - kind.constant(seen))
    nothing = gain <= (k * seen.groups + fit.prior.size) * log_documents
    cells = np.maximum(seen.per_group(np.ones_like(seen.clicks)), 1)
    tied = (losses_of_tying(seen, kind, fit) <= k * np.log(cells)) | nothing
    bic = -2 * fit.log_likelihood + (2 * k * seen.groups + fit.prior.size) * log_documents
    weights = np.exp(columns @ fit.prior)
    weights = np.hstack([np.ones((seen.groups, 1)), weights])
    error = left_over(np.exp(fit.log_posterior), seen.multiplicity)[1]
    mixtures = _mixtures(seen, kind, fit, columns, tied)
    return JointFit(mixtures, weights / weights.sum(axis=1)[:, None], bic, fit.climbed, error)


def _mixtures(seen: Observations, family: Family, fit: Fit, columns: Floats, tied: Floats) -> tuple[Mixture, ...]:
    errors = None
    if family.name == "binomial":
        errors = rate_errors(Problem(seen, family, columns=columns), fit.prior, fit.parameters)
    clicks, shown = seen.per_group(seen.clicks), seen.per_group(seen.impressions)
    return tuple(
        silent(family.name, clicks[g], shown[g])
        or _mixture(seen, family, fit, g, None if errors is None else errors[:, g], one_rate=bool(tied[g]))
        for g in range(seen.groups)
    )


def _mixture(
    seen: Observations, family: Family, fit: Fit, group: int, errors: Floats | None, *, one_rate: bool
) -> Mixture:
    """What a joint fit says of one group; its weights are the shares of grades among the documents seen there."""
    cells = seen.group == group
    n, c, m = seen.impressions[cells], seen.clicks[cells], seen.multiplicity[seen.document[cells]]
    low, high = fit.parameters[0, :, group]
    if one_rate or low >= high:
        return Mixture(family.name, Verdict.ONE_RATE, (1.0,), (float(m @ c / (m @ n)),))
    shares = np.einsum("kd,d->k", np.exp(fit.log_posterior[:, seen.document[cells]]), m)
    plain = Mixture(
        family.name,
        Verdict.OVERLAPPING,
        tuple((shares / shares.sum()).tolist()),
        tuple(np.linspace(low, high, family.grades).tolist()),
        tuple(fit.parameters[1, :, group].tolist()) if len(fit.parameters) > 1 else None,
        None if errors is None or np.isnan(errors).any() else tuple(errors.tolist()),
    )
    separation, error = left_over(plain.posterior(n, c), m)
    verdict = Verdict.SEPARATED if separation >= SEPARATED_FROM else Verdict.OVERLAPPING
    return replace(
        plain, verdict=verdict if fit.converged else Verdict.NOT_CONVERGED, separation=separation, error=error
    )


def losses_of_tying(seen: Observations, family: Family, fit: Fit) -> Floats:
    """Per group, twice the log-likelihood that is lost when its rates become one, all else unchanged.

    With r_k the document's grades, f_k a cell's densities and f that of one rate, the likelihood of the document
    changes by the factor f sum_k r_k / f_k.
    """
    ratios = fit.log_posterior[:, seen.document] - family.log_density(fit.parameters, seen)
    return np.asarray(
        -2 * (seen.per_group(np.logaddexp.reduce(ratios, axis=0)) + one_rate_log_likelihoods(seen, family))
    )
