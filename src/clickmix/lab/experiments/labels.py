"""Labels by name, to train the rankers of experiments.   Log -> relevance of training and validation lists

The paper has none, ac, mbc, ideal-ac and truth; clickmix adds the others. Fits to the training queries also label the
validation queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp, xlog1py, xlogy

from clickmix.corrections.affine import AffineCorrection
from clickmix.corrections.correction import Correction
from clickmix.corrections.ctr_then_rank import RateThenRank
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.none import NoCorrection
from clickmix.corrections.parameters import BiasParameters
from clickmix.errors import SettingError
from clickmix.lab.experiments.simulator import Log, Shown
from clickmix.lab.experiments.task import Result
from clickmix.lab.users import User
from clickmix.types import Floats

TITLES: dict[str, str] = {
    "none": "no correction",
    "ac": "AC",
    "mbc": "MBC",
    "gaussian": "MBC, Gaussian",
    "auto": "clickmix",
    "auto-flat": "clickmix, flat prior",
    "matching": "clickmix, matching groups",
    "ctr-then-rank": "click-through rate, then position",
    "ideal-ac": "Ideal-AC",
    "limit": "Bayes posterior",
    "truth": "true relevance",
}
ORACLES = ("ideal-ac", "limit", "truth")  # made with knowledge that nobody has about a real log


@dataclass(frozen=True, eq=False)
class Labelled:
    """Relevance (lists, positions) of the documents shown, NaN if there is no label."""

    train: Floats
    vali: Floats


def label(name: str, log: Log, *, estimate: Result | None = None, clipped: bool = True) -> Labelled:
    """The labels of this name; `estimate` is the result of regression EM, for those that need it.

    If not `clipped`, they are the correction's estimates, which can be below 0 and above 1.
    """
    if name == "truth":
        return _both(log, lambda shown: shown.relevance)
    if name == "limit":
        return _both(log, partial(_posterior_mean, log))
    fitted = _correction(name, log, estimate).fit(log.train.counts)

    def of(shown: Shown) -> Floats:
        labels = fitted.label(shown.counts)
        return shown.spread(labels.doc_id, labels.relevance if clipped else labels.estimate)

    return _both(log, of)


def label_error(labelled: Labelled, log: Log) -> float:
    """Root mean squared error of the training labels."""
    return float(np.sqrt(np.nanmean((labelled.train - log.train.relevance) ** 2)))


def _both(log: Log, of: Callable[[Shown], Floats]) -> Labelled:
    return Labelled(of(log.train), of(log.vali))


MIXTURES: dict[str, dict[str, Any]] = {
    "mbc": {"mixture": "binomial", "sharing": False},  # the paper's: every position separately
    "gaussian": {"mixture": "gaussian"},
    "auto": {"mixture": "auto"},
    "auto-flat": {"mixture": "auto", "prior": "flat"},
}


def _correction(name: str, log: Log, estimate: Result | None) -> Correction:
    if name in MIXTURES:
        return MixtureCorrection(**MIXTURES[name])
    if name == "matching" and log.user.examination_of_mixtures is not None:
        return MixtureCorrection(examination=log.user.examination_of_mixtures)
    if name == "none":
        return NoCorrection()
    if name == "ctr-then-rank":
        return RateThenRank()
    if name == "ideal-ac":
        return AffineCorrection(BiasParameters(log.user.alpha, log.user.beta))
    if name == "ac" and estimate is not None:
        return AffineCorrection(BiasParameters(estimate["alpha"], estimate["beta"]))
    raise SettingError(
        f"labels {name!r}: expected one of {', '.join(TITLES)}; ac needs the estimate of regression EM, and matching "
        "needs users whose examination a mixture knows."
    )


def _posterior_mean(log: Log, shown: Shown) -> Floats:
    seen = shown.seen
    mean = bayes_labels(log.user, log.train.relevance, seen.clicks, seen.impressions[:, None])
    return np.where(np.isnan(shown.rates), np.nan, mean)


def bayes_labels(user: User, truth: Floats, clicks: Any, impressions: Any) -> Floats:
    """Bayes' rule with the true click rates, and the true share of each relevance at each position as prior.

    No method that must estimate these parameters can do better. All arrays are (lists, positions); `truth` is NaN past
    the end of a list.
    """
    levels = np.unique(truth[~np.isnan(truth)])
    share = np.array([(truth == level).sum(axis=0) for level in levels]) + 0.5  # no share is exactly 0
    log_prior = np.log(share / share.sum(axis=0))
    rates = user.alpha * levels[:, None] + user.beta
    c, n = np.asarray(clicks)[:, None], np.asarray(impressions)[:, None]
    log_posterior = log_prior + xlogy(c, rates) + xlog1py(n - c, -rates)  # lists, levels, positions
    log_posterior -= logsumexp(log_posterior, axis=1, keepdims=True)
    mean = np.einsum("lgk,g->lk", np.exp(log_posterior), levels)
    return np.asarray(np.clip(mean, levels[0], levels[-1]))  # sums of posteriors are 1 except for rounding
