"""What every correction has in common: `fit(counts)`, and what that returns has `label(counts)`."""

from __future__ import annotations

from typing import Protocol

from clickmix.corrections.labels import Labels
from clickmix.counts import Counts
from clickmix.errors import SettingError
from clickmix.types import Progress


class Fitted(Protocol):
    """A correction that knows all it needs of a log."""

    def label(self, counts: Counts) -> Labels:
        """One relevance per query and document."""


class Correction(Protocol):
    """The settings of a correction."""

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> Fitted:
        """Learn from a log what the correction needs."""


def check_positions_only(counts: Counts, *, correction: str) -> None:
    """Refuse context columns where a correction knows no places but positions."""
    if counts.context:
        raise SettingError(
            f"{correction} knows positions only, and the counts have the context {', '.join(counts.context)}. "
            "Count the log without context columns, or one context at a time."
        )


def last_position(counts: Counts) -> int:
    """How far down the lists of a log go."""
    ((position,),) = counts.engine.rows(f"SELECT max(position) FROM {counts.table}")
    return int(position)
