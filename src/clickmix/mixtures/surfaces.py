"""Slope and observed information of many groups' binomial mixtures at once.   Observations, parameters -> Surfaces

The same as `information.surface` for histograms whose groups have priors of their own: sums per group and grade
instead of a matrix per document, all groups in one go. If the grade of a document is k, its score is (e_k - pi,
v_k off_k), with off_k = c/p_k - skips/(1 - p_k), and v_k = shares_k p_e (1 - p_e) of both ends e.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.mixtures.families import Binomial
from clickmix.mixtures.fit import LARGEST_LOGIT
from clickmix.mixtures.observations import Floats, Observations


@dataclass(frozen=True)
class Surfaces:
    """The groups' log-likelihoods around a point each: value, slope (group x coordinate) and information.

    Information is minus the second derivatives, group x coordinate x coordinate.
    """

    value: Floats
    slope: Floats
    information: Floats


def group_surfaces(seen: Observations, x: Floats) -> Surfaces:
    """At a row of parameters per group, as `Problem.pack` has them for one: weights' logits, then the ends' rates'.

    Documents have one cell each, and stand group by group.
    """
    starts, m, group = np.searchsorted(seen.group, np.arange(seen.groups)), seen.multiplicity, seen.group
    family = Binomial(x.shape[1] - 1)
    ends = family.bounded(x[:, -2:].T[None], seen, in_order=False)[0]
    p = family.rates(ends[None])
    eta = np.vstack([np.zeros(seen.groups), np.clip(x[:, :-2], -LARGEST_LOGIT, LARGEST_LOGIT).T])
    log_pi = eta - np.logaddexp.reduce(eta, axis=0)
    joint = family.log_density(ends[None], seen) + log_pi[:, group]
    highest = joint.max(axis=0)
    posterior = np.exp(joint - highest)
    total = posterior.sum(axis=0)
    posterior = posterior / total
    value = np.add.reduceat(m * (highest + np.log(total) + seen.log_choose), starts)
    off = seen.clicks / p[:, group] - seen.skips / (1 - p)[:, group]
    pi, v = np.exp(log_pi[1:]), family.shares[:, :, None] * (ends * (1 - ends))  # v: grade x end x group
    pulls = posterior * off
    rates = [(v[:, e, group] * pulls).sum(axis=0) for e in range(2)]
    mean = np.vstack([posterior[1:] - pi[:, group], *(rate[None] for rate in rates)])
    weighted = mean * m
    spread = np.stack([np.add.reduceat(weighted * row, starts, axis=1) for row in mean])
    known = _if_grades_were_known(seen, starts, posterior * m, off, p, v, pi, ends)
    return Surfaces(value, np.add.reduceat(weighted, starts, axis=1).T, known + spread.transpose(2, 0, 1))


def _if_grades_were_known(
    seen: Observations, starts: Floats, weights: Floats, off: Floats, p: Floats, v: Floats, pi: Floats, ends: Floats
) -> Floats:
    """The information if grades were known, less the scores' squares, in the mean over grades."""
    sums = [weights, weights * off, weights * off**2, weights * seen.clicks, weights * seen.skips]
    documents, first, second, clicks, skips = np.add.reduceat(np.stack(sums), starts, axis=2)
    bend = clicks / p**2 + skips / (1 - p) ** 2
    score = np.eye(len(p))[:, 1:, None] - pi  # of the weights: grade x coordinate x group
    priors = len(pi)
    total = np.zeros((seen.groups, priors + 2, priors + 2))
    of_priors = documents.sum(axis=0) * (np.eye(priors)[:, :, None] * pi - pi[:, None] * pi)
    total[:, :-2, :-2] = (of_priors - np.einsum("kig,kjg,kg->ijg", score, score, documents)).transpose(2, 0, 1)
    total[:, :-2, -2:] = -np.einsum("kig,keg,kg->gie", score, v, first)
    total[:, -2:, :-2] = total[:, :-2, -2:].transpose(0, 2, 1)
    total[:, -2:, -2:] = np.einsum("keg,kfg,kg->gef", v, v, bend - second)
    total[:, [-2, -1], [-2, -1]] -= (np.einsum("keg,kg->eg", v, first) * (1 - 2 * ends)).T
    return total


def rising(information: Floats) -> Floats:
    """Without the directions in which the likelihood is curved the wrong way; of one matrix or of many."""
    values, vectors = np.linalg.eigh(information)
    return np.asarray((vectors * np.maximum(values, 0)[..., None, :]) @ vectors.swapaxes(-1, -2))
