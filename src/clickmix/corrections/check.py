"""Check: an assumption of the mixture that was looked at in a log, and what was seen.   judging fills them in"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Violation(enum.StrEnum):
    """What can be wrong with a log that is read by position; the closed list."""

    RISING = "rates rise down the page"
    GRADES = "more grades than were fitted"
    CASCADE = "clicks depend on the documents above"
    BEYOND = "documents clicked more, or less, than any grade"
    BETWEEN = "documents clicked at rates between the grades'"


@dataclass(frozen=True)
class Check:
    """One violation that was looked for: its statistic, the limit of clean logs, and in words what was seen."""

    violation: Violation
    statistic: float
    limit: float
    evidence: str

    @property
    def found(self) -> bool:
        """Whether the log breaks the assumption."""
        return self.statistic > self.limit
