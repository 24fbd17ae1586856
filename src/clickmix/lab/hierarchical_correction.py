"""The hierarchical correction's settings: one model of all clicks, chosen by the log.   --correction hierarchical"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

from clickmix.corrections.correction import CORRECTIONS
from clickmix.counts.counts import Counts
from clickmix.errors import SettingError
from clickmix.mixtures.kinds.kind import GRADES
from clickmix.registry import Option
from clickmix.types import Progress

if TYPE_CHECKING:
    from clickmix.mixtures.hierarchical.counted import HierarchicalFit

OPTIONS = (
    Option("grades", "How many grades of relevance there are; without it the log chooses.", type=int),
    Option("seed", "Of random draws; the same seed, the same bytes.", type=int),
)


@CORRECTIONS.register(
    "hierarchical",
    help="Experimental: one model of documents that move and queries that differ.",
    options=OPTIONS,
)
@dataclass(frozen=True)
class HierarchicalCorrection:
    """Settings: how many grades, or None to let held-out clicks choose; the seed of samples and halves."""

    grades: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.grades is not None and not (isinstance(self.grades, Integral) and self.grades in GRADES):
            raise SettingError(f"grades {self.grades!r}: expected a whole number from {GRADES[0]} to {GRADES[-1]}.")
        if not (isinstance(self.seed, Integral) and self.seed >= 0):
            raise SettingError(f"seed {self.seed!r}: expected a whole number from 0.")

    @property
    def title(self) -> str:
        """As tables show it."""
        return "hierarchical" if self.grades is None else f"hierarchical, {self.grades} grades"

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> HierarchicalFit:
        """Choose grades and effects by held-out clicks, and fit the model to the log."""
        from clickmix.mixtures.hierarchical.counted import fit_counts  # late: scipy is slow to load

        return fit_counts(counts, grades=self.grades, seed=self.seed)
