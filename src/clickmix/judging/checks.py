"""Checks: does a log meet the assumptions of the mixture fitted to it?   MixtureFit, Counts -> Checks

Each check has a statistic that is small if the assumption holds, whatever the parameters, and a limit that clean logs
stay below. docs/sure.md says how each was chosen; benchmarks/verdicts.py counts alarms.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

import numpy as np
from scipy.special import chdtri, logit

from clickmix.corrections.check import Check, Violation
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.corrections.mixture_based.label_sql import Numbers, labels_query
from clickmix.counts.counts import Counts
from clickmix.engines.sql import aliases, listed
from clickmix.groups.histogram import Histogram, observations_of, read_histogram
from clickmix.groups.observations import Observations
from clickmix.groups.places import SMALLEST_GROUP, Place, places_of
from clickmix.groups.sample import cells_query, sample_queries
from clickmix.judging.misfit import Misfit, find_misfits
from clickmix.judging.rate_gaps import RateGap, compare_rates
from clickmix.mixtures.group import Group
from clickmix.mixtures.kinds.kind import GRADES, MIXTURES, STRONG
from clickmix.types import Ints

BEYOND_CHANCE = 3.0  # standard errors by which both rates must rise
RARELY = 0.002  # share of clean logs in which a check may raise an alarm
Fit = TypeVar("Fit")
LOOK_CELLS = 100_000  # of whole queries, looked at for such clicks


def checked(fitted: Fit, counts: Counts) -> Fit:
    """The fit with the checks of its log; other corrections, cascades and some kinds of mixtures have none."""
    if not isinstance(fitted, MixtureFit):
        return fitted
    return cast(Fit, checked_histogram(fitted, read_histogram(counts), None if fitted.jointly else counts))


def checked_histogram(fitted: MixtureFit, histogram: Histogram, counts: Counts | None = None) -> MixtureFit:
    """The same from a histogram; give `counts` if lists stay the same, so that they show what is above."""
    if fitted.examination != "pbm" or not MIXTURES.make(fitted.mixture).checkable:
        return fitted
    return replace(fitted, checks=check_log(fitted.groups, histogram, counts, bics=fitted.bics))


def check_log(
    groups: Sequence[Group], histogram: Histogram, counts: Counts | None, *, bics: Mapping[int, float]
) -> tuple[Check, ...]:
    """Every check that these groups allow; give `counts` if lists stay the same, so that they show what is above."""
    checks = [
        check_rising(groups, histogram.context),
        check_grades(bics, len(groups[0].prior)),
        None if counts is None else check_cascade(groups, counts),
        *check_rates(groups, observations_of(histogram, _member_of(groups, histogram.places)), histogram.context),
    ]
    return tuple(check for check in checks if check is not None)


def _member_of(groups: Sequence[Group], places: Iterable[Place]) -> Ints:
    """The number of the group of each place."""
    of_place = {seen.place: g for g, group in enumerate(groups) for seen in group.places}
    return np.array([of_place[place] for place in places])


def check_rising(groups: Sequence[Group], context: Sequence[str]) -> Check | None:
    """The lowest and the highest rate both rise from one position to the next, so the next is examined more.

    statistic = max over neighbours of min over both ends of (logit p' - logit p) / sqrt(e^2 + e'^2), e standard errors.
    """
    ordered = sorted(groups, key=lambda group: (group.places[0].place.context, group.places[0].place.position))
    steps = [
        (_rise(above, below), above, below)
        for above, below in itertools.pairwise(ordered)
        if above.places[0].place.context == below.places[0].place.context and _known(above) and _known(below)
    ]
    if not steps:
        return None
    statistic, above, below = max(steps, key=lambda step: step[0])
    places = [group.places[0].place.describe(context) for group in (above, below)]
    ends = [f"{rate:.3g}" for group in (above, below) for rate in (group.mixture.rates[0], group.mixture.rates[-1])]
    evidence = (
        f"From {places[0]} to {places[1]} the lowest click rate goes from {ends[0]} to {ends[2]} and the highest from "
        f"{ends[1]} to {ends[3]}; both change by at least {statistic:+.1f} standard errors"
    )
    return Check(Violation.RISING, statistic, BEYOND_CHANCE, evidence)


def _known(group: Group) -> bool:
    return group.mixture.informative and group.mixture.standard_errors is not None


def _rise(above: Group, below: Group) -> float:
    rates = [np.array([group.mixture.rates[0], group.mixture.rates[-1]]) for group in (above, below)]
    errors = [np.array(group.mixture.standard_errors) for group in (above, below)]
    return float(((logit(rates[1]) - logit(rates[0])) / np.hypot(*errors)).min())


def check_grades(bics: Mapping[int, float], grades: int) -> Check | None:
    """A finer scale explains the log better.

    statistic = BIC of the chosen number of grades - the lowest BIC of a finer one; at the largest number that is
    looked at, BIC of one grade less - its own: still improving there.
    """
    if grades not in bics:
        return None
    if grades == GRADES[-1]:
        if grades - 1 not in bics:
            return None
        statistic = float(bics[grades - 1] - bics[grades])
        evidence = f"At {grades} grades, the most that clickmix tries, BIC was still improving by {statistic:,.0f}"
    else:
        finer = {number: bic for number, bic in bics.items() if number > grades}
        if not finer:
            return None
        best = min(finer, key=lambda number: finer[number])
        statistic = float(bics[grades] - finer[best])
        evidence = f"BIC is {statistic:,.0f} better with {best} grades than with {grades}"
    return Check(Violation.GRADES, statistic, STRONG, evidence)


def check_rates(groups: Sequence[Group], seen: Sequence[Observations], context: Sequence[str]) -> Iterator[Check]:
    """Some documents are clicked at a rate that their mixture does not have.

    statistic = the largest gain of one more rate, at any place; the limit is 2 log(places / RARELY).
    """
    informative = [pair for pair in zip(groups, seen, strict=True) if pair[0].mixture.informative]
    if not informative:
        return
    limit = float(2 * np.log(len(informative) / RARELY))  # a gain of x by chance: about e^(-x/2) at one place
    misfits = [find_misfits(observations, group.mixture) for group, observations in informative]
    for violation, found in zip((Violation.BETWEEN, Violation.BEYOND), zip(*misfits, strict=True), strict=True):
        worst = max(range(len(found)), key=lambda g: found[g].gain)
        evidence = _strangers(informative[worst][0], found[worst], context)
        yield Check(violation, found[worst].gain, limit, evidence)


def _strangers(group: Group, misfit: Misfit, context: Sequence[str]) -> str:
    rates = group.mixture.rates
    return (
        f"At {group.places[0].place.describe(context)} about {100 * misfit.share:.2g}% of documents are clicked at a "
        f"rate near {misfit.rate:.2g}; the rates of the grades go from {rates[0]:.2g} to {rates[-1]:.2g}"
    )


def check_cascade(groups: Sequence[Group], counts: Counts) -> Check | None:
    """Below a document labelled relevant, documents of the same grade are clicked at different rates than others.

    statistic = sum over places of 2 (log-likelihood with rates of their own for documents below a relevant one
    - with rates in common), beside chi-square with two degrees of freedom for each place.
    """
    split = [
        (parts, group.mixture)
        for group, parts in _below_and_not(groups, counts)
        if min(float(part.multiplicity.sum()) for part in parts) >= SMALLEST_GROUP
    ]
    if not split:
        return None
    gaps = compare_rates(*zip(*split, strict=True))
    statistic = sum(gap.gain for gap in gaps)
    evidence = (
        f"Below a document labelled relevant, documents of the same grade are clicked {_ratio(gaps):.2f} times as "
        "often as others at the same place: a cascade, or users who differ from query to query"
    )
    return Check(Violation.CASCADE, statistic, float(chdtri(2 * len(gaps), RARELY)), evidence)


def _ratio(gaps: Sequence[RateGap]) -> float:
    """The typical one, gaps that gain more counting more."""
    weights = np.array([gap.gain for gap in gaps]) + 1e-9
    return float(np.exp(np.average(np.log([gap.ratio for gap in gaps]), weights=weights)))


def _below_and_not(
    groups: Sequence[Group], counts: Counts
) -> Iterator[tuple[Group, tuple[Observations, Observations]]]:
    """Informative groups, their documents split: no relevant document above in the same query and context, or one."""
    looked_at = sample_queries(counts, LOOK_CELLS / sum(group.documents for group in groups))
    rows = counts.engine.fetch(split_query(groups, looked_at))
    if looked_at is not counts:
        counts.engine.forget(looked_at.table)
    places, place = places_of(rows, counts.context)
    member_of = _member_of(groups, places)[place]
    for g, group in enumerate(groups):
        if group.mixture.informative:
            parts = [(member_of == g) & (rows["below"] == below) for below in (0, 1)]
            columns = [[rows[key][part] for key in ("impressions", "clicks", "documents")] for part in parts]
            yield group, (Observations.histogram(*columns[0]), Observations.histogram(*columns[1]))


def split_query(groups: Sequence[Group], counts: Counts) -> str:
    """The histogram of each place in two parts, `below` 0 or 1."""
    position, *context = aliases(counts.keys)
    numbers = {
        seen.place: (group.prior_logits, group.mixture.evidence(grades=len(group.prior)))
        for group in groups
        for seen in group.places
    }
    labels = labels_query(Numbers(numbers), counts.table, counts.keys)
    keys, list_of = listed([position, *context]), listed(["query_id", *context])
    first = f"min(CASE WHEN relevance > 0.5 THEN {position} END) OVER (PARTITION BY {list_of})"
    return (
        f"SELECT {keys}, below, impressions, clicks, count(*) AS documents FROM "
        f"(SELECT {keys}, impressions, clicks, CASE WHEN {first} < {position} THEN 1 ELSE 0 END AS below FROM "
        f"{cells_query(counts)} JOIN (SELECT query_id, doc_id, relevance FROM ({labels}) AS labels) AS labelled "
        f"USING (query_id, doc_id)) AS split GROUP BY {keys}, below, impressions, clicks "
        f"ORDER BY {keys}, below, impressions, clicks"
    )
