"""A fitted correction for people: a table of its groups, and a verdict on the log in plain words."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.corrections.mixture_based.model_file import FITTED
from clickmix.errors import printable
from clickmix.judging.verdict import Judgement, judge
from clickmix.mixtures.group import Group
from clickmix.mixtures.impressions_needed import TARGET, impressions_for
from clickmix.mixtures.mixture import Mixture, Verdict

if TYPE_CHECKING:
    from rich.table import Table

MEANING = {
    Verdict.SEPARATED: "relevant and other documents can be told apart",
    Verdict.OVERLAPPING: "fitted, but clicks leave many labels unsure",
    Verdict.ONE_RATE: "one click rate explains all; clicks say nothing there, labels are the neighbours' prior",
    Verdict.NO_CLICKS: "nothing was clicked; labels are the neighbours' prior",
    Verdict.ALL_CLICKED: "everything was clicked; labels are the neighbours' prior",
    Verdict.TOO_FEW_DOCUMENTS: "joined to a neighbouring position before fitting",
    Verdict.NOT_CONVERGED: "the fit was still improving when it was stopped; do not rely on it",
}


def fit_table(fitted: MixtureFit, *, most: int | None = None) -> Table:
    """One row per place (the first `most`): what was seen, the click rates of the lowest and the highest grade.

    Rates have half a 95 % interval (±). Then the prior (the mean relevance of documents there), how far clicks separate
    grades, the error to expect of labels, and how many impressions of a document would bring it down to the target.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("place", no_wrap=True)
    for heading in (
        "documents",
        "impressions",
        "clicks",
        "lowest rate",
        "highest rate",
        "prior",
        "separation",
        "error",
        "needed",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    rows = ((group, i, seen) for group in _down_the_page(fitted) for i, seen in enumerate(group.places))
    for group, i, seen in itertools.islice(rows, most):
        numbers = [f"{count:,}" for count in (seen.documents, seen.impressions, seen.clicks)]
        fit = _numbers(group) if i == 0 else ["〃"] * 6
        name = Text(printable(seen.place.describe(fitted.context)))
        table.add_row(name, *numbers, *fit, str(group.verdict(seen)))
    return table


def _down_the_page(fitted: MixtureFit) -> Sequence[Group]:
    """Context by context; what stands above a document is no context of its own, so then position by position."""
    if fitted.examination == "pbm":
        return fitted.groups
    return sorted(fitted.groups, key=lambda group: group.places[0].place)


def _numbers(group: Group) -> list[str]:
    mixture = group.mixture
    relevance = f"{group.prior_relevance:.3f}"
    if not mixture.informative:
        return [_rate(mixture.rates[0], None), "-", relevance, "-", "-", "-"]
    errors = mixture.standard_errors or (None, None)
    separation = int(100 * mixture.separation) / 100  # never rounded up to the border of a better verdict
    ends = [_rate(rate, error) for rate, error in zip((mixture.rates[0], mixture.rates[-1]), errors, strict=True)]
    error = "-" if mixture.error is None else f"{mixture.error:.3f}"  # of one made by hand
    return [*ends, relevance, f"{separation:.2f}", error, _needed(mixture)]


def _needed(mixture: Mixture) -> str:
    needed = impressions_for(mixture)
    if needed is None:
        return "-" if mixture.variances is not None else ">1e6"
    return f"{needed:,}"


def _rate(rate: float, error: float | None) -> str:
    """A rate, and half its 95 % interval where the standard error of its logit is known.

    >>> _rate(0.5, 0.1), _rate(0.0012345, None)
    ('0.5 ±0.05', '0.00123')
    """
    return f"{rate:.3g}" if error is None else f"{rate:.3g} ±{1.96 * error * rate * (1 - rate):.1g}"


ABOVE = (
    "above: the labels of the documents above, the topmost first, in quarters (0 to 4); rare: patterns too rare to be "
    "fitted alone, joined with others that let expect about as many clicks."
)
NEEDED = f"needed: impressions of a document that bring the error of its label to {TARGET:g} at that place."


def verdict_sentences(fitted: MixtureFit) -> list[str]:
    """The verdict on the log, and its evidence."""
    judged = judge(fitted)
    return [f"This log {'is ' if judged.judgement is Judgement.TRUSTWORTHY else ''}{judged}.", *judged.sentences]


def fit_sentences(fitted: MixtureFit) -> list[str]:
    """How the fit was made, and what the verdicts on places mean."""
    verdicts = Counter(group.verdict(seen) for group in fitted.groups for seen in group.places)
    return [
        how_fitted(fitted),
        *([] if fitted.examination == "pbm" else [ABOVE]),
        *_choice(fitted),
        f"Clicks at one place remove {fitted.separation:.0%} of the uncertainty about relevance, on average.",
        *(
            f"{verdict}: {places} of {verdicts.total()} places; {MEANING[verdict]}."
            for verdict, places in verdicts.items()
        ),
    ]


def how_fitted(fitted: MixtureFit) -> str:
    """How the fit was made, in a sentence."""
    moving = f"{fitted.moving:.0%} of documents were seen at several places"
    shared = ", neighbouring positions learning from each other" if fitted.shared else ""
    return f"Fitted {FITTED[fitted.jointly]} ({moving}){shared}, {fitted.mixture} mixture, {fitted.prior} prior."


def _choice(fitted: MixtureFit) -> list[str]:
    """Which number of grades was chosen, and by how much."""
    others = {grades: bic for grades, bic in fitted.bics.items() if grades != fitted.grades}
    if fitted.mixture != "auto" or not others or fitted.grades not in fitted.bics:
        return []
    if not any(group.mixture.informative for group in fitted.groups):
        return []  # chosen to look for grades where none were seen
    second = min(others, key=lambda grades: others[grades])
    ahead = others[second] - fitted.bics[fitted.grades]
    by = f"BIC better by {ahead:,.0f} than" if ahead >= 0 else f"they are fewer, and BIC is within {-ahead:.1f} of that"
    return [f"{fitted.grades} grades of relevance were chosen: {by} with {second}."]
