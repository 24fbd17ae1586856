"""The walk on one page: read and count a log, fit a correction, label, judge. The command and Python both call it.

log -> counts -> fit -> labels
                  fit -> verdict
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from clickmix.corrections.correction import CORRECTIONS, Correction, Fitted, needs_lists
from clickmix.counts.contexts import MOST_CONTEXTS
from clickmix.counts.counts import BadRows, Counts, count
from clickmix.errors import SettingError
from clickmix.log.open import split_options
from clickmix.log.paths import are_paths
from clickmix.types import Progress

if TYPE_CHECKING:
    from clickmix.corrections.labels import Labels
    from clickmix.log.layout import Layout


class Watch(Protocol):
    """Whoever wants to know which stage is at work; what it gives is told the share that is done."""

    def __call__(self, stage: str, /) -> AbstractContextManager[Progress | None]: ...


def unwatched(stage: str) -> AbstractContextManager[Progress | None]:
    """Nobody looks."""
    return nullcontext()


@dataclass(frozen=True)
class Debiased:
    """What became of a log: its counts, what was fitted to them, and the labels, which are computed when asked for."""

    counts: Counts
    fit: Fitted
    labels: Labels


def debias(
    log: Any,
    *,
    correction: str | Correction = "mixture",
    format: str | Layout = "auto",
    context: str | Sequence[str] = (),
    max_contexts: int = MOST_CONTEXTS,
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRows = "fail",
    normalise: str | Sequence[str] = (),
    memory: str | None = None,
    engine: object = None,
    **options: Any,
) -> Any:
    """Relevance labels for a click log: `Labels` for paths, tables and counts, for a frame the same kind of frame.

    `correction` is a name, with its own `options` (`mixture="binomial"`, `parameters="ab.json"`, ...), or any object
    with `fit(counts)`. `format` is the layout of the log; it has options of its own too (`position_base=0`, ...).
    """
    layout, options = split_options(format, options)
    chosen = choose_correction(correction, **options)
    if isinstance(log, Counts):
        _check_counted(
            context=context, columns=columns, bad_rows=bad_rows, memory=memory, engine=engine, normalise=normalise
        )
        return fit_and_label(log, chosen).labels
    counts = count(
        log,
        format=layout,
        columns=columns,
        context=context,
        max_contexts=max_contexts,
        bad_rows=bad_rows,
        normalise=normalise,
        memory=memory,
        engine=engine,
        lists=needs_lists(chosen),
    )
    labels = fit_and_label(counts, chosen).labels
    return labels if are_paths(log) else labels.like(log)


def fit_and_label(
    counts: Counts, correction: Correction, *, judging: bool = False, watch: Watch = unwatched
) -> Debiased:
    """Fit a correction to counts and label them; with `judging`, also look whether the log keeps its assumptions."""
    with watch("fitting") as progress:
        fit = correction.fit(counts, progress=progress)
    if judging:
        from clickmix.judging.checks import checked  # late: who wants labels alone needs no checks

        fit = checked(fit, counts)
    return Debiased(counts, fit, fit.label(counts))


def choose_correction(correction: str | Correction, **options: Any) -> Correction:
    """The correction of that name with its options; a correction is taken as it is."""
    if isinstance(correction, str):
        return CORRECTIONS.make(correction, **options)
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise SettingError(f"{given[0]}: the correction is an object that has its settings. Leave {given[0]} out.")
    return correction


def _check_counted(**settings: Any) -> None:
    """Settings of counting say nothing about a log that is counted."""
    for name, value in settings.items():
        if value and (name, value) != ("bad_rows", "fail"):
            raise SettingError(f"{name}: these are counts, made without it. Give it to clickmix.count.")
