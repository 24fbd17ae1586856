"""Two Gaussians of click-through rates: the paper's second mixture.   Observations of groups -> GroupFits"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmix.mixtures.kinds.kind import MIXTURES, GroupFits

if TYPE_CHECKING:
    from clickmix.groups.observations import Observations


@dataclass(frozen=True)
class GaussianKind:
    """Rates are numbers with a variance, not counts."""

    def fit_groups(self, seen: Sequence[Observations]) -> GroupFits:
        """Fit each group separately."""
        from clickmix.mixtures.single import fit_group

        return GroupFits.of([fit_group(observations, "gaussian") for observations in seen])

    def given(self, grades: int) -> GaussianKind:
        """The same: it always has two components."""
        return self


@MIXTURES.register("gaussian", help="Two Gaussians of click-through rates: the paper's second mixture.")
def gaussian(*, grades: int = 5, sharing: bool = True) -> GaussianKind:
    """Two components."""
    return GaussianKind()
