"""Checks: does a log meet the assumptions of the model fitted to it, and what would labels be without them?

    MixtureFit, Counts -> Checks
Each check drops an assumption and fits a sample of queries again. The size of a violation is how far labels change.
The statistic is small if the assumption holds, and clean logs stay below the limit. docs/sure.md says how each was
chosen; benchmarks/verdicts.py counts alarms.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np
from scipy.special import chdtri, logit

from clickmix.corrections.check import Check, Violation
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.corrections.mixture_based.whole_log import joined_places
from clickmix.counts.counts import Counts
from clickmix.errors import several
from clickmix.groups.places import Histogram, read_histogram
from clickmix.groups.sample import read_queries
from clickmix.mixtures.hierarchical.cells import Cells, Places, join_places
from clickmix.mixtures.hierarchical.choose import choose
from clickmix.mixtures.hierarchical.climb import Look, climb, climb_again, expected
from clickmix.mixtures.hierarchical.fit import with_effects, with_places
from clickmix.mixtures.hierarchical.label import label, label_seen
from clickmix.mixtures.hierarchical.problem import Model, Problem
from clickmix.mixtures.hierarchical.queries import (
    FEWEST_QUERIES,
    RARELY,
    distances,
    farthest,
    from_middle,
    relevant_shares,
    totals,
)
from clickmix.mixtures.mixture import Group
from clickmix.types import Floats, Ints

BEYOND_CHANCE = 3.0  # standard errors: both rates must rise, and other queries' clicks be predicted better, by more
LOOK_CELLS = 20_000  # cells of whole queries to fit again
COMPARED = 1.0  # log-likelihood that a round of such a fit must gain to go on
TINY = 1e-9
ENOUGH_CLICKED = 30  # one number must divide at least this many distinct (place, impressions, clicks) with clicks
CORRELATIONS = 0.001, 0.01, 0.03, 0.1, 0.3  # to look for at every place, between the clicks on a document
FAR = 0.1  # a change of a label that people notice
RELEVANT = 0.5  # above this label, a document counts as relevant for those below it
WIDE = {"log s": 0.0, "log t": 0.4}  # log deviations of attention and shares, so large that queries can differ freely
Fit = TypeVar("Fit")


def checked(fitted: Fit, counts: Counts) -> Fit:
    """The fit with the checks of its log; other corrections, cascades and fits of single groups have none."""
    if not isinstance(fitted, MixtureFit) or fitted.model is None or fitted.examination != "pbm":
        return fitted
    look = _Look(fitted, fitted.model.model, counts, read_histogram(counts))
    rising = check_rising(fitted.groups, fitted.context)
    outliers = look.outliers()
    scattered = None if outliers is not None and outliers.found else look.scattered()  # outliers would explain it
    checks = (look.cascade(), outliers, look.repeated(), scattered, look.grades(), rising)
    return cast(Fit, replace(fitted, checks=tuple(check for check in checks if check is not None)))


@dataclass(frozen=True)
class _Split:
    """Places split by whether a relevant document is above: the `source` of each, and which are `under` one."""

    places: Places
    source: Ints
    under: Ints
    cells: Cells
    entry: Ints


class _Look:
    """A sample of queries, its cells at the model's places, and the model's labels."""

    def __init__(self, fitted: MixtureFit, model: Model, counts: Counts, histogram: Histogram) -> None:
        self.fitted, self.rows = fitted, read_queries(counts, histogram, cells=LOOK_CELLS)
        self.histogram = histogram
        self.places, joined = joined_places(histogram)
        self.place = joined[self.rows.place]
        self.position = np.array([place.position for place in histogram.places])[self.rows.place]
        self.rows_seen = self.rows.impressions, self.rows.clicks
        self.cells, self.entry = self._cells(self.places, self.place, *self.rows_seen)
        self.model = model
        self.relevance = label(self.model, self.cells).relevance  # of each entry
        self.labels = self.relevance[self.entry]

    def _cells(
        self, places: Places, place: Ints, impressions: Floats | Ints, clicks: Floats | Ints
    ) -> tuple[Cells, Ints]:
        rows = self.rows
        return Cells.of_documents(places, rows.query, rows.document, place, impressions, clicks, queries=rows.queries)

    def cascade(self) -> Check | None:
        """Documents below a relevant one get their own rates, learned from half of the queries.

            statistic = log-likelihood gained by the clicks of the other half / its standard error
        Differences between queries look like a cascade, too. So if the fitted model finds one that changes labels, the
        check is repeated with queries that differ in every known way as much as the log says, and if it still finds
        one, with queries that differ freely. The smallest finding counts: the first models miss differences, and
        the last one mistakes chance for a difference if clicks are few.
        """
        below = self._below().astype(np.int64)
        (place, is_below), pair = np.unique(np.stack([self.place, below]), axis=1, return_inverse=True)
        if np.bincount(place).max() < 2 or self.rows.queries < FEWEST_QUERIES:
            return None
        position, context = self.places.position[place], 2 * self.places.context[place] + is_below
        places, joined = join_places(position, context, np.bincount(pair.ravel()))
        source, under = np.zeros(len(places), dtype=np.int64), np.zeros(len(places), dtype=bool)
        source[joined], under[joined] = place, is_below == 1
        split = _Split(places, source, under, *self._cells(places, joined[pair.ravel()], *self.rows_seen))
        effects = self.model.effects
        found = [self._below_apart(self.model, split)]
        if found[0].found:
            more = with_effects(self.model, replace(effects, attention=effects.attention or "odds", shares=True))
            found.append(self._below_apart(climb(self.cells, more, gain=COMPARED)[0], split))
        if found[-1].found:
            pairs = zip(more.effects.numbers, more.numbers, strict=True)
            wide = np.array([max(number, WIDE.get(name, number)) for name, number in pairs])
            found.append(self._below_apart(replace(more, numbers=wide), split))
        return min(found, key=lambda each: (each.found, each.statistic))

    def _below_apart(self, start: Model, split: _Split) -> Check:
        """The check with queries that differ as in the start.

        How far labels change is measured by the covariance of both halves' changes: chance moves these independently.
        """
        half = self.cells.ranks() % 2
        gains, changes, times = [], [], []
        for this in (0, 1):
            some = np.flatnonzero(half == this)
            model, look = climb_again(self.cells.sample(some), start)
            apart = with_places(model, split.places, split.source)
            apart = climb(split.cells.sample(some), apart, look, gain=COMPARED, hold=True)[0]
            (there, seen_there), (here, seen_here) = expected(apart, split.cells), expected(model, self.cells)
            gains.append((there.by_query(seen_there) - here.by_query(seen_here))[half != this])
            labels = label_seen(there, seen_there).relevance[split.entry]
            changes.append(labels - label_seen(here, seen_here).relevance[self.entry])
            times.append(_times_below(apart, split))
        gain = np.concatenate(gains)
        statistic = float(gain.sum() / max(np.sqrt((gain**2).sum()), TINY))
        evidence = (
            f"Below a document labelled relevant, documents of the same grade are clicked {np.exp(np.mean(times)):.2f} "
            "times as often as others at the same place"
        )
        moved = float(np.sqrt(max(0.0, float(np.mean(changes[0] * changes[1])))))
        far = np.mean((np.abs(changes) > FAR).all(axis=0) & (changes[0] * changes[1] > 0))
        return Check(Violation.CASCADE, statistic, BEYOND_CHANCE, evidence, moved, float(far))

    def _below(self) -> Ints:
        """Per cell, whether a document of the query that is labelled relevant was shown higher up."""
        rows = self.rows
        shown = np.bincount(rows.document, rows.impressions)
        mean = np.bincount(rows.document, rows.impressions * self.position) / shown
        first = np.full(rows.queries, np.inf)
        relevant = self.labels > RELEVANT
        np.minimum.at(first, rows.query[relevant], mean[relevant])
        upper = np.minimum(self.position, mean[rows.document])
        return np.asarray(first[rows.query[rows.document]] + 0.5 < upper)

    def outliers(self) -> Check | None:
        """Queries that have far more clicks, or far more relevant documents, than all others.

        statistic = the largest distance from the median, in robust deviations; the limit is that of normal values.
        Labels are computed again without the excess clicks that nearly all documents of such a query have.
        """
        rows = self.rows
        if rows.queries < FEWEST_QUERIES:
            return None
        two = self.model if self.model.grades == 2 else None
        shares = relevant_shares(self.cells, self.model, self.relevance)
        distance = np.maximum(distances(self.cells, two), from_middle(shares, least=1.0))
        limit = farthest(rows.queries)
        far = distance > limit
        evidence = (
            f"{far.sum():,} of {rows.queries:,} queries {'is' if far.sum() == 1 else 'are'} clicked far more than the "
            f"others; the furthest lies {distance.max():.1f} standard deviations from the middle"
        )
        check = Check(Violation.OUTLIERS, float(distance.max()), limit, evidence, 0.0, 0.0)
        return _sized(check, self._without_robots(far), self.labels) if far.any() else check

    def _without_robots(self, far: Ints) -> Floats:
        """Labels without the clicks of robots that click everything: the excess at the lower quartile of documents."""
        rows = self.rows
        n, c = (np.bincount(rows.document, part) for part in (rows.impressions, rows.clicks))
        usual = np.bincount(rows.document, rows.impressions * self.model.rates[0][self.place]) / n
        excess = np.maximum(c / n - usual, 0)
        order = np.lexsort((excess, rows.query))
        first = np.searchsorted(rows.query[order], np.arange(rows.queries))
        quarter = excess[order][first + np.bincount(rows.query) // 4]
        taken = np.where(far, quarter, 0.0)[rows.query][rows.document] * rows.impressions
        cells, entry = self._cells(
            self.places, self.place, rows.impressions, np.maximum(rows.clicks - np.rint(taken), 0)
        )
        return label(self.model, cells).relevance[entry]

    def scattered(self) -> Check | None:
        """At some places, documents of the same grade differ more in appeal than the model says, or less.

            statistic = the most, over places, of twice the log-likelihood that another correlation gains there
        Each cell is looked at as a document of its own. The limit is a chi-squared quantile for as many places. If it
        is exceeded, two models say how far labels change: one of the places found, and one of the others.
        """
        model, appeal = self.model, self.model.effects.appeal
        if model.effects.attention or self.fitted.mixture != "auto":
            return None
        cells, entry = self._cells_apart()
        nodes = Look.first(self.cells, model).nodes(cells, model)
        with_appeal = replace(model.effects, appeal=True)
        alike, apart = (
            Problem(cells, model.knots, nodes, grades=model.grades, effects=effects)
            for effects in (model.effects, with_appeal)
        )
        seen = alike.expect(model.vector, slope=False)
        weight, usual = seen.weight[cells.query] if len(nodes.at) > 1 else seen.weight, totals(alike, seen)
        place = np.empty(len(cells.entry), dtype=np.int64)
        place[entry] = self.place
        gains, (vector, slope) = [], (model.vector[:-2], model.vector[-1]) if appeal else (model.vector, 0.0)
        for correlation in CORRELATIONS:
            there = apart.expect(np.append(vector, [logit(1 - correlation), slope]), slope=False)
            gained = np.log((weight * np.exp(totals(apart, there) - usual)).sum(axis=(1, 2)))
            gains.append(np.bincount(place, cells.documents * gained, len(self.places)))
        most = np.maximum(np.max(gains, axis=0), 0)
        rarely = RARELY if appeal else 2 * RARELY  # a correlation of 0 can only grow
        limit = float(chdtri(1, rarely / len(most)))
        found = 2 * most > limit
        evidence = (
            f"Documents of the same grade do not differ as the model says at {found.sum()} of "
            f"{several(len(most), 'place')}, most clearly at position {self.places.position[most.argmax()]:.3g}"
        )
        check = Check(Violation.SCATTERED, float(2 * most.max()), limit, evidence, 0.0, 0.0)
        if not check.seen:
            return check
        best = CORRELATIONS[int(np.sum(gains, axis=1, where=found).argmax())]
        labels = _fitted_apart(model, cells, place, found, best)
        return _sized(check, labels[entry], label_seen(alike, seen).relevance[entry])

    def _cells_apart(self) -> tuple[Cells, Ints]:
        """Every cell as a document of its own, with the prior of its document."""
        rows, kind = self.rows, self.cells.entry[self.entry[self.rows.document]]
        cells, entry = Cells.of_documents(
            self.places,
            rows.query[rows.document],
            np.arange(len(rows.document)),
            self.place,
            *self.rows_seen,
            queries=rows.queries,
            kind=kind,
        )
        pattern = np.zeros(cells.patterns, dtype=np.int64)
        pattern[cells.entry[entry]] = kind
        return replace(cells, whole=(self.cells, pattern)), entry

    def repeated(self) -> Check | None:
        """All impressions and clicks are multiples of a number, as if every row had that many copies.

        statistic = that number. By chance it would divide all of thirty different clicks in one of 2^30 logs.
        """
        seen = self.histogram
        times = int(np.gcd.reduce(np.concatenate([seen.impressions, seen.clicks])))
        if times == 1 or np.count_nonzero(seen.clicks) < ENOUGH_CLICKED:
            return None
        once = (part // times for part in self.rows_seen)
        cells, entry = self._cells(self.places, self.place, *once)
        model = choose(cells, rng=np.random.default_rng(0))
        evidence = f"All impressions and clicks, at every place and of every document, are multiples of {times}"
        check = Check(Violation.REPEATED, float(times), 1.0, evidence)
        return _sized(check, label(model, cells).relevance[entry], self.labels)

    def grades(self) -> Check | None:
        """If the number of grades was given: would held-out clicks have chosen another?

        statistic = twice the log-likelihood gained on the same queries; the limit is a chi-squared quantile.
        """
        if self.fitted.mixture == "auto":
            return None
        model = choose(self.cells, rng=np.random.default_rng(0))
        given = climb(self.cells, self.model, gain=COMPARED)[0]  # on the same queries
        gain = expected(model, self.cells)[1].value - expected(given, self.cells)[1].value
        parameters = len(model.x) + len(model.numbers) - len(given.x) - len(given.numbers)
        check = Check(
            Violation.GRADES,
            2 * gain,
            float(chdtri(max(parameters, 1), RARELY)),
            f"Held-out clicks prefer {_in_words(model)}; {given.grades} were fitted",
        )
        return _sized(check, label(model, self.cells).relevance[self.entry], self.labels)


def _in_words(model: Model) -> str:
    """The number of grades, and what differs."""
    effects = model.effects
    differ = [
        what
        for what, so in (
            ("queries that differ in attention", effects.attention),
            ("queries that differ in their share of relevant documents", effects.shares),
            ("documents that differ in appeal", effects.appeal),
        )
        if so
    ]
    return f"{model.grades} grades" + (f" and {' and '.join(differ)}" if differ else "")


def _fitted_apart(model: Model, cells: Cells, place: Ints, found: Ints, correlation: float) -> Floats:
    """Labels of entries, each with one cell, if documents have this correlation at the places found.

    How many grades there are, and how queries differ, is what the other places say.
    """
    labels = np.empty(len(cells.entry))
    here, others = np.flatnonzero(found), np.flatnonzero(~found)
    if len(others):
        some = cells.at_places(others)
        model = choose(some, rng=np.random.default_rng(0))
        labels[~found[place]] = label(model, some).relevance
    some = cells.at_places(here)
    nearest = np.abs(np.log(model.places.position) - np.log(some.places.position)[:, None]).argmin(axis=1)
    start = with_effects(with_places(model, some.places, nearest), replace(model.effects, appeal=True))
    start = replace(start, numbers=np.append(start.numbers[:-2], [logit(1 - correlation), 0.0]))
    labels[found[place]] = label(climb(some, start)[0], some).relevance
    return labels


def _sized(check: Check, labels: Floats, before: Floats) -> Check:
    """The check with how far labels change."""
    off = np.abs(labels - before)
    return replace(check, moved=float(np.sqrt(np.mean(off**2))), far=float(np.mean(off > FAR)))


def _times_below(model: Model, split: _Split) -> float:
    """Log of how many times as often documents below a relevant one are clicked, averaged over places and rates."""
    rates, source = np.log(model.rates).mean(axis=0), split.source.tolist()
    beside: dict[int, list[int]] = {}
    for j in np.flatnonzero(~split.under).tolist():
        beside.setdefault(source[j], []).append(j)
    pairs = [(i, j) for i in np.flatnonzero(split.under).tolist() for j in beside.get(source[i], ())]
    return float(np.mean([rates[i] - rates[j] for i, j in pairs])) if pairs else 0.0


def check_rising(groups: tuple[Group, ...], context: tuple[str, ...]) -> Check | None:
    """The lowest and the highest rate both rise from one position to the next, so the next is examined more.

    statistic = max over neighbours of min over both ends of (logit p' - logit p) / sqrt(e^2 + e'^2), e standard errors.
    Labels stay right, because every place has its own rates.
    """
    steps = list(_steps(groups))
    if not steps:
        return None
    statistic, above, below = max(steps, key=lambda step: step[0])
    places = [group.places[0].place.describe(context) for group in (above, below)]
    ends = [
        f"{100 * max(rate, 1e-6):.3g}%"
        for group in (above, below)
        for rate in (group.mixture.rates[0], group.mixture.rates[-1])
    ]
    evidence = (
        f"From {places[0]} to {places[1]}, the lowest click rate goes from {ends[0]} to {ends[2]} and the highest from "
        f"{ends[1]} to {ends[3]}; the smaller rise is {statistic:.1f} standard errors"
    )
    return Check(Violation.RISING, statistic, BEYOND_CHANCE, evidence, 0.0, 0.0)


def _steps(groups: tuple[Group, ...]) -> Iterator[tuple[float, Group, Group]]:
    ordered = sorted(groups, key=lambda group: (group.places[0].place.context, group.places[0].place.position))
    for above, below in itertools.pairwise(ordered):
        errors = [group.mixture.standard_errors for group in (above, below)]
        if above.places[0].place.context == below.places[0].place.context and all(errors):
            rates = [logit([group.mixture.rates[0], group.mixture.rates[-1]]) for group in (above, below)]
            yield float(((rates[1] - rates[0]) / np.hypot(*np.array(errors))).min()), above, below
