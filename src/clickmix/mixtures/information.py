"""Observed information of a group's binomial mixture, and the standard errors it gives.   Observations -> information

Louis (1982): observed information = expected information if grades were known - variance of the score. If a document
has grade k, its score is (e_k - pi, v_k off_k), with off_k = c/p_k - skips/(1 - p_k), and v_k = shares_k p_e (1 - p_e)
for both ends e. Coordinates are those of `GroupLikelihood.pack`: prior logits, then the logits of the ends' rates.
"""

from __future__ import annotations

import numpy as np

from clickmix.groups.observations import Observations, group_sums
from clickmix.mixtures.distributions import BinomialCounts
from clickmix.mixtures.group_likelihood import LARGEST_LOGIT
from clickmix.types import Floats


def observed_information(seen: Observations, x: Floats) -> Floats:
    """Minus the second derivatives of the log-likelihood at x."""
    family = BinomialCounts(len(x) - 1)
    ends = family.bounded(x[-2:].reshape(1, 2, 1), seen, in_order=False)[0]
    eta = np.concatenate([[0.0], np.clip(x[:-2], -LARGEST_LOGIT, LARGEST_LOGIT)])[:, None]
    log_pi = eta - np.logaddexp.reduce(eta, axis=0)
    p, v = family.rates(ends[None]), family.shares[:, :, None] * (ends * (1 - ends))  # v: grade x end x 1
    spread, moments = _sums(seen, p, log_pi, v)
    documents, clicks, skips, first, second = moments.transpose(2, 1, 0)  # each grade x 1
    bend = clicks / p**2 + skips / (1 - p) ** 2
    known = _if_grades_were_known(documents, first, bend - second, np.exp(log_pi[1:]), v, ends)
    return np.asarray((known + spread)[0])


def _sums(seen: Observations, p: Floats, log_pi: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Squares of the documents' scores, and per grade the sums that information needs."""
    m = seen.multiplicity
    joint = seen.clicks * np.log(p) + seen.skips * np.log1p(-p) + log_pi
    posterior = np.exp(joint - joint.max(axis=0))
    posterior /= posterior.sum(axis=0)
    off = seen.clicks * (1 / p) - seen.skips * (1 / (1 - p))
    pulls = posterior * off
    mean = np.vstack([posterior[1:] - np.exp(log_pi[1:]), *((v[:, e] * pulls).sum(axis=0) for e in range(2))])
    documents, offs = posterior * m, pulls * m
    spread = np.stack([group_sums(row * mean) for row in mean * m], axis=1)
    moments = (documents, documents * seen.clicks, documents * seen.skips, offs, offs * off)
    return spread.T, np.stack([group_sums(part).T for part in moments], axis=2)


def _if_grades_were_known(
    documents: Floats, first: Floats, second: Floats, pi: Floats, v: Floats, ends: Floats
) -> Floats:
    """The information if grades were known, minus the scores' squares, in the mean over grades.

    Per grade and group: documents, the sum of off, and the sum of minus its derivative minus its square.
    """
    score, priors = np.eye(len(v))[:, 1:, None] - pi, len(pi)  # of the weights: grade x coordinate x group
    total = np.zeros((documents.shape[1], priors + 2, priors + 2))
    of_priors = documents.sum(axis=0) * (np.eye(priors)[:, :, None] * pi - pi[:, None] * pi)
    total[:, :-2, :-2] = (of_priors - np.einsum("kig,kjg,kg->ijg", score, score, documents)).transpose(2, 0, 1)
    total[:, :-2, -2:] = -np.einsum("kig,keg,kg->gie", score, v, first)
    total[:, -2:, :-2] = total[:, :-2, -2:].transpose(0, 2, 1)
    total[:, -2:, -2:] = np.einsum("keg,kfg,kg->gef", v, v, second)
    total[:, [-2, -1], [-2, -1]] -= np.einsum("keg,kg->ge", v, first) * (1 - 2 * ends.T)
    return total


def standard_errors(information: Floats) -> Floats:
    """Square roots of the inverse's diagonal; NaN for directions that are flat or curved the wrong way."""
    values, vectors = np.linalg.eigh(information)
    bad = values <= 1e-12 * max(values.max(), 1.0)
    variance = (vectors[:, ~bad] ** 2 / values[~bad]).sum(axis=1)
    touched = (vectors[:, bad] ** 2).sum(axis=1) > 1e-6
    return np.where(touched | (variance <= 0), np.nan, np.sqrt(variance))
