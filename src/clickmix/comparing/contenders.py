"""Contenders: every correction that a log allows, fitted to all of it and to three quarters.   counts -> contenders

A correction that knows only positions gets counts without context columns. A correction that the log does not allow,
such as a model of result lists for a log without sessions, is left out, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clickmix.corrections.click_rates import PlacedCells, PredictsClicks, placed_cells, predicted_rates, without_context
from clickmix.corrections.correction import CORRECTIONS, Correction, needs_lists
from clickmix.counts.counts import Counts
from clickmix.errors import ClickmixError
from clickmix.groups.sample import Quarters, deal, share_dealt
from clickmix.judging.held_out import HELD_OUT, TRAINING, Prediction, held_out_bits
from clickmix.log.layout import Lists

ALWAYS = ("none", "ctr-then-rank", "coec", "coec-smoothed")  # what a search engineer would try first
FROM_CLICKS = ("mixture",)  # it takes features too, but is compared without them
MOST_CELLS, MOST_LIST_CELLS, MOST_IMPRESSIONS = 400_000, 2_000_000, 2_000_000  # limits of the dealt part
APART = (
    "held-out clicks of result lists and of contexts are comparable only where sessions are dealt. Use the raw log as "
    "Parquet, or leave out the context columns."
)


NO_OPTIONS = " compare passes no such options: make the labels with debias, and compare them with --labels."


@dataclass(frozen=True)
class NotCompared:
    """A correction that was not compared, and why."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class Contender:
    """A fitted correction: its labels as a table of the engine, the seconds to fit and label, its held-out prediction.

    `counts` are those it was fitted to. `prediction` is None if the correction predicts no clicks.
    """

    name: str
    help: str
    fit: object
    counts: Counts
    table: str
    seconds: float
    prediction: Prediction | None


@dataclass(frozen=True, eq=False)
class DealtLog:
    """The counts of a log, the cells of three quarters of it, and the cells of the rest."""

    counts: Counts
    training: Counts
    seen: PlacedCells
    asked: PlacedCells
    dealt: str
    share: float

    @classmethod
    def of(cls, counts: Counts, quarters: Quarters) -> DealtLog:
        """Read both parts of a log that was dealt."""
        training, test = quarters.counts(*TRAINING), quarters.counts(HELD_OUT)
        seen, asked = placed_cells(training, test)
        return cls(counts, training, seen, asked, quarters.dealt, quarters.share)


@dataclass
class Field:
    """Corrections that take part, and those that were left out."""

    contenders: list[Contender] = field(default_factory=list)
    left_out: list[NotCompared] = field(default_factory=list)


def allowed(chosen: Sequence[str], features: Any, left_out: list[NotCompared]) -> Iterator[tuple[str, str, Correction]]:
    """Every chosen correction that needs nothing but the log, and the features if they are given."""
    for member in CORRECTIONS:
        if chosen and member.name not in (*chosen, *ALWAYS):
            continue
        takes = {option.name for option in member.options}
        needed = "features" in takes and member.name not in FROM_CLICKS
        options = {"features": features} if features is not None and needed else {}
        try:
            yield member.name, member.help, CORRECTIONS.make(member.name, **options)
        except ClickmixError as error:
            left_out.append(NotCompared(member.name, f"{error}{'' if needed else NO_OPTIONS}"))


def run_all(
    counted: Callable[[Any], Counts], *, chosen: Sequence[str], features: Any, seed: int, stage: Callable[[str], None]
) -> tuple[Field, DealtLog]:
    """Fit every correction that the log allows; `counted` gives the counts, with result lists as asked for."""
    found = Field()
    members = list(allowed(chosen, features, found.left_out))
    stage("counting result lists")
    known: dict[Lists, Counts | ClickmixError] = {False: counted(False)}
    for lists in (needs_lists(correction) for *_, correction in members):
        if lists not in known:
            try:
                known[lists] = counted(lists)
            except ClickmixError as error:
                known[lists] = error
    stage("dealing")
    parts = _dealt({lists: each for lists, each in known.items() if isinstance(each, Counts)}, seed=seed)
    for name, help, correction in members:
        lists = needs_lists(correction)
        if lists not in parts:
            reason = known[lists]
            found.left_out.append(NotCompared(name, str(reason) if isinstance(reason, ClickmixError) else APART))
            continue
        stage(f"fitting {name}")
        try:
            found.contenders.append(_contend(name, help, correction, parts[lists]))
        except ClickmixError as error:
            found.left_out.append(NotCompared(name, str(error)))
    return found, parts[False]


def _dealt(known: Mapping[Lists, Counts], *, seed: int) -> dict[Lists, DealtLog]:
    """The parts of every way to count. All hold out the same clicks, else predictions could not be compared."""
    most = {lists: MOST_LIST_CELLS if lists else MOST_CELLS for lists in known}
    share = min(share_dealt(each, most_cells=most[lists]) for lists, each in known.items())
    quarters = {
        lists: deal(each, most_cells=most[lists], most_impressions=MOST_IMPRESSIONS, share=share, seed=seed)
        for lists, each in known.items()
    }
    by_list = next((each for lists, each in quarters.items() if lists), None)
    if by_list is not None and quarters[False].dealt == "impressions":  # dealt at random, so one deal serves all
        if known[False].context:
            return {False: DealtLog.of(known[False], quarters[False])}
        quarters[False] = by_list.without_lists
    return {lists: DealtLog.of(each, quarters[lists]) for lists, each in known.items()}


def _contend(name: str, help: str, correction: Correction, parts: DealtLog) -> Contender:
    """Fit to the whole log and label it, then fit to three quarters and predict the rest."""
    begun = time.perf_counter()
    counts = parts.counts
    try:
        fit = correction.fit(counts)
    except ClickmixError:
        if not counts.context:
            raise
        counts = without_context(counts)
        begun = time.perf_counter()
        fit = correction.fit(counts)
    table = counts.engine.keep(fit.label(counts).sql)
    seconds = time.perf_counter() - begun
    prediction = None
    if isinstance(fit, PredictsClicks):
        training = parts.training if counts.context else without_context(parts.training)
        rates = predicted_rates(correction.fit(training), parts.seen, parts.asked)
        prediction = None if rates is None else held_out_bits(name, rates, parts.asked)
    return Contender(name, help, fit, counts, table, seconds, prediction)
