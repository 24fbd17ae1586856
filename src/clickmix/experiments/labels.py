"""Labels by name: what a ranker of the experiments is trained on.   Log -> relevance of training and validation lists

The paper's are none, ac, mbc, ideal-ac and truth; the others are ours. Validation queries are labelled by what was
fitted to the training queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, xlog1py, xlogy

from clickmix.clicks import PositionBased
from clickmix.corrections import MixtureCorrection
from clickmix.errors import SettingError
from clickmix.experiments.tasks import Result
from clickmix.experiments.world import Floats, Log, Shown

TITLES: dict[str, str] = {
    "none": "no correction",
    "ac": "AC",
    "mbc": "MBC",
    "gaussian": "MBC, Gaussian",
    "mbc-flat": "MBC, flat prior",
    "ideal-ac": "Ideal-AC",
    "limit": "Bayes posterior",
    "truth": "true relevance",
}
ORACLES = ("ideal-ac", "limit", "truth")  # made with what nobody knows of a real log


@dataclass(frozen=True, eq=False)
class Labelled:
    """Relevance (lists, positions) of what was shown, NaN where there is no label."""

    train: Floats
    vali: Floats


def label(name: str, log: Log, *, estimate: Result | None = None) -> Labelled:
    """The labels of this name; `estimate` is what regression EM found, for those that need it."""
    if name == "ac":
        if estimate is None:
            raise SettingError("labels 'ac': they need the bias parameters that regression EM estimates.")
        return _both(log, _affine(np.array(estimate["alpha"]), np.array(estimate["beta"])))
    if name not in _LABELS:
        raise SettingError(f"labels {name!r}: expected one of ac, {', '.join(_LABELS)}.")
    return _LABELS[name](log)


def label_error(labelled: Labelled, log: Log) -> float:
    """Root mean squared error of the training labels."""
    return float(np.sqrt(np.nanmean((labelled.train - log.train.relevance) ** 2)))


def _both(log: Log, of: Callable[[Shown], Floats]) -> Labelled:
    return Labelled(of(log.train), of(log.vali))


def _affine(alpha: Floats, beta: Floats) -> Callable[[Shown], Floats]:
    """(click-through rate - beta) / alpha by position, clipped to what a relevance can be."""
    return lambda shown: np.clip((shown.rates - beta) / alpha, 0, 1)


def _position_based(log: Log) -> PositionBased:
    if not isinstance(log.user, PositionBased):
        raise SettingError(f"The true parameters of labels are known for pbm users only, found {log.setting.user}.")
    return log.user


def _ideal(log: Log) -> Labelled:
    user = _position_based(log)
    return _both(log, _affine(user.alpha, user.beta))


def _limit(log: Log) -> Labelled:
    """Bayes' rule with the true click rates, and the true share of each relevance at each position as prior."""
    user, truth = _position_based(log), log.train.relevance
    levels = np.unique(truth[~np.isnan(truth)])
    share = np.array([(truth == level).sum(axis=0) for level in levels]) + 0.5  # no share is exactly 0
    log_prior = np.log(share / share.sum(axis=0))
    rates = user.alpha * levels[:, None] + user.beta

    def posterior_mean(shown: Shown) -> Floats:
        c, n = shown.seen.clicks[:, None], shown.seen.impressions[:, None, None]
        log_posterior = log_prior + xlogy(c, rates) + xlog1py(n - c, -rates)  # lists, levels, positions
        log_posterior -= logsumexp(log_posterior, axis=1, keepdims=True)
        mean = np.einsum("lgk,g->lk", np.exp(log_posterior), levels)
        return np.where(np.isnan(shown.rates), np.nan, mean)

    return _both(log, posterior_mean)


def _mixture(**settings: Any) -> Callable[[Log], Labelled]:
    def labelled(log: Log) -> Labelled:
        fitted = MixtureCorrection(**settings).fit(log.train.counts)

        def of(shown: Shown) -> Floats:
            labels = fitted.label(shown.counts)
            return shown.spread(labels.doc_id, labels.relevance)

        return _both(log, of)

    return labelled


_LABELS: dict[str, Callable[[Log], Labelled]] = {
    "none": lambda log: _both(log, lambda shown: shown.rates),
    "mbc": _mixture(mixture="binomial"),
    "gaussian": _mixture(mixture="gaussian"),
    "mbc-flat": _mixture(mixture="binomial", prior="flat"),
    "ideal-ac": _ideal,
    "limit": _limit,
    "truth": lambda log: _both(log, lambda shown: shown.relevance),
}
