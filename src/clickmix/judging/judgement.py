"""The verdicts on a log: a closed list, best first. `--fail-on` reads it without loading what judges."""

from __future__ import annotations

import enum


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
        """Whether it is the other one or a worse one."""
        order = list(Judgement)
        return order.index(self) >= order.index(other)
