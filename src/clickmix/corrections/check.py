"""Checks and judgements of a log, as closed lists. `judging/` makes them.

They are here because a fit keeps the checks of its log, and `--fail-on` lists judgements without loading `judging/`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from clickmix.storage.records import Range

NOTE_BELOW = 0.02  # a violation that would change labels by less (root mean square) is only a note


class Violation(enum.StrEnum):
    """How a log can violate the assumptions of a fit by position, a closed list.

    >>> str(Violation.RISING)
    'rates rise down the page'
    """

    CASCADE = "clicks depend on the documents above"
    OUTLIERS = "a few queries are clicked far more than others"
    REPEATED = "every impression was written several times"
    SCATTERED = "at some places, documents of the same grade differ in appeal"
    GRADES = "more grades than were fitted"
    RISING = "rates rise down the page"
    BEYOND = "documents clicked more, or less, than any grade"  # only models of release 0.1 have the last two
    BETWEEN = "documents clicked at rates between the grades'"


# What people read, where it differs from the name in model files, which was given when only grades were compared.
SAID: Mapping[Violation, str] = {Violation.GRADES: "other grades or effects explain the clicks better"}
ADVICE: Mapping[Violation, str] = {
    Violation.CASCADE: "Fit again with --examination dcm or --examination ubm: clickmix compare shows which of the two "
    "click models predicts clicks better",
    Violation.OUTLIERS: "Leave robots and crawlers out of the log, or drop these queries",
    Violation.REPEATED: "Remove the duplicates from the log",
    Violation.SCATTERED: "Find out what is shown only there, such as pictures or prices, and name it with --context",
    Violation.GRADES: "Fit again with --mixture auto",
    Violation.RISING: "Nothing to do: rates may be anything at each position",
}


PASSED: Mapping[Violation, str] = {
    Violation.CASCADE: "clicks do not depend on the documents above",
    Violation.OUTLIERS: "no queries are clicked far more than others",
    Violation.REPEATED: "impressions were written once",
    Violation.SCATTERED: "documents of the same grade do not differ in appeal",
    Violation.GRADES: "no other grades or effects explain the clicks better",
    Violation.RISING: "rates fall down the page",
    Violation.BEYOND: "no documents are clicked more, or less, than any grade",
    Violation.BETWEEN: "no documents are clicked at rates between the grades'",
}


@dataclass(frozen=True)
class Check:
    """The test for one violation: its statistic, the limit for clean logs, the evidence in words, and its size.

    `moved` is how far labels would change if the violation were modelled (root mean square), `far` the share of
    documents whose label would change by more than 0.1. Models of release 0.1 do not say.

    >>> Check(Violation.CASCADE, statistic=31.0, limit=9.2, evidence="Clicks fall", moved=0.01, far=0.0).found
    False
    """

    violation: Violation
    statistic: float
    limit: float
    evidence: str
    moved: Annotated[float, Range(0, 1)] | None = None
    far: Annotated[float, Range(0, 1)] | None = None

    @property
    def seen(self) -> bool:
        """Whether the statistic is above the limit for clean logs."""
        return self.statistic > self.limit

    @property
    def found(self) -> bool:
        """Whether the violation is seen and matters for labels."""
        return self.seen and (self.moved is None or self.moved >= NOTE_BELOW)

    @property
    def said(self) -> str:
        """The violation in words."""
        return SAID.get(self.violation, str(self.violation))

    @property
    def advice(self) -> str:
        """What to do about it."""
        return ADVICE.get(self.violation, "Look at the queries concerned")


class Judgement(enum.StrEnum):
    """The verdicts on a log, a closed list, best first.

    >>> Judgement.NEEDS_MORE.machine_name, Judgement.DO_NOT_USE.as_bad_as(Judgement.NEEDS_MORE)
    ('needs-more-data', True)
    """

    TRUSTWORTHY = "trustworthy"
    USABLE = "usable"
    NEEDS_MORE = "needs more data"
    DO_NOT_USE = "do not use"

    @property
    def machine_name(self) -> str:
        """Its name in `--json` and `--fail-on`."""
        return self.replace(" ", "-")

    def as_bad_as(self, other: Judgement) -> bool:
        """Whether it is the same as the other, or worse."""
        order = list(Judgement)
        return order.index(self) >= order.index(other)
