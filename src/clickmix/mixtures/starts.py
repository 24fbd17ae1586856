"""Where climbs begin: the least and the most clicked documents suggest the ends of the scale.   -> points

A likelihood of several grades has many tops: if a middle grade is mistaken for one of the ends, no small step leads
further. Only the most extreme documents show a rare lowest or highest grade.
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

EXTREMES = (0.01, 0.2)  # shares of documents that may have the lowest grade, or the highest
CUTS = (0.5, 0.75, 0.9, 0.97)
CONFIDENCE = 0.9


def starts(problem: GroupLikelihood) -> list[Floats]:
    """Several starts: rates of shares of the least clicked documents for the lowest grade, the most for the highest.

    A Gaussian needs variances as well, so it starts from documents above and below some cuts.
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
    """Per document: the share of documents that are clicked less, relative to expected clicks."""
    expected = seen.impressions * mean
    score = (seen.clicks + 1) / (expected + 1)  # add one click, so that a document shown once is not extreme
    order = np.argsort(score, kind="stable")
    new = np.r_[True, np.diff(score[order]) != 0]
    size = np.add.reduceat(seen.multiplicity[order], np.flatnonzero(new))  # documents with the same score
    below = np.cumsum(size) - size / 2
    rank: Floats = np.empty_like(score)
    rank[order] = (below / seen.per_group(np.ones_like(score)))[np.cumsum(new) - 1]
    return rank


def _rates(seen: Observations, documents: Floats, mean: Floats) -> Floats:
    """The click rate of some documents, pulled a little towards the mean of all."""
    clicks, shown = seen.per_group(seen.clicks * documents), seen.per_group(seen.impressions * documents)
    # If none of them was seen, their rate is as far from the mean as elsewhere.
    usual = mean * clicks.sum() / max(float((shown * mean).sum()), np.finfo(float).tiny)
    rates = CONFIDENCE * (clicks + usual) / (shown + 1) + (1 - CONFIDENCE) * mean
    return np.asarray(np.clip(rates, LOWEST_RATE, 1 - LOWEST_RATE))


def _relevance(ends: Floats, clicks: Floats, shown: Floats) -> float:
    """The mean relevance that explains the clicks on all documents, never quite 0 or 1."""
    least, most = ((shown * end).sum() for end in ends)
    return float(np.clip((clicks.sum() - least) / max(most - least, LOWEST_RATE * shown.sum()), 0.001, 0.999))


def _prior(problem: GroupLikelihood, relevance: float) -> Floats:
    """Prior logits of binomial grades with this mean."""
    grades = np.arange(1, problem.family.grades)
    return np.asarray(np.log(comb(grades[-1], grades)) + grades * logit(relevance))[None]


def _divided(rank: Floats, cut: float) -> Floats:
    """Grade x document: mostly relevant above the cut, mostly not below."""
    relevant = np.where(rank > cut, CONFIDENCE, 1 - CONFIDENCE)
    return np.array([1 - relevant, relevant])


def _quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> Floats:
    """The distinct values up to which these shares of the weight lie."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    places = np.searchsorted(cumulated, np.array(shares) * cumulated[-1])
    return np.asarray(np.unique(values[order][np.minimum(places, len(values) - 1)]))
