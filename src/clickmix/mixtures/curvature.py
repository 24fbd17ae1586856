"""Slope and observed information of many groups' binomial mixtures at once.   Observations, parameters -> Surfaces

The same as `information.surface` for histograms whose groups have priors of their own: sums per group and grade
instead of a matrix per document, all groups in one go. If the grade of a document is k, its score is (e_k - pi,
v_k off_k), with off_k = c/p_k - skips/(1 - p_k), and v_k = shares_k p_e (1 - p_e) of both ends e.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clickmix.groups.observations import Observations
from clickmix.mixtures.distributions import BinomialCounts
from clickmix.mixtures.group_likelihood import LARGEST_LOGIT
from clickmix.types import Floats

LEAST_CURVED = 1e-15  # beside the steepest direction
BLOCK_CELLS = 1024  # small groups go together to save calls, large ones alone: their numbers stay in the cache


@dataclass(frozen=True)
class Surfaces:
    """The groups' log-likelihoods around a point each: value, slope (group x coordinate) and information.

    Information is minus the second derivatives, group x coordinate x coordinate.
    """

    value: Floats
    slope: Floats
    information: Floats


def in_blocks(groups: Sequence[Observations]) -> tuple[Observations, ...]:
    """Histograms of groups one after the other, in blocks as large as a processor has at hand."""
    sizes = np.cumsum([len(group.clicks) for group in groups])
    members = itertools.groupby(range(len(groups)), key=lambda g: int(sizes[g]) // BLOCK_CELLS)
    return tuple(Observations.stacked([groups[g] for g in block]) for _, block in members)


def group_surfaces(blocks: Sequence[Observations], x: Floats) -> Surfaces:
    """At a row of parameters per group, as `Problem.pack` has them for one: weights' logits, then the ends' rates'."""
    family, groups = BinomialCounts(x.shape[1] - 1), len(x)
    ends = family.bounded(x[:, -2:].T[None], blocks[0], in_order=False)[0]
    eta = np.vstack([np.zeros(groups), np.clip(x[:, :-2], -LARGEST_LOGIT, LARGEST_LOGIT).T])
    log_pi = eta - np.logaddexp.reduce(eta, axis=0)
    p, v = family.rates(ends[None]), family.shares[:, :, None] * (ends * (1 - ends))  # v: grade x end x group
    numbers = np.stack([np.log(p), np.log1p(-p), 1 / p, 1 / (1 - p), log_pi, v[:, 0], v[:, 1]])
    last = np.cumsum([block.groups for block in blocks])
    found = [_sums(block, numbers[:, :, end - block.groups : end]) for block, end in zip(blocks, last, strict=True)]
    value, slope, spread, moments = (np.concatenate(parts) for parts in zip(*found, strict=True))
    documents, clicks, skips, first, second = moments.transpose(2, 1, 0)  # each grade x group
    bend = clicks / p**2 + skips / (1 - p) ** 2
    known = _if_grades_were_known(documents, first, bend - second, np.exp(log_pi[1:]), v, ends)
    return Surfaces(value, slope, known + spread)


def _sums(seen: Observations, numbers: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Of each group: log-likelihood, sum and squares of the documents' scores, and per grade what information needs."""
    log_p, log_q, by_p, by_q, log_pi, *v = map(seen.per_cell, numbers)
    m = seen.multiplicity
    joint = seen.clicks * log_p + seen.skips * log_q + log_pi
    highest = joint.max(axis=0)
    posterior = np.exp(joint - highest)
    total = posterior.sum(axis=0)
    posterior /= total
    off = seen.clicks * by_p - seen.skips * by_q
    pulls = posterior * off
    mean = np.vstack([posterior[1:] - np.exp(log_pi[1:]), *((part * pulls).sum(axis=0) for part in v)])
    weighted, documents, offs = mean * m, posterior * m, pulls * m
    value = seen.per_group(highest + np.log(total) + seen.log_choose)
    # Products by rows, never all at once: what is larger than a processor's cache costs more than its sums.
    spread = np.stack([seen.sums(row * mean) for row in weighted], axis=1)
    moments = (documents, documents * seen.clicks, documents * seen.skips, offs, offs * off)
    return value, seen.sums(weighted).T, spread.T, np.stack([seen.sums(part).T for part in moments], axis=2)


def _if_grades_were_known(
    documents: Floats, first: Floats, second: Floats, pi: Floats, v: Floats, ends: Floats
) -> Floats:
    """The information if grades were known, less the scores' squares, in the mean over grades.

    Per grade and group: documents, the sum of off, and the sum of minus its derivative, less its square.
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


def rising(information: Floats) -> Floats:
    """Without the directions in which the likelihood is curved the wrong way; of one matrix or of many.

    As little is left of them as keeps rounding from turning them again.
    """
    values, vectors = np.linalg.eigh(information)
    least = LEAST_CURVED * np.maximum(values.max(axis=-1, keepdims=True), 0)
    return np.asarray((vectors * np.maximum(values, least)[..., None, :]) @ vectors.swapaxes(-1, -2))
