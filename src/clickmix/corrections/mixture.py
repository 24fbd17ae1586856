"""The mixture-based correction: its settings, and how it fits a log.   Counts -> MixtureFit -> Labels

It fits one model to the whole log or, as in the paper, every group to its histogram.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from clickmix.corrections.correction import CORRECTIONS
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.errors import SettingError
from clickmix.groups.places import Histogram, join_small, nearest, observations_of, read_histogram
from clickmix.groups.sample import read_moving
from clickmix.mixtures.kinds.kind import GRADES, MIXTURES, GroupFits, MixtureKind, WholeLogKind
from clickmix.mixtures.mixture import Group, PlaceCounts
from clickmix.registry import Option
from clickmix.types import Floats, Ints, MixtureName, Progress, Table

if TYPE_CHECKING:
    from clickmix.corrections.mixture_based.fit import MixtureFit


LEAST_PRIOR = 1e-13
Prior = Literal["position", "flat"]
Examination = Literal["pbm", "dcm", "ubm"]
FEATURES = Option(
    "features",
    "Features of documents: a prior for every document (mixture), or a regression (regression-em).",
    type=Path,
)
OPTIONS = (
    Option("mixture", "What to fit to click rates; auto chooses the number of grades.", choices=MIXTURES),
    Option(
        "prior",
        "Whether better positions hold more relevant documents (position) or not (flat).",
        choices=get_args(Prior),
    ),
    Option(
        "examination",
        "What decides whether people look at a document: its position (pbm), or also what is above it (dcm, ubm).",
        choices=get_args(Examination),
    ),
    Option(
        "judgments", "Judged documents (query_id, doc_id, grade on any scale), to learn what clicks mean.", type=Path
    ),
    FEATURES,
)


@CORRECTIONS.register(
    "mixture", help="The posterior of a mixture of click rates: the paper's correction.", options=OPTIONS
)
@dataclass(frozen=True)
class MixtureCorrection(TakesCounts):
    """Settings of the mixture-based correction.

    mixture       what to fit to click rates. auto: one model of the whole log; held-out clicks choose the number of
                  grades, and what differs between queries and documents. binomial: the same with two grades and
                  queries that are alike, the paper's first mixture. graded: the same with `grades` evenly spaced
                  rates. gaussian: the paper's second, place by place. nonparametric: any distribution, place by place
    prior         position: better positions hold more relevant documents. flat: the same prior everywhere
    sharing       whether neighbouring positions inform each other (auto, binomial, graded)
    examination   what decides whether people look at a document: its position (pbm), or also what is above it
    judgments     a file or frame of judged documents, query_id, doc_id and grade: they decide how much clicks, skips,
                  exposure and the prior weigh, if that helps on held-out judged queries (auto, binomial, graded)
    features      a file or frame of documents' features: they give every document its own prior, if that helps to
                  predict held-out clicks. Documents that were never shown get labels, too (auto, binomial, graded)

    >>> from clickmix import Counts
    >>> counts = Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> MixtureCorrection(mixture="binomial").fit(counts).label(counts).relevance.round(2)[[0, 79]].tolist()
    [1.0, 0.0]
    """

    saves_model: ClassVar[bool] = True
    gives_verdict: ClassVar[bool] = True

    mixture: MixtureName | str = "auto"
    prior: Prior = "position"
    grades: int = 5
    sharing: bool = True
    examination: Examination = "pbm"
    judgments: Table | None = field(default=None, compare=False, repr=False)
    features: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        MIXTURES[self.mixture]
        for name, value, among in (("prior", self.prior, Prior), ("examination", self.examination, Examination)):
            if value not in get_args(among):
                raise SettingError(f"{name} {value!r}: expected one of {', '.join(get_args(among))}.")
        if not (isinstance(self.grades, Integral) and 2 <= self.grades <= GRADES[-1]):
            raise SettingError(f"grades {self.grades!r}: expected a whole number from 2 to {GRADES[-1]}.")
        if not isinstance(self.sharing, bool):
            raise SettingError(f"sharing {self.sharing!r}: expected True or False.")
        for name, given, use in (
            ("judgments", self.judgments, "be weighed by them"),
            ("features", self.features, "learn from them"),
        ):
            if given is not None and (instead := self._instead()):
                raise SettingError(
                    f"{name}: only one model of the whole log can {use}. Use {instead}, or leave the {name} out."
                )

    def _instead(self) -> str:
        """Settings to use instead, so that one model of the whole log is fitted; empty if it is."""
        if self.needs_lists:
            return f"the examination pbm instead of {self.examination}"
        if isinstance(self.kind, WholeLogKind):
            return ""
        if isinstance(MIXTURES[self.mixture].make(grades=self.grades, sharing=True), WholeLogKind):
            return "sharing=True"
        return f"the mixture auto, binomial or graded instead of {self.mixture}"

    @property
    def kind(self) -> MixtureKind:
        """The kind of mixture, which fits the groups."""
        return MIXTURES[self.mixture].make(grades=self.grades, sharing=self.sharing)

    @property
    def needs_lists(self) -> bool:
        """Whether the correction must know what was above a document."""
        return self.examination != "pbm"

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> MixtureFit:
        """Fit one model to the whole log, or every group by itself."""
        from clickmix.counts.judgments import read_grades

        if self.needs_lists:
            from clickmix.corrections.mixture_based.cascade import fit_cascade

            return fit_cascade(counts, partial(fit_walked, self), examination=self.examination)[0]
        # Complain before the fit.
        grades = None if self.judgments is None else read_grades(self.judgments)
        file = None
        if self.features is not None:
            from clickmix.corrections.mixture_based.featured import open_feature_file

            file = open_feature_file(self.features)
        histogram = read_histogram(counts)
        fitted = _fit_log(self, self.kind, histogram, read_moving(counts, histogram), counts)
        if file is not None:
            fitted = fitted.with_features(counts, file)
        return fitted if grades is None else fitted.with_judgments(counts, grades)

    def fit_histogram(self, histogram: Histogram, *, moving: float) -> MixtureFit:
        """Fit a histogram from elsewhere, where queries are alike; the fit records the share of `moving` documents."""
        if self.judgments is not None:
            raise SettingError("judgments: a histogram does not show which documents were judged. Fit a log.")
        if self.features is not None:
            raise SettingError("features: a histogram does not show which documents it counts. Fit a log.")
        if self.needs_lists:
            raise SettingError(
                f"examination {self.examination!r}: a histogram does not show what was above a document. Fit a log."
            )
        return _fit_log(self, self.kind, histogram, moving)


def fit_walked(settings: MixtureCorrection, counts: Counts, grades: int | None) -> MixtureFit:
    """Fit cells that a walk down the lists has grouped; the first position decides the number of grades."""
    histogram = read_histogram(counts)
    moving = read_moving(counts, histogram)
    if grades is None:
        grades = _fit_log(settings, settings.kind, histogram, moving, counts, queries=False).grades
    return _fit_log(settings, settings.kind.given(grades), histogram, moving, counts, queries=False)


def _fit_log(
    settings: MixtureCorrection,
    kind: MixtureKind,
    histogram: Histogram,
    moving: float,
    counts: Counts | None = None,
    *,
    queries: bool = True,
) -> MixtureFit:
    """One model of the whole log, or every group by itself; without `queries`, the model takes them to be alike."""
    # Here, because a fit imports these settings, and scipy is slow to load.
    from clickmix.corrections.mixture_based.fit import MixtureFit
    from clickmix.corrections.mixture_based.whole_log import fit_whole_log, groups_of

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
    """The places of each group, with their counts.

    Its own context comes first, then contexts that are too small to be fitted and take its fit.
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
    """The prior of every group; one that could not be fitted takes the prior of the nearest that could.

    If none could be fitted, nothing is known about relevance: every document gets the log's click-through rate.
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
    """The prior with no grade impossible: no evidence could overrule a prior of 0."""
    kept = np.maximum(prior, LEAST_PRIOR)
    return np.asarray(kept / kept.sum())
