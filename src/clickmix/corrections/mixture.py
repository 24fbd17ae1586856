"""Mixture-based correction, the paper's MBC: fit a mixture of two click rates to every group.   Counts -> MixtureFit"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from clickmix.corrections.fitted import MixtureFit
from clickmix.corrections.group import Group, PlaceCounts
from clickmix.counts import Counts
from clickmix.engines.engine import Progress
from clickmix.errors import SettingError
from clickmix.groups import Histogram, Sample, join_small, nearest, read_histogram, read_moving, read_sample
from clickmix.mixtures import Mixture, Observations, fit_group, fit_jointly
from clickmix.mixtures.families import FAMILIES
from clickmix.mixtures.fit import Prior, Pull

MOVING_FROM = 0.1  # share of documents at several places from which the groups are fitted jointly
LARGEST_PRIOR = 30.0
CLEAR_FROM = 0.25  # separation from which a group's own weight is taken as known
UNCLEAR_BELOW = 0.5  # separation below which it may be off by much, so that knowing others' helps
FEWEST_CLEAR_GROUPS = 3
LEAST_DEVIATION = 0.1

Ints = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MixtureCorrection:
    """Settings of the correction: which mixture, and whether better positions hold more relevant documents."""

    mixture: str = "binomial"
    prior: Prior = "position"

    def __post_init__(self) -> None:
        if self.mixture not in FAMILIES:
            raise SettingError(f"mixture {self.mixture!r}: expected one of {', '.join(FAMILIES)}.")
        if self.prior not in ("position", "flat"):
            raise SettingError(f"prior {self.prior!r}: expected 'position' or 'flat'.")

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> MixtureFit:
        """Fit every group by itself, or all together where documents move between them."""
        histogram = read_histogram(counts)
        moving = read_moving(counts, histogram)
        sample = read_sample(counts, histogram) if moving >= MOVING_FROM else None
        return self._fit(histogram, moving, sample, progress)

    def fit_histogram(self, histogram: Histogram, *, moving: float) -> MixtureFit:
        """Fit every group by itself, from a histogram that was made elsewhere; `moving` is told with the fit."""
        return self._fit(histogram, moving, None, None)

    def _fit(self, histogram: Histogram, moving: float, sample: Sample | None, progress: Progress | None) -> MixtureFit:
        if sample is not None:
            # Groups must be large enough in what is fitted: the sample.
            sizes = np.bincount(sample.place, minlength=len(histogram.places))
            group = np.array(join_small(histogram.places, sizes.tolist()))
            fitted = self._together(histogram, sample, group)
        else:
            group = np.array(join_small(histogram.places, _documents(histogram).tolist()))
            fitted = self._separately(histogram, group, progress)
        priors = _filled(fitted.priors, histogram, group)
        groups = tuple(
            Group(places, mixture, float(expit(prior)))
            for places, mixture, prior in zip(_members(histogram, group), fitted.mixtures, priors, strict=True)
        )
        pull = None if fitted.pull is None else (fitted.pull.mean, fitted.pull.deviation)
        jointly = sample is not None
        return MixtureFit(self.mixture, self.prior, histogram.context, groups, jointly, moving, fitted.trace, pull)

    def _separately(self, histogram: Histogram, group: Ints, progress: Progress | None) -> _Fitted:
        """Each group from its histogram; then, once more, unclear ones with what the clear ones say of the weights.

        A flat prior is the mean over groups, weighted by their documents.
        """
        seen, mixtures = _observations(histogram, group), []
        for g, observations in enumerate(seen):
            mixtures.append(fit_group(observations, self.mixture))
            if progress is not None:
                progress((g + 1) / len(seen))
        unclear = [
            g for g, mixture in enumerate(mixtures) if mixture.informative and mixture.separation < UNCLEAR_BELOW
        ]
        pull = pull_of_clear_groups(mixtures) if unclear else None
        if pull is not None:
            for g in unclear:
                mixtures[g] = fit_group(seen[g], self.mixture, pull=pull)
        weights = [m.weights[-1] if m.informative else None for m in mixtures]
        if self.prior == "flat":
            documents = np.bincount(group, weights=_documents(histogram))
            known = [(w, d) for w, d in zip(weights, documents, strict=True) if w is not None]
            weights = [sum(w * d for w, d in known) / sum(d for _, d in known) if known else None] * len(mixtures)
        return _Fitted(mixtures, [None if w is None else float(logit(w)) for w in weights], (), pull)

    def _together(self, histogram: Histogram, sample: Sample, group: Ints) -> _Fitted:
        """All groups at once, from a sample of documents."""
        groups = int(group.max()) + 1
        seen = Observations(
            sample.document,
            group[sample.place],
            sample.impressions.astype(float),
            sample.clicks.astype(float),
            np.ones(int(sample.document.max()) + 1),
            groups,
        )
        positions = [histogram.places[int(np.flatnonzero(group == g)[0])].position for g in range(groups)]
        flat = self.prior == "flat"
        mixtures, priors, trace = fit_jointly(seen, self.mixture, positions=None if flat else positions)
        known = any(mixture.informative for mixture in mixtures)  # else the prior belongs to nothing
        return _Fitted(mixtures, priors.tolist() if known else [None] * groups, trace, None)


@dataclass(frozen=True)
class _Fitted:
    """A mixture and a prior logit per group, the prior missing where nothing could be fitted; how it was fitted."""

    mixtures: Sequence[Mixture]
    priors: Sequence[float | None]
    trace: tuple[float, ...]
    pull: Pull | None


def pull_of_clear_groups(mixtures: Sequence[Mixture]) -> Pull | None:
    """Mean and deviation of the prior logits of the groups whose own clicks are clear enough to know them.

    Groups differ (better positions hold more relevant documents), and the deviation says by how much.
    """
    clear = [float(logit(m.weights[-1])) for m in mixtures if m.informative and m.separation >= CLEAR_FROM]
    if len(clear) < FEWEST_CLEAR_GROUPS:
        return None
    return Pull(float(np.mean(clear)), max(float(np.std(clear, ddof=1)), LEAST_DEVIATION))


def _observations(histogram: Histogram, group: Ints) -> list[Observations]:
    """The histogram's rows, group by group."""
    member_of = group[histogram.place]
    columns = (histogram.impressions, histogram.clicks, histogram.documents)
    return [
        Observations.histogram(*(column[member_of == g] for column in columns)) for g in range(int(group.max()) + 1)
    ]


def _members(histogram: Histogram, group: Ints) -> list[tuple[PlaceCounts, ...]]:
    """The places of each group with what was seen there."""
    totals = (_documents(histogram), histogram.total(histogram.impressions), histogram.total(histogram.clicks))
    places = [
        PlaceCounts(place, int(d), int(n), int(c)) for place, d, n, c in zip(histogram.places, *totals, strict=True)
    ]
    return [
        tuple(place for place, member_of in zip(places, group, strict=True) if member_of == g)
        for g in range(int(group.max()) + 1)
    ]


def _documents(histogram: Histogram) -> Ints:
    return histogram.total(np.ones_like(histogram.documents))


def _filled(priors: Sequence[float | None], histogram: Histogram, group: Ints) -> list[float]:
    """A group that could not be fitted takes the prior of the nearest one that could.

    Where none could be fitted nothing is known of relevance: every document gets the log's click-through rate.
    """
    fitted = [
        (place, prior) for place, g in zip(histogram.places, group, strict=True) if (prior := priors[g]) is not None
    ]
    if not fitted:
        rate = histogram.total(histogram.clicks).sum() / histogram.total(histogram.impressions).sum()
        return [float(np.clip(logit(rate), -LARGEST_PRIOR, LARGEST_PRIOR))] * len(priors)
    filled = []
    for g, prior in enumerate(priors):
        first = histogram.places[int(np.flatnonzero(group == g)[0])]
        near = fitted[nearest(first, [place for place, _ in fitted])][1]
        filled.append(float(np.clip(near if prior is None else prior, -LARGEST_PRIOR, LARGEST_PRIOR)))
    return filled
