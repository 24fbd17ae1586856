"""What every correction has in common: `fit(counts)`, and what that returns has `label(counts)`.

A correction is one file that registers itself in `CORRECTIONS`; `coec.py` is a short one. `--help` loads every member,
so members import scipy and other slow modules inside functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from clickmix.counts.counts import Counts
from clickmix.errors import SettingError
from clickmix.log.layout import Lists
from clickmix.registry import Family
from clickmix.types import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from clickmix.corrections.labels import Labels
    from clickmix.groups.places import Place


class Fitted(Protocol):
    """A correction that has learned from a log.

    One that can predict clicks also has `click_rates(seen, asked)`; `click_rates.py` says what it is given.
    """

    def label(self, counts: Counts) -> Labels:
        """One relevance per query and document."""


class Correction(Protocol):
    """The settings of a correction.

    Three attributes are optional: `needs_lists` says that it needs result lists counted separately ("clicks": also by
    what was clicked in them), `saves_model` that its fit can be saved to a file, `gives_verdict` that its fit can be
    judged.
    """

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> Fitted:
        """Learn from a log."""


@runtime_checkable
class Saved(Protocol):
    """A fit that can be saved."""

    def write(self, path: str | Path) -> None:
        """Write it, whole or not at all."""


@runtime_checkable
class Described(Protocol):
    """A fit with a one-sentence summary."""

    summary: ClassVar[str]


@runtime_checkable
class Rated(Protocol):
    """A fit that knows how often people click what is relevant, and what is not. `clickmix explain` asks for it."""

    def usual_rates(self, place: Place) -> tuple[float, float] | None:
        """The click rate of documents that are not relevant, and of relevant ones; None if clicks say nothing there."""


CORRECTIONS: Family[Correction] = Family(
    "correction",
    "clickmix.corrections",
    "clickmix.lab.regression_em",
    first="mixture",
)


def needs_lists(correction: object) -> Lists:
    """Whether a correction must know what was above a document, and which clicks belong together."""
    needed: Lists = getattr(correction, "needs_lists", False)
    return needed


def saves_model(correction: object) -> bool:
    """Whether a correction's fit can be saved."""
    return bool(getattr(correction, "saves_model", False))


def gives_verdict(correction: object) -> bool:
    """Whether a correction's fit can be judged."""
    return bool(getattr(correction, "gives_verdict", False))


def check_positions_only(counts: Counts, *, correction: str) -> None:
    """Refuse context columns for a correction that knows only positions."""
    if counts.context:
        raise SettingError(
            f"{correction} knows only positions, but the counts have context columns: {', '.join(counts.context)}. "
            "Count the log without context columns, or one context at a time."
        )


def last_position(counts: Counts) -> int:
    """The last position of a log."""
    ((position,),) = counts.engine.rows(f"SELECT max(position) FROM {counts.table}")
    return int(position)
