"""Check: an assumption of the mixture, tested on a log.   judging makes them"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Violation(enum.StrEnum):
    """How a log can violate the assumptions of a fit by position, a closed list.

    >>> str(Violation.RISING)
    'rates rise down the page'
    """

    RISING = "rates rise down the page"
    GRADES = "more grades than were fitted"
    CASCADE = "clicks depend on the documents above"
    BEYOND = "documents clicked more, or less, than any grade"
    BETWEEN = "documents clicked at rates between the grades'"


@dataclass(frozen=True)
class Check:
    """The test for one violation: its statistic, the limit for clean logs, and the evidence in words.

    >>> Check(Violation.RISING, statistic=1.2, limit=3.0, evidence="The highest rate falls").found
    False
    """

    violation: Violation
    statistic: float
    limit: float
    evidence: str

    @property
    def found(self) -> bool:
        """Whether the log violates the assumption."""
        return self.statistic > self.limit
