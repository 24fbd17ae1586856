"""The verdicts on a log: a closed list, best first. `--fail-on` reads it without loading what judges."""

from __future__ import annotations

import enum


class Judgement(enum.StrEnum):
    """The verdicts on a log, a closed list, best first.

    >>> Judgement.NEEDS_MORE.machine_name, Judgement.VIOLATES.as_bad_as(Judgement.NEEDS_MORE)
    ('needs-more-data', True)
    """

    TRUSTWORTHY = "trustworthy"
    NEEDS_MORE = "needs more data"
    VIOLATES = "violates the assumptions"

    @property
    def machine_name(self) -> str:
        """Its name in `--json` and `--fail-on`."""
        return self.replace(" ", "-")

    def as_bad_as(self, other: Judgement) -> bool:
        """Whether it is the other one or a worse one."""
        order = list(Judgement)
        return order.index(self) >= order.index(other)
