"""Where climbs begin: the least and the most clicked documents say where the ends of the scale may be.   -> points

A likelihood of several grades has many tops: where a grade between is taken for one of the ends, no small step leads
on. A rare lowest or highest grade has no other sign than the most extreme documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import comb, logit

from clickmix.groups.observations import Observations
from clickmix.mixtures.distributions import LOWEST_RATE
from clickmix.types import Floats

if TYPE_CHECKING:
    from clickmix.mixtures.group_likelihood import GroupLikelihood

EXTREMES = (0.01, 0.2)  # shares of the documents that may have the lowest grade, or the highest
CUTS = (0.5, 0.75, 0.9, 0.97)
CONFIDENCE = 0.9


def starts(problem: GroupLikelihood) -> list[Floats]:
    """Rates of several shares of the least clicked documents for the lowest grade, of the most clicked for the highest.

    A Gaussian needs variances as well: it starts from documents above and below some cuts.
    """
    seen = problem.seen
    clicks, shown = seen.per_group(seen.clicks), seen.per_group(seen.impressions)
    mean = np.asarray(clicks / np.maximum(shown, 1))
    rank = _ranks(seen, mean)
    if problem.family.name == "gaussian":
        cuts = _quantiles(rank, seen.multiplicity, CUTS)
        return [problem.pack(*problem.maximise(_divided(rank, cut))) for cut in cuts]
    least, most = (_quantiles(rank, seen.multiplicity, shares) for shares in (EXTREMES, [1 - s for s in EXTREMES]))
    lows = [_rates(seen, rank <= cut, mean) for cut in least]
    highs = [_rates(seen, rank >= cut, mean) for cut in most]
    ends = [np.stack([low, np.maximum(low, high)]) for low in lows for high in highs]
    return [problem.pack(_prior(problem, _relevance(rates, clicks, shown)), rates[None]) for rates in ends]


def _ranks(seen: Observations, mean: Floats) -> Floats:
    """Per document: the share of documents of its group that are clicked less, beside what was to be expected.

    Where it was seen in several groups the mean, weighted by the clicks to be expected there.
    """
    expected = seen.impressions * seen.per_cell(mean)
    score = (seen.clicks + 1) / (expected + 1)  # one click more: a document that was shown once is no extreme
    order = np.lexsort((score, seen.group))
    group, weight = seen.group[order], seen.weight[order]
    new = np.r_[True, (np.diff(group) != 0) | (np.diff(score[order]) != 0)]
    first = np.flatnonzero(new)  # of those with the same score, who share a rank
    size = np.add.reduceat(weight, first)
    documents = seen.per_group(np.ones_like(score))
    below = np.cumsum(size) - size / 2 - (np.cumsum(documents) - documents)[group[first]]
    rank: Floats = np.empty_like(score)
    rank[order] = (below / documents[group[first]])[np.cumsum(new) - 1]
    if seen.one_cell_each:
        return rank
    total = np.maximum(seen.per_document(expected), np.finfo(float).tiny)
    return np.asarray(seen.per_document(rank * expected) / total)


def _rates(seen: Observations, documents: Floats, mean: Floats) -> Floats:
    """The click rates of some documents in every group, drawn a little towards the mean of all."""
    cells = documents if seen.one_cell_each else documents[seen.document]
    clicks, shown = seen.per_group(seen.clicks * cells), seen.per_group(seen.impressions * cells)
    # Where none of them was seen, their rate is as far from the mean as elsewhere.
    usual = mean * clicks.sum() / max(float((shown * mean).sum()), np.finfo(float).tiny)
    rates = CONFIDENCE * (clicks + usual) / (shown + 1) + (1 - CONFIDENCE) * mean
    return np.asarray(np.clip(rates, LOWEST_RATE, 1 - LOWEST_RATE))


def _relevance(ends: Floats, clicks: Floats, shown: Floats) -> float:
    """The mean relevance that explains how often all documents were clicked, never quite 0 or 1."""
    least, most = ((shown * end).sum() for end in ends)
    return float(np.clip((clicks.sum() - least) / max(most - least, LOWEST_RATE * shown.sum()), 0.001, 0.999))


def _prior(problem: GroupLikelihood, relevance: float) -> Floats:
    """Prior logits of binomial grades with this mean."""
    grades = np.arange(1, problem.family.grades)
    prior = np.zeros(problem.shape)
    # Of columns the first is a constant.
    prior[: None if problem.own_priors else 1] = np.log(comb(grades[-1], grades)) + grades * logit(relevance)
    return prior


def _divided(rank: Floats, cut: float) -> Floats:
    """Grade x document: mostly relevant above the cut, mostly not below."""
    relevant = np.where(rank > cut, CONFIDENCE, 1 - CONFIDENCE)
    return np.array([1 - relevant, relevant])


def _quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> Floats:
    """The values up to which these shares of the weight lie, each once."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    places = np.searchsorted(cumulated, np.array(shares) * cumulated[-1])
    return np.asarray(np.unique(values[order][np.minimum(places, len(values) - 1)]))
