"""Mixture: what was fitted to one group, and a verdict on it from a closed list.   groups -> mixtures -> labels"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, logit

from clickmix.mixtures.evidence import Evidence, binomial_evidence, gaussian_evidence, no_evidence
from clickmix.mixtures.families import FAMILIES, Family
from clickmix.mixtures.fit import Fit, Pull, fit_mixture
from clickmix.mixtures.information import rate_errors
from clickmix.mixtures.observations import Floats, Observations

SEPARATED_FROM = 0.8  # share of the uncertainty about relevance that the clicks must remove


class Verdict(enum.StrEnum):
    """What can be said of a group; the closed list."""

    SEPARATED = "separated"
    OVERLAPPING = "overlapping"  # fitted, but labels are unsure
    ONE_RATE = "one rate"
    NO_CLICKS = "no clicks"
    ALL_CLICKED = "all clicked"
    TOO_FEW_DOCUMENTS = "too few documents"  # joined to a neighbour
    NOT_CONVERGED = "not converged"


@dataclass(frozen=True)
class Mixture:
    """The components of one group, lowest rate first: two, or a single one where clicks say nothing of relevance.

    `standard_errors` are those of the rates on the logit scale, where the information matrix allows them;
    `separation` is the share of the uncertainty about relevance that clicks in this group remove (0 none, 1 all).
    """

    family: str
    verdict: Verdict
    weights: tuple[float, ...]
    rates: tuple[float, ...]
    variances: tuple[float, ...] | None = None
    standard_errors: tuple[float, ...] | None = None
    separation: float = 0.0
    log_likelihoods: tuple[float, ...] = ()
    bic: float | None = None
    bic_one_rate: float | None = None

    @property
    def informative(self) -> bool:
        """Whether clicks in this group count as evidence."""
        return len(self.rates) > 1

    @property
    def iterations(self) -> int:
        """Steps of the climb; `log_likelihoods` has the value before and after each."""
        return max(0, len(self.log_likelihoods) - 1)

    @property
    def evidence(self) -> Evidence:
        """What a click and a skip in this group say about relevance."""
        if not self.informative:
            return no_evidence(self.family)
        if self.variances is None:
            return binomial_evidence(self.rates)
        return gaussian_evidence(self.rates, self.variances)

    def relevance(self, impressions: Any, clicks: Any) -> Floats:
        """Posterior of the better component for a document seen in this group only."""
        prior = logit(self.weights[-1]) if self.informative else 0.0
        return np.asarray(expit(prior + self.evidence.log_ratio(impressions, clicks)))


def fit_group(seen: Observations, family: str, *, pull: Pull | None = None) -> Mixture:
    """Fit one group from its histogram, by itself or with what other groups say of its weight."""
    silent = _silent(family, float(seen.clicks @ seen.multiplicity), float(seen.impressions @ seen.multiplicity))
    if silent is not None:
        return silent
    kind = FAMILIES[family]
    fit = _in_order(fit_mixture(seen, kind, pull=pull))
    bics = _bics(seen, kind, fit)
    errors = rate_errors(seen, fit) if family == "binomial" else None
    one_rate = bics[0] >= bics[1]
    if family != "binomial" and not one_rate:
        # Rates of few impressions scatter more than those of many: to a Gaussian that alone looks like two components.
        counts = _bics(seen, FAMILIES["binomial"], fit_mixture(seen, FAMILIES["binomial"]))
        one_rate = counts[0] >= counts[1]
    return _described(seen, kind, fit, 0, errors, one_rate=one_rate, trace=fit.climbed, bics=bics)


def _bics(seen: Observations, family: Family, fit: Fit) -> tuple[float, float]:
    """BIC over documents, of two components and of one."""
    log_documents, k = float(np.log(seen.multiplicity.sum())), family.parameters_per_component
    two = -2 * fit.log_likelihood + (2 * k + 1) * log_documents
    return two, -2 * _one_rate_log_likelihood(seen, family) + k * log_documents


def fit_jointly(
    seen: Observations, family: str, *, positions: Any = None
) -> tuple[tuple[Mixture, ...], Floats, tuple[float, ...]]:
    """Fit all groups at once, each document having one relevance wherever it was shown.

    Gives a mixture and a prior logit per group, and the log-likelihoods on the way. The prior logit is linear in the
    logarithm of a group's position where `positions` are given, otherwise one number. All groups have one rate when a
    rate per group explains the log as well, by BIC over documents; a single group has when tying its two rates loses
    no more than BIC allows.
    """
    kind = FAMILIES[family]
    flat = np.ones((seen.groups, 1))
    columns = flat if positions is None else np.column_stack([flat, np.log(np.asarray(positions, dtype=np.float64))])
    fit = fit_mixture(seen, kind, columns=columns)
    errors = rate_errors(seen, fit, columns=columns) if family == "binomial" else None
    k, log_documents = kind.parameters_per_component, np.log(max(len(seen.multiplicity), 1))
    penalty = (k * seen.groups + len(fit.prior)) * log_documents
    nothing = 2 * (fit.log_likelihood - _one_rate_log_likelihood(seen, kind)) <= penalty
    cells = np.maximum(seen.per_group(np.ones_like(seen.clicks)), 1)
    one_rate = (_losses_of_tying(seen, kind, fit) <= k * np.log(cells)) | nothing
    clicks, shown = seen.per_group(seen.clicks), seen.per_group(seen.impressions)
    mixtures = tuple(
        _silent(family, clicks[g], shown[g]) or _described(seen, kind, fit, g, errors, one_rate=bool(one_rate[g]))
        for g in range(seen.groups)
    )
    return mixtures, np.asarray(columns @ fit.prior), fit.climbed


def _silent(family: str, clicks: float, impressions: float) -> Mixture | None:
    """A group in which everything, or nothing, was clicked: EM would give equal rates and any weights at all."""
    if clicks == 0:
        return Mixture(family, Verdict.NO_CLICKS, (1.0,), (0.0,))
    if clicks == impressions:
        return Mixture(family, Verdict.ALL_CLICKED, (1.0,), (1.0,))
    return None


def _described(
    seen: Observations,
    family: Family,
    fit: Fit,
    group: int,
    errors: Floats | None,
    *,
    one_rate: bool,
    trace: tuple[float, ...] = (),
    bics: tuple[float | None, float | None] = (None, None),
) -> Mixture:
    """The fit of one group as a mixture with a verdict."""
    cells = seen.group == group
    n, c, m = seen.impressions[cells], seen.clicks[cells], seen.multiplicity[seen.document[cells]]
    if one_rate or fit.parameters[0, 0, group] >= fit.parameters[0, 1, group]:
        rate = float(m @ c / (m @ n))
        return Mixture(family.name, Verdict.ONE_RATE, (1.0,), (rate,), None, None, 0.0, trace, *bics)
    # The share of relevant documents here; for a single group fitted by itself that is its prior.
    weight = float(m @ fit.relevance[seen.document[cells]] / m.sum()) if seen.groups > 1 else float(expit(fit.prior[0]))
    values = [tuple(row.tolist()) for row in fit.parameters[:, :, group]]
    variances = values[1] if len(values) > 1 else None
    plain = Mixture(family.name, Verdict.OVERLAPPING, (1 - weight, weight), values[0], variances)
    separation = _separation(plain.relevance(n, c), m)
    verdict = Verdict.SEPARATED if separation >= SEPARATED_FROM else Verdict.OVERLAPPING
    standard_errors = None if errors is None or np.isnan(errors[:, group]).any() else tuple(errors[:, group].tolist())
    return Mixture(
        family.name,
        verdict if fit.converged else Verdict.NOT_CONVERGED,
        plain.weights,
        plain.rates,
        variances,
        standard_errors,
        separation,
        trace,
        *bics,
    )


def _separation(relevance: Floats, documents: Floats) -> float:
    """1 - mean r(1-r) / (mean r)(1 - mean r): by the law of total variance, what clicks tell of relevance."""
    mean = float(documents @ relevance / documents.sum())
    left = float(documents @ (relevance * (1 - relevance)) / documents.sum())
    return max(0.0, 1 - left / (mean * (1 - mean))) if 0 < mean < 1 else 0.0


def _in_order(fit: Fit) -> Fit:
    """The component with the higher rate second; a Gaussian's EM may end with them the other way round."""
    if fit.parameters[0, 0, 0] <= fit.parameters[0, 1, 0]:
        return fit
    return replace(fit, prior=-fit.prior, parameters=fit.parameters[:, ::-1], log_odds=-fit.log_odds)


def _one_rate_log_likelihood(seen: Observations, family: Family) -> float:
    """The best a single component per group can do."""
    weights = np.ones((2, len(seen.clicks)))
    density = family.log_density(family.maximise(weights, seen), seen)[0]
    return float(seen.weight @ density) + family.constant(seen)


def _losses_of_tying(seen: Observations, family: Family, fit: Fit) -> Floats:
    """Per group, twice the log-likelihood that is lost when its two components become one, all else unchanged.

    With r the document's relevance, f0 and f1 a cell's densities and f that of one rate, the likelihood of the
    document changes by the factor f ((1-r)/f0 + r/f1).
    """
    log_odds = fit.log_odds[seen.document]
    f0, f1 = family.log_density(fit.parameters, seen)
    f = family.log_density(family.maximise(np.ones((2, len(seen.clicks))), seen), seen)[0]
    return -2 * seen.per_group(np.logaddexp(log_expit(-log_odds) - f0, log_expit(log_odds) - f1) + f)
