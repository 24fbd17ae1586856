"""The walk on one page: count a log, fit a correction, label, judge. The command and Python both use it.

log -> counts -> fit -> labels
                  fit -> verdict
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, overload

from clickmix.corrections.correction import CORRECTIONS, Correction, Fitted, needs_lists
from clickmix.counts import MOST_CONTEXTS
from clickmix.counts.count import BadRows, count
from clickmix.counts.counts import Counts
from clickmix.errors import SettingError
from clickmix.log.files import are_paths
from clickmix.log.layout import LAYOUTS
from clickmix.log.open import split_options
from clickmix.registry import check_known
from clickmix.types import AnyFrame, CorrectionName, Frame, LayoutName, Paths, Progress, Spelling

if TYPE_CHECKING:
    from clickmix.corrections.correction import Labels
    from clickmix.judging.held_out import HeldOutEvidence
    from clickmix.log.layout import Layout
    from clickmix.report.explain import Explanation


COUNTING = ("context", "max_contexts", "columns", "bad_rows", "normalise", "memory", "engine")


class Watch(Protocol):
    """Called with the name of each stage; gives a function to call with the share done, or None."""

    def __call__(self, stage: str, /) -> AbstractContextManager[Progress | None]: ...


def unwatched(stage: str) -> AbstractContextManager[Progress | None]:
    """Report no progress."""
    return nullcontext()


@dataclass(frozen=True)
class Debiased:
    """The results for a log: its counts, the fit, and the labels, which are computed when first used.

    `held_out` is the evidence from parts of the log, if it was judged.
    """

    counts: Counts
    fit: Fitted
    labels: Labels
    held_out: HeldOutEvidence | None = None


@overload
def debias(
    log: Paths | Counts,
    *,
    correction: CorrectionName | str | Correction = ...,
    format: LayoutName | str | Layout = ...,
    context: str | Sequence[str] = ...,
    max_contexts: int = ...,
    columns: Mapping[str, str] | None = ...,
    bad_rows: BadRows = ...,
    normalise: str | Sequence[Spelling] = ...,
    memory: str | None = ...,
    engine: object = ...,
    **options: Any,
) -> Labels: ...


@overload
def debias(
    log: AnyFrame,
    *,
    correction: CorrectionName | str | Correction = ...,
    format: LayoutName | str | Layout = ...,
    context: str | Sequence[str] = ...,
    max_contexts: int = ...,
    columns: Mapping[str, str] | None = ...,
    bad_rows: BadRows = ...,
    normalise: str | Sequence[Spelling] = ...,
    memory: str | None = ...,
    engine: object = ...,
    **options: Any,
) -> AnyFrame: ...


def debias(
    log: Any,
    *,
    correction: CorrectionName | str | Correction = "mixture",
    format: LayoutName | str | Layout = "auto",
    context: str | Sequence[str] = (),
    max_contexts: int = MOST_CONTEXTS,
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRows = "fail",
    normalise: str | Sequence[Spelling] = (),
    memory: str | None = None,
    engine: object = None,
    **options: Any,
) -> Any:
    """Turn a click log into relevance labels: `Labels` for paths, tables and counts; a frame for a frame.

    `correction` is a name with its `options` (`mixture="binomial"`, `parameters="ab.json"`, ...), or any object with
    `fit(counts)`. `format` is the layout of the log, which has its own options (`position_base=0`, ...).

    >>> from clickmix import Counts
    >>> counts = Counts.from_arrays(["q"] * 2, ["a", "b"], [1, 2], [100, 100], [60, 2])
    >>> debias(counts, correction="none").relevance.tolist()
    [0.6, 0.02]
    """
    check_known(options, debias, LAYOUTS, CORRECTIONS)
    done = _run(
        log,
        correction=correction,
        format=format,
        context=context,
        max_contexts=max_contexts,
        columns=columns,
        bad_rows=bad_rows,
        normalise=normalise,
        memory=memory,
        engine=engine,
        **options,
    )
    return done.labels if isinstance(log, Counts) or are_paths(log) else done.labels.like(log)


def _run(
    log: Any,
    *,
    correction: CorrectionName | str | Correction = "mixture",
    format: LayoutName | str | Layout = "auto",
    fit: Fitted | None = None,
    **options: Any,
) -> Debiased:
    """Count unless that is done, fit unless a fit is given, and label."""
    counting = {name: options.pop(name) for name in COUNTING if name in options}
    layout, options = split_options(format, options)
    chosen = choose_correction(correction, **options)
    if isinstance(log, Counts):
        _check_counted(**counting)
        return fit_and_label(log, chosen, fit=fit)
    counts = count(log, format=layout, lists=needs_lists(chosen), **counting)
    return fit_and_label(counts, chosen, fit=fit)


def explain(
    log: Paths | Frame | Counts, query: object, doc: object = None, *, fit: Fitted | None = None, **options: Any
) -> Explanation:
    """Explain the labels of a query, and of one of its documents: what was seen, and what is typical there.

    `log` is a log, counts, or a labels file, which has labels but no evidence. Give a `fit` of the log if you have one;
    otherwise this makes one, with the `options` of `debias`.

    >>> from clickmix import Counts
    >>> counts = Counts.from_arrays(["hats"] * 2, ["a", "b"], [1, 2], [100, 100], [60, 2])
    >>> explain(counts, "hats", "b", correction="none").sentences
    ("Document 'b': label 0.02.", 'Shown 100 times, at position 2; clicked 2 times.')
    """
    from clickmix.engines.engine import choose_engine  # here, because debias needs none of these
    from clickmix.judging.changes import find_labels
    from clickmix.report.explain import explain_labels, explain_query

    check_known(options, debias, LAYOUTS, CORRECTIONS)
    if not isinstance(log, Counts) and are_paths(log):
        options["engine"] = choose_engine(options.get("engine"), log=log, memory=options.get("memory"))
        is_log = options.get("columns") or options.get("format", "auto") != "auto"
        if not is_log and (labels := find_labels(log, options["engine"])):
            normalise = options.get("normalise", ())
            return explain_labels(labels, options["engine"], query, doc, normalise=normalise)
    done = _run(log, fit=fit, **options)
    return explain_query(done.counts, done.fit, query, doc)


def fit_and_label(
    counts: Counts,
    correction: Correction,
    *,
    fit: Fitted | None = None,
    judging: bool = False,
    watch: Watch = unwatched,
) -> Debiased:
    """Fit a correction to counts, unless there is a fit, and label.

    With `judging`, also check the assumptions, and take evidence from parts of the log.
    """
    if fit is None:
        with watch("fitting") as progress:
            fit = correction.fit(counts, progress=progress)
    held_out = None
    if judging:
        from clickmix.judging.checks import checked  # here, because labels alone need no checks
        from clickmix.judging.held_out import held_out_evidence

        with watch("checking"):
            fit, held_out = checked(fit, counts), held_out_evidence(fit, counts)
    return Debiased(counts, fit, fit.label(counts), held_out)


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
        if value and (name, value) not in (("bad_rows", "fail"), ("max_contexts", MOST_CONTEXTS)):
            raise SettingError(f"{name}: this log is already counted. Pass {name} to clickmix.count instead.")
