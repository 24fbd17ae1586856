"""Any distribution of click rates, on a grid.   Observations of groups -> GroupFits"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmix.mixtures.kinds.kind import MIXTURES, GroupFits

if TYPE_CHECKING:
    from clickmix.groups.observations import Observations


@dataclass(frozen=True)
class Shapeless:
    """Every group is fitted separately: together there would be too many parameters."""

    def fit_groups(self, seen: Sequence[Observations]) -> GroupFits:
        """Fit each group separately."""
        from clickmix.mixtures.nonparametric import fit_nonparametric

        return GroupFits.of([fit_nonparametric(observations) for observations in seen])

    def given(self, grades: int) -> Shapeless:
        """The same: it has no number of grades."""
        return self


@MIXTURES.register("nonparametric", help="Any distribution of click rates.")
def nonparametric(*, grades: int = 5, sharing: bool = True) -> Shapeless:
    """Any distribution, without an assumed shape."""
    return Shapeless()
