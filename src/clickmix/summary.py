"""A fitted correction for people: a table of its groups, and what to think of it in plain words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scipy.special import expit

from clickmix.corrections.fitted import FITTED, MixtureFit
from clickmix.corrections.group import Group
from clickmix.errors import printable
from clickmix.mixtures import Verdict

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


def fit_table(fitted: MixtureFit) -> Table:
    """One row per place: what was seen, both click rates (± half a 95 % interval), share of relevant documents."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("place", no_wrap=True)
    for heading in ("documents", "impressions", "clicks", "rate, others", "rate, relevant", "relevant", "separation"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for group in fitted.groups:
        for i, seen in enumerate(group.places):
            numbers = [f"{count:,}" for count in (seen.documents, seen.impressions, seen.clicks)]
            fit = _numbers(group) if i == 0 else ["〃"] * 4
            name = Text(printable(seen.place.describe(fitted.context)))
            table.add_row(name, *numbers, *fit, str(group.verdict(seen)))
    return table


def _numbers(group: Group) -> list[str]:
    mixture = group.mixture
    errors = mixture.standard_errors or (None,) * len(mixture.rates)
    rates = [_rate(rate, error) for rate, error in zip(mixture.rates, errors, strict=True)]
    if not mixture.informative:
        return [rates[0], "-", f"{group.prior:.3f}", "-"]
    separation = int(100 * mixture.separation) / 100  # never rounded up to the border of a better verdict
    return [rates[0], rates[-1], f"{mixture.weights[-1]:.3f}", f"{separation:.2f}"]


def _rate(rate: float, error: float | None) -> str:
    """A rate, and half its 95 % interval where the standard error of its logit is known.

    >>> _rate(0.5, 0.1), _rate(0.0012345, None)
    ('0.5 ±0.05', '0.00123')
    """
    return f"{rate:.3g}" if error is None else f"{rate:.3g} ±{1.96 * error * rate * (1 - rate):.1g}"


def fit_sentences(fitted: MixtureFit) -> list[str]:
    """How the fit was made, how far from separable the log is, and what each verdict means."""
    verdicts = Counter(group.verdict(seen) for group in fitted.groups for seen in group.places)
    moving = f"{fitted.moving:.0%} of documents were seen at several places"
    unclear = "Where clicks are unclear, the share of relevant documents is drawn towards {:.3f}, as in clear groups."
    return [
        f"Fitted {FITTED[fitted.jointly]} ({moving}), {fitted.mixture} mixture, {fitted.prior} prior.",
        f"Clicks at one place remove {fitted.separation:.0%} of the uncertainty about relevance, on average.",
        *([unclear.format(expit(fitted.pull[0]))] if fitted.pull else []),
        *(
            f"{verdict}: {places} of {verdicts.total()} places; {MEANING[verdict]}."
            for verdict, places in verdicts.items()
        ),
    ]
