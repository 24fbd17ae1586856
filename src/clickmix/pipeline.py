"""The walk on one page: count a log, fit a correction, label, judge. The command and Python both use it.

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
    """Called with the name of each stage; gives a function that is called with the share done, or None."""

    def __call__(self, stage: str, /) -> AbstractContextManager[Progress | None]: ...


def unwatched(stage: str) -> AbstractContextManager[Progress | None]:
    """Report no progress."""
    return nullcontext()


@dataclass(frozen=True)
class Debiased:
    """The results for a log: its counts, the fit, and the labels, which are computed when first used."""

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
    """Turn a click log into relevance labels: `Labels` for paths, tables and counts; a frame for a frame.

    `correction` is a name with its `options` (`mixture="binomial"`, `parameters="ab.json"`, ...), or any object with
    `fit(counts)`. `format` is the layout of the log, which has options of its own (`position_base=0`, ...).
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
    """Fit a correction to counts and label them; with `judging`, also check the assumptions on the log."""
    with watch("fitting") as progress:
        fit = correction.fit(counts, progress=progress)
    if judging:
        from clickmix.judging.checks import checked  # late: labels alone need no checks

        fit = checked(fit, counts)
    return Debiased(counts, fit, fit.label(counts))


def choose_correction(correction: str | Correction, **options: Any) -> Correction:
    """Make the correction of that name with its options; pass an object through."""
    if isinstance(correction, str):
        return CORRECTIONS.make(correction, **options)
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise SettingError(f"{given[0]}: the correction is an object with its own settings. Leave {given[0]} out.")
    return correction


def _check_counted(**settings: Any) -> None:
    """Refuse settings that only matter for counting."""
    for name, value in settings.items():
        if value and (name, value) != ("bad_rows", "fail"):
            raise SettingError(f"{name}: this log is already counted. Pass {name} to clickmix.count instead.")
