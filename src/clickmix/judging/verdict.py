"""A verdict on a log: trustworthy, usable, needs more data, or do not use.   MixtureFit -> LogVerdict

A violated assumption counts by its effect on labels. If it would move them by less than 0.02, it is a note; if by the
target error or more, labels are useless; in between, it is a caveat.

mixtures/impressions_needed.py says how many times more data labels need. If relevance is so rare that the prior alone
has a small error, clicks must also remove half of the uncertainty about it. If positions were joined because each has
too few documents, labels reflect position as well as relevance, and only more queries help.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path

from clickmix.corrections.check import PASSED, Check, Judgement, Violation
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts, check_counts
from clickmix.drawn import Drawn
from clickmix.errors import InputError, SettingError
from clickmix.groups.places import SMALLEST_GROUP
from clickmix.judging.checks import checked
from clickmix.judging.held_out import HeldOutEvidence, held_out_evidence, held_out_sentences
from clickmix.mixtures.impressions_needed import TARGET, check_target, prior_squared_error, times_more_data
from clickmix.mixtures.kinds.kind import MIXTURES, WholeLogKind
from clickmix.mixtures.mixture import Verdict

LEAST_REMOVED = 0.5  # share of the uncertainty about relevance that clicks must remove
MOST_JOINED = 0.1  # largest share of documents at places too small to be fitted
MOST_TIMES = 1_000.0  # a larger factor is written as "far more data"
OF_CLICKS = "This verdict and its numbers are about clicks alone. Judgments changed these labels, too."
NEEDS_QUERIES = (Violation.CASCADE, Violation.OUTLIERS)  # checks.py says how many


@dataclass(frozen=True, repr=False)
class LogVerdict(Drawn):
    """A judgement with its evidence, one sentence each.

    `times` is how many times more data the labels need: None if they need none or it is unknown, infinite if no
    realistic amount would do. `found` are the violations that matter; `looked` says whether assumptions were checked.
    `held_out` is evidence from held-out clicks, if it was asked for. `of_clicks` says whether judgments change the
    labels, which the judgement leaves out.

    >>> from clickmix import Counts, MixtureCorrection
    >>> counts = Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> judge(MixtureCorrection().fit(counts), counts).judgement.machine_name
    'trustworthy'
    """

    judgement: Judgement
    times: float | None
    found: tuple[Check, ...]
    sentences: tuple[str, ...]
    looked: bool = True
    held_out: HeldOutEvidence | None = None
    of_clicks: bool = False

    def __repr__(self) -> str:
        return "\n".join([f"LogVerdict: {self}", *self.sentences])

    def __str__(self) -> str:
        """The judgement in a few words, such as `needs 3.4 times more data`."""
        if self.judgement is Judgement.TRUSTWORTHY and not self.looked:
            return f"{self.judgement} if the log meets the assumptions"
        if self.judgement is not Judgement.NEEDS_MORE:
            return str(self.judgement)
        if self.times is None:
            return "needs more data"
        return "needs far more data" if self.times > MOST_TIMES else f"needs {_rounded_up(self.times)} times more data"


def judge(
    fitted: MixtureFit,
    counts: Counts | None = None,
    *,
    target: float = TARGET,
    held_out: HeldOutEvidence | bool | None = False,
) -> LogVerdict:
    """Whether to trust the labels of a fitted log; given the log's `counts`, check its assumptions first.

    Labels are trustworthy if their expected error is at most `target`, clicks removed at least half of the uncertainty,
    places have enough documents to be fitted, and no violation changes labels much. With `held_out=True` the verdict
    also has evidence from parts of the log, which decides nothing.

    >>> from clickmix import Counts, MixtureCorrection
    >>> counts = Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> str(judge(MixtureCorrection().fit(counts), counts))
    'trustworthy'
    """
    _check_fit(fitted)
    if counts is not None:
        check_counts(counts, by="judge")
    check_target(target)
    if held_out is True:
        if counts is None:
            raise SettingError("held_out: evidence from parts of a log needs the log. Pass its counts, too.")
        held_out = held_out_evidence(fitted, counts)
    fitted = fitted if counts is None else checked(fitted, counts)
    found = tuple(check for check in fitted.checks if check.found)
    enough = _joined(fitted) <= MOST_JOINED and fitted.error**2 <= _goal(fitted, target)
    times, on_error = _needed(fitted, target, enough=enough, in_doubt=bool(found))
    worst = max((target if check.moved is None else check.moved for check in found), default=0.0)
    removed = 1 - fitted.error**2 / prior_squared_error(fitted.groups)
    if worst >= target or (times == math.inf and removed < LEAST_REMOVED):
        judgement = Judgement.DO_NOT_USE
    elif times == math.inf:
        judgement = Judgement.USABLE
    elif not enough:
        judgement = Judgement.NEEDS_MORE
    else:
        judgement = Judgement.USABLE if found else Judgement.TRUSTWORTHY
    evidence = held_out or None
    on_clicks = held_out_sentences(evidence) if evidence else ()
    on_found = list(map(_on_violation, found))
    why = (*on_found, *on_error) if worst >= target else (*on_error, *on_found)  # what decided comes first
    judged = fitted.judged is not None and fitted.judged.calibration.used != "nothing"
    sentences = (*([OF_CLICKS] if judged else []), *why, *_checks_made(fitted), *on_clicks)
    return LogVerdict(
        judgement, times, found, sentences, looked=bool(fitted.checks), held_out=evidence, of_clicks=judged
    )


def _check_fit(fitted: object) -> None:
    """Refuse a path to a model, and fits that have no verdict."""
    if not isinstance(fitted, MixtureFit):
        path = repr(str(fitted)) if isinstance(fitted, (str, Path)) else ""
        advice = f"MixtureFit.read({path})" if path else "MixtureCorrection().fit(counts)"
        raise InputError(
            f"judge takes the fit of a mixture, not {path or f'a {type(fitted).__name__}'}. Use clickmix.{advice}."
        )


def _on_violation(check: Check) -> str:
    """What was seen, its effect on labels, and what to do about it."""
    does = ""
    if check.moved is not None and check.far is not None:
        far = "hardly any" if check.far < 0.005 else f"{check.far:.0%}"
        moved = "less than 0.001" if check.moved < 0.0005 else f"{'' if check.found else 'only '}{check.moved:.3f}"
        does = f" A model that allows for this would change labels by {moved} (RMSE), {far} by more than 0.1."
    return f"{'Caveat' if check.found else 'Note'}: {check.said}. {check.evidence}.{does} {check.advice}."


def _needed(fitted: MixtureFit, target: float, *, enough: bool, in_doubt: bool) -> tuple[float | None, list[str]]:
    """How many times more data labels need, None if they need none or it is unknown; and why."""
    if not any(group.mixture.informative for group in fitted.groups):
        nothing = "Clicks say nothing about relevance at any position, so every label is just its prior."
        return math.inf, [nothing]
    if _joined(fitted) > MOST_JOINED:
        queries = _times_more_queries(fitted)
        return queries, [_on_joined(_joined(fitted), queries)]
    goal = _goal(fitted, target)
    times = None if enough else times_more_data(fitted.groups, today=fitted.error**2, goal=goal)
    return times, _on_error(fitted, times, target, in_doubt=in_doubt)


def _joined(fitted: MixtureFit) -> float:
    """The share of documents at places with too few of them."""
    places = [(group.verdict(place), place.documents) for group in fitted.groups for place in group.places]
    small = sum(documents for verdict, documents in places if verdict is Verdict.TOO_FEW_DOCUMENTS)
    return small / sum(documents for _, documents in places)


def _times_more_queries(fitted: MixtureFit) -> float:
    """How many times as many queries it takes, at least, until all but the smallest places have enough documents."""
    sizes = sorted(place.documents for group in fitted.groups for place in group.places)
    smaller = itertools.accumulate(sizes)
    first = next(size for size, sum_ in zip(sizes, smaller, strict=True) if sum_ > MOST_JOINED * sum(sizes))
    return SMALLEST_GROUP / first


def _on_joined(joined: float, times: float) -> str:
    return (
        f"{joined:.0%} of documents are at positions with fewer than {SMALLEST_GROUP} documents. These positions were "
        "joined with their neighbours, so their labels reflect position as well as relevance. You need at least "
        f"{_rounded_up(times)} times as many queries; more impressions of the same documents do not help."
    )


def _goal(fitted: MixtureFit, target: float) -> float:
    """The squared error that labels may have."""
    return min(target**2, (1 - LEAST_REMOVED) * prior_squared_error(fitted.groups))


def _on_error(fitted: MixtureFit, times: float | None, target: float, *, in_doubt: bool) -> list[str]:
    doubt = " if the assumptions hold" if in_doubt else ""
    expected = f"Expected label error (RMSE): {fitted.error:.3f}{doubt}"
    removed = max(0.0, 1 - fitted.error**2 / prior_squared_error(fitted.groups))
    if fitted.error <= target and removed >= LEAST_REMOVED:
        return [f"{expected}, within the target of {target:g}."]
    if fitted.error <= target:
        more = (
            "" if times in (None, math.inf) else f"; {_rounded_up(times)} times as many impressions would remove half"
        )
        rare = f"But few documents are relevant, and clicks remove only {removed:.0%} of the uncertainty{more}"
        return [f"{expected}, within the target of {target:g}. {rare}."]
    if times is None:
        return [f"{expected}, above the target of {target:g}. How much more data would help is unknown."]
    goal = f"{math.sqrt(_goal(fitted, target)):.2g}"
    if times == math.inf:
        appeal = fitted.model is not None and fitted.model.appeal
        why = (
            " Equally relevant documents differ in appeal, so more clicks would not show which are relevant."
            if appeal
            else ""
        )
        return [
            f"{expected}, above the target of {target:g}. Clicks remove {removed:.0%} of the uncertainty about "
            f"relevance, and no realistic number of impressions would bring the error down to {goal}.{why}"
        ]
    many = f"more than {MOST_TIMES:,.0f}" if times > MOST_TIMES else _rounded_up(times)
    return [
        f"{expected}, above the target of {target:g}. It takes {many} times as many impressions of each document to "
        f"bring it down to {goal}."
    ]


def _checks_made(fitted: MixtureFit) -> list[str]:
    notes = [_on_violation(check) for check in fitted.checks if check.seen and not check.found]
    passed = [PASSED[check.violation] for check in fitted.checks if not check.seen]
    if fitted.examination != "pbm":
        return ["The assumptions are not checked when documents are grouped by what is above them."]
    if fitted.mixture in MIXTURES.names() and not isinstance(MIXTURES.make(fitted.mixture), WholeLogKind):
        return [f"The assumptions are not checked for a {fitted.mixture} mixture."]
    if not fitted.checks:
        return ["The assumptions were not checked when this model was fitted."]
    made = {check.violation for check in fitted.checks}
    left_out = [f"whether {each}" for each in NEEDS_QUERIES if each not in made and fitted.model is not None]
    return [
        *notes,
        *([f"Checks passed: {'; '.join(passed)}."] if passed else []),
        *([f"Not checked, because there are too few queries or positions: {'; '.join(left_out)}."] if left_out else []),
    ]


def _rounded_up(times: float) -> str:
    """Two digits, always rounded up.

    >>> _rounded_up(3.41), _rounded_up(1232.0)
    ('3.5', '1,300')
    """
    scale = 10.0 ** (math.floor(math.log10(times)) - 1)
    rounded = math.ceil(times / scale - 1e-9) * scale
    return f"{rounded:.1f}" if rounded < 10 else f"{rounded:,.0f}"
