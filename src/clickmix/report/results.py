"""Results: what people want to know about a fit, as values and rows.   MixtureFit, verdict -> terminal, HTML, JSON

Only this module and `mixture_figures` read fits, verdicts and changes of labels for reports.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scipy.special import expit, logit

from clickmix.corrections.check import Check, Judgement, Violation
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.errors import several
from clickmix.judging.changes import Moved
from clickmix.judging.held_out import HeldOutEvidence
from clickmix.judging.verdict import LogVerdict, judge
from clickmix.mixtures.impressions_needed import TARGET, impressions_for
from clickmix.mixtures.log_model import LogModel
from clickmix.mixtures.mixture import Group, Mixture, Verdict
from clickmix.report.featured import feature_sentences, feature_values
from clickmix.report.held_out import HeldOutResults, held_out_results
from clickmix.report.judgments import judgment_sentences, judgment_values
from clickmix.report.rows import Column, Estimate, Rows, Value, json_value, percent

Tone = Literal["good", "note", "bad"]
MEANING: Mapping[Verdict, str] = {
    Verdict.SEPARATED: "clicks tell relevant documents from others",
    Verdict.OVERLAPPING: "clicks there leave labels unsure, as their intervals show",
    Verdict.ONE_RATE: "one click rate explains everything; clicks say nothing, labels are the neighbours' prior",
    Verdict.NO_CLICKS: "nobody clicked; labels are the neighbours' prior",
    Verdict.ALL_CLICKED: "everything was clicked; labels are the neighbours' prior",
    Verdict.TOO_FEW_DOCUMENTS: "joined to a neighbouring position before fitting",
    Verdict.NOT_CONVERGED: "the fit stopped while it was still improving; do not rely on it",
}
# By the name of a log's verdict: its colour, and what to do next.
NEXT: Mapping[str, tuple[Tone, str]] = {
    "trustworthy": ("good", "Train a ranker on these labels. Start with the queries that would gain most."),
    "usable": ("note", "Use these labels, and read the checks first: they say where to be careful."),
    "needs more data": (
        "note",
        "Collect more clicks before you train on these labels, or use only documents with a narrow interval.",
    ),
    "do not use": (
        "bad",
        "Do not train on these labels. If a check failed, follow its advice. Otherwise get human judgments for some "
        "queries, and run clickmix compare to see which labels agree with them.",
    ),
}
NEXT_IF_JUDGED = (
    "Measure these labels before you train on them: clickmix compare LOG --judgments FILE labels every judged query "
    "with the judgments of others."
)
OF_THE_LOG = "The verdict on the log is about all labels together, each from all places of its document."
ABOVE = (
    "above: the labels of the documents above, from the top, in quarters (0 to 4). rare: patterns too rare to fit "
    "alone, joined with others of about the same click rate."
)
NEEDED = f"Impressions that a document needs there to bring the error of its label down to {TARGET:g}."
MARGIN = "± half a 95% interval; unknown if the log leaves it open"
PLACES = (
    Column("place", "text", help="A position, in its context where there is one."),
    Column("documents", "count", help="Documents seen there.", rank=6),
    Column("impressions", "count", help="How often a document was shown there.", rank=3),
    Column("clicks", "count", help="How often a document was clicked there.", rank=7),
    Column("lowest_rate", "rate", help=f"Click rate of documents that are not relevant, {MARGIN}.", rank=1),
    Column("highest_rate", "rate", help=f"Click rate of the most relevant documents, {MARGIN}.", rank=1),
    Column("prior", "share", help="Mean relevance of the documents there, before any click.", rank=8),
    Column("separation", "share", help="Share of the uncertainty about relevance that clicks remove.", rank=2),
    Column("error", "number", help="Expected error of a label from clicks there (RMSE).", rank=5),
    Column("needed", "count", help=NEEDED, rank=4),
    Column("group", "count", help="Places with the same number were fitted together.", rank=9),
    Column("verdict", "text", help="What the fit can say there."),
)
CHECKS = (
    Column("outcome", "outcome", help="pass, note (labels would hardly change) or fail."),
    Column("violation", "text", title="looked for"),
    Column("moved", "number", title="labels change by", help="Root mean square, if it were modelled.", rank=1),
    Column("far", "share", title="by more than 0.1", help="Share of labels that would change that much.", rank=2),
    Column("statistic", "tenths", help="How strong the evidence is.", rank=4),
    Column("limit", "tenths", help="Logs that meet the assumptions stay below it.", rank=5),
    Column("evidence", "sentence", title="what was seen", rank=3),
    Column("advice", "sentence", title="what to do", rank=6),
)
FURTHEST = (
    Column("query_id", "text", title="query"),
    Column("doc_id", "text", title="document"),
    Column("before", "label", help="The label in the previous file."),
    Column("now", "label", help="The label in this run."),
)


@dataclass(frozen=True)
class VerdictResult:
    """The verdict on a log: its name for machines, a sentence, its colour, what to do next, and the evidence."""

    name: str
    sentence: str
    tone: Tone
    next: str
    times_more_data: float | None
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class FitResults:
    """A fit as values: the verdict, a row per place, a row per check, and sentences on how it was fitted.

    The notes of `places` say what their verdicts mean.
    """

    verdict: VerdictResult
    error: float
    separation: float
    grades: int
    places: Rows
    checks: Rows
    not_checked: tuple[str, ...]
    notes: tuple[str, ...]
    held_out: HeldOutResults | None = None
    judgments: Mapping[str, Any] | None = None
    features: Mapping[str, Any] | None = None

    def json(self) -> dict[str, Any]:
        """Raw values for `--json`: verdict, errors, places, checks, held-out evidence, judgments, features."""
        return {
            **({"judgments": self.judgments} if self.judgments else {}),
            **({"features": self.features} if self.features else {}),
            "verdict": self.verdict.name,
            "verdict_sentence": self.verdict.sentence,
            "times_more_data": json_value(self.verdict.times_more_data),
            "evidence": list(self.verdict.evidence),
            "expected_error": self.error,
            "separation": self.separation,
            "grades": self.grades,
            "places": self.places.json(),
            "checks": self.checks.json(),
            "not_checked": list(self.not_checked),
            **({"held_out": self.held_out.json()} if self.held_out else {}),
        }


@dataclass(frozen=True)
class ChangeResults:
    """How labels changed since the previous file: documents in both, new, gone, far moved, and the furthest ones."""

    both: int
    new: int
    gone: int
    far: int
    mean_move: float
    furthest: Rows

    def json(self) -> dict[str, Any]:
        """Raw values for `--json`."""
        names = ("both", "new", "gone", "far", "mean_move")
        return {**{name: getattr(self, name) for name in names}, "furthest": self.furthest.json()}


def mixture_of(fitted: Any) -> MixtureFit | None:
    """The fit if it is a mixture's, else None: only mixtures have places and a verdict."""
    return fitted if isinstance(fitted, MixtureFit) else None


def fit_results(fitted: MixtureFit, held_out: HeldOutEvidence | None = None) -> FitResults:
    """Turn a fit, and evidence from parts of its log, into plain values for terminal, HTML and JSON.

    >>> import clickmix as cm
    >>> counts = cm.Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> results = fit_results(cm.MixtureCorrection().fit(counts))
    >>> results.verdict.name, [row["place"] for row in results.places.json()]
    ('trustworthy', ['position 1'])
    """
    return FitResults(
        verdict=verdict_result(judge(fitted, held_out=held_out)),
        error=fitted.error,
        separation=fitted.separation,
        grades=fitted.grades,
        places=Rows(PLACES, tuple(_place_rows(fitted)), notes=_place_verdicts(fitted)),
        checks=Rows(CHECKS, tuple(map(_check_row, fitted.checks)), cards=True),
        not_checked=tuple(map(str, _not_checked(fitted))),
        notes=tuple(fit_sentences(fitted)),
        held_out=held_out_results(held_out) if held_out else None,
        judgments=judgment_values(fitted.judged) if fitted.judged else None,
        features=feature_values(fitted.featured) if fitted.featured else None,
    )


def change_results(moved: Moved) -> ChangeResults:
    """Turn a comparison with previous labels into plain values."""
    furthest = Rows(FURTHEST, moved.furthest, "Labels that moved furthest")
    return ChangeResults(moved.both, moved.new, moved.gone, moved.far, moved.mean_move, furthest)


def verdict_result(judged: LogVerdict) -> VerdictResult:
    """Turn a verdict into plain values."""
    tone, todo = NEXT.get(str(judged.judgement), ("note", "Read the checks before you use these labels."))
    sentences = {Judgement.NEEDS_MORE: f"This log {judged}.", Judgement.DO_NOT_USE: "Do not use these labels."}
    sentence = sentences.get(judged.judgement, f"These labels are {judged}.")
    if judged.of_clicks:
        sentence, todo = f"From clicks alone: {sentence[0].lower()}{sentence[1:]}", NEXT_IF_JUDGED
    return VerdictResult(judged.judgement.machine_name, sentence, tone, todo, judged.times, tuple(judged.sentences))


def _place_rows(fitted: MixtureFit) -> Iterator[tuple[Value, ...]]:
    """A row per place, context by context; with a cascade, whose context is the list above, position by position."""
    groups: Sequence[Group] = fitted.groups
    if fitted.examination != "pbm":
        groups = sorted(groups, key=lambda group: group.places[0].place)
    for number, group in enumerate(groups, 1):
        fit = _mixture_values(group)
        for seen in group.places:
            name = seen.place.describe(fitted.context)
            yield name, seen.documents, seen.impressions, seen.clicks, *fit, number, str(group.verdict(seen))


def _mixture_values(group: Group) -> tuple[Value, ...]:
    mixture = group.mixture
    if not mixture.informative:
        return Estimate(mixture.rates[0]), None, group.prior_relevance, None, None, None
    errors = mixture.standard_errors or (None, None)
    low, high = (
        Estimate(rate, None if error is None else _half_interval(rate, error))
        for rate, error in zip((mixture.rates[0], mixture.rates[-1]), errors, strict=True)
    )
    return low, high, group.prior_relevance, mixture.separation, mixture.error, _needed(mixture)


def _half_interval(rate: float, error: float) -> float:
    """Half the width of the 95% interval of a rate, given its standard error on the logit scale.

    Computed from both ends: if nothing pins down a rate near 0 or 1, its interval is wide although the slope is 0.
    """
    low, high = expit(logit(rate) - 1.96 * error), expit(logit(rate) + 1.96 * error)
    return float(high - low) / 2


def _needed(mixture: Mixture) -> float | None:
    """Impressions until a label is good enough; infinite if out of reach, None for Gaussians, which cannot tell."""
    needed = impressions_for(mixture)
    return needed if needed is not None or mixture.variances is not None else math.inf


def _check_row(check: Check) -> tuple[Value, ...]:
    outcome = "fail" if check.found else "note" if check.seen else "pass"
    advice = check.advice if check.seen else None
    return outcome, check.said, check.moved, check.far, check.statistic, check.limit, check.evidence, advice


def _not_checked(fitted: MixtureFit) -> list[Violation]:
    """The violations that were not looked for, because the log has too few queries or positions."""
    if not fitted.checks:
        return []
    looked = {check.violation for check in fitted.checks}
    return [
        violation for violation in (Violation.CASCADE, Violation.OUTLIERS, Violation.RISING) if violation not in looked
    ]


def fit_sentences(fitted: MixtureFit) -> list[str]:
    """Say how the fit was made."""
    return [
        *(judgment_sentences(fitted.judged) if fitted.judged else ()),
        *(feature_sentences(fitted.featured) if fitted.featured else ()),
        _how_fitted(fitted),
        *_choice(fitted),
        *([] if fitted.examination == "pbm" else [ABOVE]),
    ]


def _place_verdicts(fitted: MixtureFit) -> tuple[str, ...]:
    """What the verdicts on places mean."""
    verdicts = Counter(group.verdict(seen) for group in fitted.groups for seen in group.places)
    meanings = (
        f"{verdict}: {places:,} of {verdicts.total():,} places; {MEANING[verdict]}."
        for verdict, places in verdicts.items()
    )
    return (*meanings, *([OF_THE_LOG] if Verdict.OVERLAPPING in verdicts else []))


def _how_fitted(fitted: MixtureFit) -> str:
    how = "One model was fitted to all places" if fitted.jointly else "Each group of places was fitted separately"
    moving = f"{percent(fitted.moving)} of documents were seen at several places" if fitted.moving else ""
    asked = [
        *([f"{fitted.mixture} mixture"] if fitted.mixture != "auto" else []),
        *([f"{fitted.prior} prior"] if fitted.prior != "position" else []),
    ]
    return ". ".join(filter(None, [", ".join([how, *asked]), moving])) + "."


def _choice(fitted: MixtureFit) -> list[str]:
    """Say which number of grades was chosen, and by how much; for the model of a whole log, also what differs."""
    if fitted.model is not None:
        return [_on_model(fitted.model)]
    others = {grades: bic for grades, bic in fitted.bics.items() if grades != fitted.grades}
    if fitted.mixture != "auto" or not others or fitted.grades not in fitted.bics:
        return []
    if not any(group.mixture.informative for group in fitted.groups):
        return []  # no place has grades, so their number means nothing
    second = min(others, key=lambda grades: others[grades])
    ahead = others[second] - fitted.bics[fitted.grades]
    by = f"BIC better by {ahead:,.0f} than" if ahead >= 0 else f"they are fewer, and BIC is within {-ahead:.1f} of that"
    return [f"{fitted.grades} grades of relevance were chosen: {by} with {second}."]


def _on_model(model: LogModel) -> str:
    """What was chosen, and what differs between queries and documents."""
    link = {"examination": "how much people look", "odds": "the odds of a click", None: ""}[model.attention]
    numbers = dict(zip(model.effects.numbers, model.numbers, strict=True))
    found = [
        *([f"{link} (deviation {math.exp(numbers['log s']):.2f})"] if model.attention else []),
        *([f"the share of relevant documents (deviation {math.exp(numbers['log t']):.2f})"] if model.shares else []),
    ]
    differ = f" Queries differ in {' and in '.join(found)}." if found else ""
    appeal = " Documents of the same grade differ in appeal." if model.appeal else ""
    part = "" if model.share == 1 else f" It was fitted to {percent(model.share)} of the queries."
    looked = len(model.looked)
    chosen = f" Held-out clicks chose it from {looked:,} models." if looked > 1 else ""
    return f"The model has {several(model.grades, 'grade')} of relevance.{differ}{appeal}{chosen}{part}"
