"""Slow and obvious versions of what mixtures/ computes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special, stats
from scipy.stats import binom

from clickmix.mixtures.sharing import Walk

Array = np.ndarray[Any, Any]


def enumerated(
    cells: Sequence[Sequence[tuple[int, int, int]]], prior: Sequence[float], rates: Sequence[tuple[float, ...]]
) -> tuple[float, np.ndarray[Any, Any]]:
    """Log-likelihood and grade x document posteriors, by summing over all assignments of grades to documents.

    `cells[d]` lists (group, impressions, clicks) of document d; `rates[g]` are the rates of the grades in group g.
    """
    total, posterior = 0.0, np.zeros((len(prior), len(cells)))
    for assignment in itertools.product(range(len(prior)), repeat=len(cells)):
        weight = 1.0
        for document, grade in enumerate(assignment):
            weight *= prior[grade]
            for group, n, c in cells[document]:
                weight *= binom.pmf(c, n, rates[group][grade])
        total += weight
        for document, grade in enumerate(assignment):
            posterior[grade, document] += weight
    return float(np.log(total)), posterior / total


def log_evidence(
    groups: Sequence[tuple[Array, Array, Array]],
    walk: Walk,
    middle: Array,
    spread: Array,
    unit: Array,
    *,
    rng: np.random.Generator,
    draws: int = 3_000,
) -> float:
    """log of the integral, over all groups' parameters, of likelihood x density of a walk down one page; by sampling.

    `groups` are impressions, clicks, multiplicities; `middle` (group x kind) and `spread` (covariance) say where to
    draw from, which changes the noise and not the mean. Where the walk starts has a normal prior of precision `unit`.
    """
    proposal = stats.multivariate_t(middle.ravel(), spread, df=20)
    phi = proposal.rvs(draws, random_state=rng).reshape(draws, *middle.shape)
    logs = stats.norm.logpdf(phi[:, 0], middle[0], unit**-0.5).sum(axis=1)
    for before, after, t in zip(walk.start, walk.end, walk.span, strict=True):
        logs += stats.norm.logpdf(phi[:, after] - phi[:, before], walk.drift * t, walk.deviation * np.sqrt(t)).sum(
            axis=1
        )
    for g, (n, c, documents) in enumerate(groups):
        weights = special.softmax(np.column_stack([np.zeros(draws), phi[:, g, :-2]]), axis=1)
        low, high = np.minimum(np.exp(phi[:, g, -2:]), 1 - 1e-12).T
        likelihood = np.zeros((draws, len(n)))
        for k in range(weights.shape[1]):
            rate = low + (high - low) * k / (weights.shape[1] - 1)
            likelihood += weights[:, [k]] * stats.binom.pmf(c, n, rate[:, None])
        logs += np.log(likelihood) @ documents
    return float(special.logsumexp(logs - proposal.logpdf(phi.reshape(draws, -1))) - np.log(draws))
