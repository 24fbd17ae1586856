"""Fit a log: one model of all of it, or the paper's way, every group from its histogram.   Counts -> MixtureFit"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clickmix.corrections.mixture_based.cascade import fit_cascade
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.errors import SettingError
from clickmix.groups.places import Histogram, join_small, nearest, observations_of, read_histogram
from clickmix.groups.sample import read_moving
from clickmix.mixtures.kinds.kind import GroupFits, MixtureKind, WholeLogKind
from clickmix.mixtures.mixture import Group, PlaceCounts
from clickmix.types import Floats, Ints, Progress

if TYPE_CHECKING:
    from clickmix.corrections.mixture import MixtureCorrection

LEAST_PRIOR = 1e-13


def fit_counts(settings: MixtureCorrection, counts: Counts, *, progress: Progress | None = None) -> MixtureFit:
    """Fit the log; where people's examination depends on what is above a document, walking down the lists."""
    if settings.needs_lists:
        return fit_cascade(counts, partial(_fit_walked, settings), examination=settings.examination)
    histogram = read_histogram(counts)
    return fit_log(settings, settings.kind, histogram, read_moving(counts, histogram), counts)


def fit_histogram(settings: MixtureCorrection, histogram: Histogram, *, moving: float) -> MixtureFit:
    """Fit a histogram that was made elsewhere: queries, and documents that moved, are not known."""
    if settings.needs_lists:
        raise SettingError(
            f"examination {settings.examination!r}: a histogram does not show what was above a document. Fit a log."
        )
    return fit_log(settings, settings.kind, histogram, moving)


def _fit_walked(settings: MixtureCorrection, counts: Counts, grades: int | None) -> MixtureFit:
    """Fit cells that a walk down the lists has grouped; the first position decides how many grades there are."""
    histogram = read_histogram(counts)
    moving = read_moving(counts, histogram)
    if grades is None:
        grades = fit_log(settings, settings.kind, histogram, moving, counts, queries=False).grades
    return fit_log(settings, settings.kind.given(grades), histogram, moving, counts, queries=False)


def fit_log(
    settings: MixtureCorrection,
    kind: MixtureKind,
    histogram: Histogram,
    moving: float,
    counts: Counts | None = None,
    *,
    queries: bool = True,
) -> MixtureFit:
    """One model of the whole log, or every group by itself; without `queries`, they are not known to differ."""
    from clickmix.corrections.mixture_based.whole_log import fit_whole_log, groups_of  # late: scipy is slow to load

    flat = settings.prior == "flat"
    found = None
    if isinstance(kind, WholeLogKind):
        found = fit_whole_log(kind, counts, histogram, moving=moving, flat=flat, queries=queries)
    if found is not None:
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
    group = np.array(join_small(histogram.places, _documents(histogram).tolist()))
    fits = kind.fit_groups(observations_of(histogram, group))
    priors = _filled(fits, histogram, group)
    if flat:
        sizes = np.bincount(group, weights=_documents(histogram))
        priors = [np.average(priors, axis=0, weights=sizes)] * len(priors)
    groups = tuple(
        Group(places, mixture, tuple(prior.tolist()))
        for places, mixture, prior in zip(_members(histogram, group), fits.mixtures, priors, strict=True)
    )
    return MixtureFit(
        settings.mixture, settings.prior, histogram.context, groups, jointly=False, moving=moving, bics=fits.bics
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
    firsts = [members[0].place for members in _members(histogram, group)]
    return [
        _proper(known[nearest(first, places)][1] if prior is None else prior)
        for first, prior in zip(firsts, fitted.priors, strict=True)
    ]


def _proper(prior: Floats) -> Floats:
    """No grade is impossible: a prior of 0 could never be overruled."""
    kept = np.maximum(prior, LEAST_PRIOR)
    return np.asarray(kept / kept.sum())
