"""Fit the groups of a log: each from its histogram, or all together where documents move.   Counts -> MixtureFit"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clickmix.corrections.mixture_based.cascade import fit_cascade
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.errors import SettingError
from clickmix.groups.histogram import Histogram, observations_of, read_histogram
from clickmix.groups.places import Place, join_small, nearest
from clickmix.groups.sample import Sample, read_moving, read_sample
from clickmix.mixtures.group import Group, PlaceCounts
from clickmix.mixtures.kinds.kind import GroupFits, MixtureKind, WholeLogKind
from clickmix.types import Floats, Ints, Progress

if TYPE_CHECKING:
    from clickmix.corrections.mixture import MixtureCorrection

MOVING_FROM = 0.1  # share of documents at several places from which the groups are fitted jointly
LEAST_PRIOR = 1e-13


def fit_counts(settings: MixtureCorrection, counts: Counts, *, progress: Progress | None = None) -> MixtureFit:
    """Fit every group by itself or with its neighbours, or all together where documents move between them."""
    kind = settings.kind
    if isinstance(kind, WholeLogKind):
        return _fit_whole_log(settings, kind, counts)
    if settings.needs_lists:
        fit = partial(_fit_position, settings)
        return fit_cascade(counts, fit, examination=settings.examination, moving_from=MOVING_FROM)
    return _fit_places(settings, kind, counts, progress)


def _fit_whole_log(settings: MixtureCorrection, kind: WholeLogKind, counts: Counts) -> MixtureFit:
    """One model of all of the log; every group by itself where clicks say nothing."""
    from clickmix.corrections.mixture_based.whole_log import fit_whole_log, groups_of  # late: scipy is slow to load

    if settings.needs_lists or settings.prior == "flat":
        raise SettingError(
            f"mixture {settings.mixture!r}: it has a prior by position and knows pbm only. Leave out prior and "
            "examination, or choose another mixture."
        )
    histogram = read_histogram(counts)
    moving = read_moving(counts, histogram)
    found = fit_whole_log(kind, counts, histogram)
    if found is None:
        return _fit_separately(settings, kind, histogram, moving, None)
    model, joined, error = found
    groups = groups_of(model, histogram, _members(histogram, joined), joined)
    return MixtureFit(
        settings.mixture,
        settings.prior,
        histogram.context,
        groups,
        jointly=True,
        moving=moving,
        shared=True,
        joint_error=error,
        model=model,
    )


def fit_histogram(settings: MixtureCorrection, histogram: Histogram, *, moving: float) -> MixtureFit:
    """Fit a histogram that was made elsewhere, never jointly."""
    if isinstance(settings.kind, WholeLogKind):
        raise SettingError(
            f"mixture {settings.mixture!r}: a histogram does not show which documents belong to a query. Fit a log."
        )
    if settings.needs_lists:
        raise SettingError(
            f"examination {settings.examination!r}: a histogram does not show what was above a document. Fit a log."
        )
    return _fit_separately(settings, settings.kind, histogram, moving, None)


def _fit_position(settings: MixtureCorrection, counts: Counts, grades: int | None, *, alike: bool) -> MixtureFit:
    """Fit one position of a cascade, whose groups are `alike` but for examination, unless its documents move.

    The number of grades is that of the first position, once it is known.
    """
    kind = settings.kind if grades is None else settings.kind.given(grades)
    histogram = read_histogram(counts)
    moving = read_moving(counts, histogram)
    if alike and moving < MOVING_FROM:
        group = np.arange(len(histogram.places))
        fits = kind.fit_examined(observations_of(histogram, group))
        if fits is not None:
            return _fit_of(settings, histogram, group, fits, moving)
    return _fit_places(settings, kind, counts, None)


def _fit_places(
    settings: MixtureCorrection, kind: MixtureKind, counts: Counts, progress: Progress | None
) -> MixtureFit:
    """Fit groups that are the counts' places."""
    histogram = read_histogram(counts)
    moving = read_moving(counts, histogram)
    if moving >= MOVING_FROM and kind.moves:
        return _fit_jointly(settings, kind, histogram, moving, read_sample(counts, histogram))
    return _fit_separately(settings, kind, histogram, moving, progress)


def _fit_separately(
    settings: MixtureCorrection, kind: MixtureKind, histogram: Histogram, moving: float, progress: Progress | None
) -> MixtureFit:
    """From the histogram of each group. A flat prior is the mean over groups, weighted by their documents."""
    documents = _documents(histogram)
    group = np.array(join_small(histogram.places, documents.tolist()))
    fits = kind.fit_groups(observations_of(histogram, group), _first_places(histogram, group))
    if progress is not None:
        progress(1.0)
    if settings.prior == "flat":
        sizes = np.bincount(group, weights=documents)
        known = [(prior, size) for prior, size in zip(fits.priors, sizes, strict=True) if prior is not None]
        if known:
            mean = sum(prior * size for prior, size in known) / sum(size for _, size in known)
            fits = replace(fits, priors=[np.asarray(mean)] * len(fits.mixtures))
    return _fit_of(settings, histogram, group, fits, moving)


def _fit_jointly(
    settings: MixtureCorrection, kind: MixtureKind, histogram: Histogram, moving: float, sample: Sample
) -> MixtureFit:
    """All groups at once, from a sample of documents: groups must be large enough in the sample."""
    sizes = np.bincount(sample.place, minlength=len(histogram.places))
    group = np.array(join_small(histogram.places, sizes.tolist()))
    positions = None if settings.prior == "flat" else [place.position for place in _first_places(histogram, group)]
    return _fit_of(
        settings, histogram, group, kind.fit_jointly(sample.observations(group), positions), moving, jointly=True
    )


def _fit_of(
    settings: MixtureCorrection,
    histogram: Histogram,
    group: Ints,
    fits: GroupFits,
    moving: float,
    *,
    jointly: bool = False,
) -> MixtureFit:
    priors = _filled(fits, histogram, group)
    groups = tuple(
        Group(places, mixture, tuple(prior.tolist()))
        for places, mixture, prior in zip(_members(histogram, group), fits.mixtures, priors, strict=True)
    )
    return MixtureFit(
        settings.mixture,
        settings.prior,
        histogram.context,
        groups,
        jointly,
        moving,
        fits.log_likelihoods,
        fits.bics,
        fits.shared,
        fits.error,
    )


def _members(histogram: Histogram, group: Ints) -> list[tuple[PlaceCounts, ...]]:
    """The places of each group with what was seen there.

    Those of its own context come first, before those of contexts too small to be fitted that are read as it.
    """
    totals = (_documents(histogram), histogram.total(histogram.impressions), histogram.total(histogram.clicks))
    places = [
        PlaceCounts(place, int(d), int(n), int(c)) for place, d, n, c in zip(histogram.places, *totals, strict=True)
    ]
    of_context: Counter[tuple[str, ...]] = Counter()
    members: list[list[PlaceCounts]] = [[] for _ in range(int(group.max()) + 1)]
    for seen, g in zip(places, group.tolist(), strict=True):
        of_context[seen.place.context] += seen.documents
        members[g].append(seen)
    return [tuple(sorted(each, key=lambda seen: -of_context[seen.place.context])) for each in members]


def _first_places(histogram: Histogram, group: Ints) -> list[Place]:
    return [places[0].place for places in _members(histogram, group)]


def _documents(histogram: Histogram) -> Ints:
    return histogram.total(np.ones_like(histogram.documents))


def _filled(fitted: GroupFits, histogram: Histogram, group: Ints) -> list[Floats]:
    """A group that could not be fitted takes the prior of the nearest one that could.

    Where none could be fitted nothing is known of relevance: every document gets the log's click-through rate.
    """
    known = [
        (place, prior)
        for place, g in zip(histogram.places, group, strict=True)
        if (prior := fitted.priors[g]) is not None
    ]
    if not known:
        rate = histogram.total(histogram.clicks).sum() / histogram.total(histogram.impressions).sum()
        return [_proper(np.array([1 - rate, rate]))] * len(fitted.priors)
    places = [place for place, _ in known]
    firsts = zip(_first_places(histogram, group), fitted.priors, strict=True)
    return [_proper(known[nearest(first, places)][1] if prior is None else prior) for first, prior in firsts]


def _proper(prior: Floats) -> Floats:
    """No grade is impossible: a prior of 0 could never be overruled."""
    kept = np.maximum(prior, LEAST_PRIOR)
    return np.asarray(kept / kept.sum())
