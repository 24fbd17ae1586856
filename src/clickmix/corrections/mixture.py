"""Mixture-based correction, the paper's MBC and its extensions: a mixture of click rates for every group.

Counts -> MixtureFit
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral

import numpy as np

from clickmix.corrections.cascade import fit_cascade
from clickmix.corrections.fitted import EXAMINATIONS, MIXTURES, MixtureFit
from clickmix.counts import Counts
from clickmix.errors import SettingError
from clickmix.groups.places import (
    Histogram,
    Place,
    Sample,
    join_small,
    nearest,
    read_histogram,
    read_moving,
    read_sample,
)
from clickmix.mixtures import Mixture, Observations, can_share, fit_examined, fit_group, fit_jointly, fit_neighbours
from clickmix.mixtures.group import Group, PlaceCounts, observations_of
from clickmix.mixtures.mixture import silent
from clickmix.mixtures.neighbours import GRADES, STRONG
from clickmix.mixtures.nonparametric import fit_nonparametric
from clickmix.mixtures.problem import Prior
from clickmix.types import Floats, Ints, Progress

MOVING_FROM = 0.1  # share of documents at several places from which the groups are fitted jointly
LEAST_PRIOR = 1e-13


@dataclass(frozen=True)
class MixtureCorrection:
    """Settings of the correction: which mixture, and whether better positions hold more relevant documents.

    binomial: two rates per group, the paper's. graded: `grades` evenly spaced rates. auto: binomial or graded, the
    number of grades chosen by BIC for the whole log. gaussian: the paper's second. nonparametric: any distribution.
    `sharing` lets neighbouring positions learn from each other (auto, binomial, graded).
    """

    mixture: str = "auto"
    prior: Prior = "position"
    grades: int = 5
    sharing: bool = True
    examination: str = "pbm"

    def __post_init__(self) -> None:
        if self.mixture not in MIXTURES:
            raise SettingError(f"mixture {self.mixture!r}: expected one of {', '.join(MIXTURES)}.")
        if self.prior not in ("position", "flat"):
            raise SettingError(f"prior {self.prior!r}: expected 'position' or 'flat'.")
        if not (isinstance(self.grades, Integral) and 2 <= self.grades <= GRADES[-1]):
            raise SettingError(f"grades {self.grades!r}: expected a whole number from 2 to {GRADES[-1]}.")
        if self.examination not in EXAMINATIONS:
            raise SettingError(f"examination {self.examination!r}: expected one of {', '.join(EXAMINATIONS)}.")

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> MixtureFit:
        """Fit every group by itself or with its neighbours, or all together where documents move between them."""
        if self.examination != "pbm":
            return fit_cascade(counts, self._of_groups, examination=self.examination, moving_from=MOVING_FROM)
        return self._of_counts(counts, read_histogram(counts), progress)

    def _of_counts(self, counts: Counts, histogram: Histogram, progress: Progress | None = None) -> MixtureFit:
        moving = read_moving(counts, histogram)
        # A distribution without a shape is fitted group by group always: jointly it would have too many parameters.
        jointly = moving >= MOVING_FROM and self.mixture != "nonparametric"
        return self._fit(histogram, moving, read_sample(counts, histogram) if jointly else None, progress)

    def fit_histogram(self, histogram: Histogram, *, moving: float) -> MixtureFit:
        """Fit from a histogram that was made elsewhere, never jointly; `moving` is told with the fit."""
        if self.examination != "pbm":
            raise SettingError(
                f"examination {self.examination!r}: a histogram does not tell what stood above. Fit a log."
            )
        return self._fit(histogram, moving, None, None)

    def _fit(self, histogram: Histogram, moving: float, sample: Sample | None, progress: Progress | None) -> MixtureFit:
        if sample is not None:
            # Groups must be large enough in what is fitted: the sample.
            sizes = np.bincount(sample.place, minlength=len(histogram.places))
            group = np.array(join_small(histogram.places, sizes.tolist()))
            fitted = self._jointly(histogram, sample, group)
        else:
            group = np.array(join_small(histogram.places, _documents(histogram).tolist()))
            fitted = self._separately(histogram, group, progress)
        return self._fit_of(histogram, group, fitted, moving, jointly=sample is not None)

    def _fit_of(
        self, histogram: Histogram, group: Ints, fitted: _Fitted, moving: float, *, jointly: bool = False
    ) -> MixtureFit:
        priors = _filled(fitted, histogram, group)
        groups = tuple(
            Group(places, mixture, tuple(prior.tolist()))
            for places, mixture, prior in zip(_members(histogram, group), fitted.mixtures, priors, strict=True)
        )
        return MixtureFit(
            self.mixture,
            self.prior,
            histogram.context,
            groups,
            jointly,
            moving,
            fitted.trace,
            fitted.bics,
            fitted.shared,
            fitted.error,
        )

    def _of_groups(self, counts: Counts, grades: int | None, *, alike: bool) -> MixtureFit:
        """A fit whose groups are the counts' places; `alike` but for examination, unless their documents move.

        The number of grades is that of the first position, once it is known.
        """
        plain = replace(self, examination="pbm")
        if grades is not None and self.mixture == "auto":
            plain = replace(plain, mixture="graded", grades=grades)
        if not alike or plain.mixture not in ("binomial", "graded"):
            return plain._of_counts(counts, read_histogram(counts))
        histogram = read_histogram(counts)
        moving, group = read_moving(counts, histogram), np.arange(len(histogram.places))
        if moving >= MOVING_FROM:
            return plain._of_counts(counts, histogram)
        mixtures = fit_examined(observations_of(histogram, group), grades=plain._grades)
        priors = [np.array(mixture.weights) if mixture.informative else None for mixture in mixtures]
        return plain._fit_of(histogram, group, _Fitted(mixtures, priors), moving)

    def _separately(self, histogram: Histogram, group: Ints, progress: Progress | None) -> _Fitted:
        """From the histogram of each group, with what its neighbours say where there are enough of them.

        A flat prior is the mean over groups, weighted by their documents.
        """
        seen = observations_of(histogram, group)
        bics: Mapping[int, float] = {}
        if self.mixture in ("gaussian", "nonparametric"):
            mixtures, shared = [self._alone(observations) for observations in seen], False
        else:
            mixtures, bics, shared = self._graded(seen, _first_places(histogram, group))
        if progress is not None:
            progress(1.0)
        priors = [np.array(m.weights) if m.informative else None for m in mixtures]
        known = [(prior, d) for prior, d in zip(priors, _per_group(histogram, group), strict=True) if prior is not None]
        if self.prior == "flat" and known:
            mean = sum(prior * d for prior, d in known) / sum(d for _, d in known)
            priors = [np.asarray(mean)] * len(mixtures)
        return _Fitted(mixtures, priors, bics=bics, shared=shared)

    def _alone(self, seen: Observations) -> Mixture:
        return fit_nonparametric(seen) if self.mixture == "nonparametric" else fit_group(seen, self.mixture)

    def _graded(
        self, seen: Sequence[Observations], places: Sequence[Place]
    ) -> tuple[list[Mixture], Mapping[int, float], bool]:
        """Mixtures of the groups with clicks, by themselves or with their neighbours; BIC by number of grades."""
        mixtures = [silent("binomial", *observations.totals) for observations in seen]
        heard = [g for g, mixture in enumerate(mixtures) if mixture is None]
        positions, contexts = [places[g].position for g in heard], [places[g].context for g in heard]
        number = None if self.mixture == "auto" else self._grades
        if self.sharing and can_share(positions, contexts):
            fit = fit_neighbours([seen[g] for g in heard], positions=positions, contexts=contexts, grades=number)
            found, bics, shared = list(fit.mixtures), fit.bics, True
        else:
            found, bics = _by_themselves([seen[g] for g in heard], number)
            shared = False
        for g, mixture in zip(heard, found, strict=True):
            mixtures[g] = mixture
        return [mixture for mixture in mixtures if mixture is not None], bics, shared

    @property
    def _grades(self) -> int:
        return self.grades if self.mixture == "graded" else 2

    def _jointly(self, histogram: Histogram, sample: Sample, group: Ints) -> _Fitted:
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
        positions = None if self.prior == "flat" else [place.position for place in _first_places(histogram, group)]
        family = "gaussian" if self.mixture == "gaussian" else "binomial"
        numbers = GRADES if self.mixture == "auto" else (self._grades,)
        fits, best = {}, 0
        for number in numbers:
            fits[number] = fit_jointly(seen, family, grades=number, positions=positions)
            best = min(fits, key=lambda g: fits[g].bic)
            if number > best:
                break
        chosen = min(g for g in fits if fits[g].bic <= fits[best].bic + STRONG)
        fit = fits[chosen]
        known = any(mixture.informative for mixture in fit.mixtures)  # else prior and error belong to nothing
        bics = {g: made.bic for g, made in fits.items()}
        priors = list(fit.priors) if known else [None] * groups
        error = fit.error if known else None
        return _Fitted(fit.mixtures, priors, fit.log_likelihoods, bics, error=error)


@dataclass(frozen=True)
class _Fitted:
    """A mixture and prior weights per group, none where nothing could be fitted; how it was fitted."""

    mixtures: Sequence[Mixture]
    priors: Sequence[Floats | None]
    trace: tuple[float, ...] = ()
    bics: Mapping[int, float] = field(default_factory=dict)
    shared: bool = False
    error: float | None = None


def _by_themselves(seen: Sequence[Observations], grades: int | None) -> tuple[list[Mixture], Mapping[int, float]]:
    """Each group from its own clicks; the number of grades by the sum of their BIC if it is not given."""
    fits: dict[int, list[Mixture]] = {}
    for number in GRADES if grades is None else range(grades, min(grades + 1, GRADES[-1]) + 1):
        fits[number] = [fit_group(observations, "binomial", grades=number) for observations in seen]
        if number - 1 in fits and _bic(fits[number]) > _bic(fits[number - 1]):
            break
    bics = {number: _bic(mixtures) for number, mixtures in fits.items()}
    chosen = grades or min((g for g in bics if bics[g] <= min(bics.values()) + STRONG), default=2)
    return fits[chosen], bics


def _bic(mixtures: Sequence[Mixture]) -> float:
    return sum(min(m.bic or 0.0, m.bic_one_rate or 0.0) for m in mixtures)


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


def _per_group(histogram: Histogram, group: Ints) -> Floats:
    return np.bincount(group, weights=_documents(histogram))


def _filled(fitted: _Fitted, histogram: Histogram, group: Ints) -> list[Floats]:
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
