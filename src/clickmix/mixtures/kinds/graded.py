"""Grades at evenly spaced click rates: two are the paper's binomial mixture.   Cells of a log -> Model"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from clickmix.mixtures.kinds.kind import GRADES, MIXTURES, GroupFits

if TYPE_CHECKING:
    from clickmix.groups.observations import Observations
    from clickmix.mixtures.hierarchical.cells import Cells
    from clickmix.mixtures.hierarchical.problem import Model
    from clickmix.mixtures.mixture import Mixture

STRONG = 6.0  # difference of BIC that is strong evidence (Kass & Raftery 1995), which more grades must gain
SEED = 0  # seed of samples and of held-out clicks


@dataclass(frozen=True)
class EachAlone:
    """A given number of grades, the same in every group, each fitted separately; None lets BIC choose."""

    grades: int | None

    def fit_groups(self, seen: Sequence[Observations]) -> GroupFits:
        """Fit each group to its own clicks; the sum of their BIC chooses the number of grades if it is not given."""
        from clickmix.mixtures.single import fit_group

        fits: dict[int, list[Mixture]] = {}
        bics: dict[int, float] = {}
        for number in GRADES if self.grades is None else (self.grades,):
            fits[number] = [fit_group(observations, "binomial", grades=number) for observations in seen]
            bics[number] = sum(min(m.bic or 0.0, m.bic_one_rate or 0.0) for m in fits[number])
            if number - 1 in fits and bics[number] > bics[number - 1]:
                break
        fewest = min(number for number, bic in bics.items() if bic <= min(bics.values()) + STRONG)
        return GroupFits.of(fits[fewest], bics)

    def given(self, grades: int) -> Self:
        """The same with this many grades, unless their number is set."""
        return replace(self, grades=self.grades or grades)


class Graded(EachAlone):
    """A given number of grades in one model of the log, with queries alike; None lets the log choose both."""

    def fit_log(self, cells: Cells, *, alike: bool) -> Model:
        """Fit the log; held-out clicks choose the number of grades if it is not given."""
        import numpy as np

        from clickmix.mixtures.hierarchical.choose import choose
        from clickmix.mixtures.hierarchical.fit import fit

        if self.grades is None:
            return choose(cells, rng=np.random.default_rng(SEED), alike=alike)
        return fit(cells, grades=self.grades)[0]


@MIXTURES.register("auto", help="Held-out clicks choose the grades, and what differs between queries and documents.")
def auto(*, grades: int = 5, sharing: bool = True) -> EachAlone:
    """The log chooses."""
    return Graded(None) if sharing else EachAlone(None)


@MIXTURES.register("binomial", help="Two grades: the paper's first mixture.")
def binomial(*, grades: int = 5, sharing: bool = True) -> EachAlone:
    """Two grades."""
    return Graded(2) if sharing else EachAlone(2)


@MIXTURES.register("graded", help="Five grades at evenly spaced click rates.")
def graded(*, grades: int = 5, sharing: bool = True) -> EachAlone:
    """This many grades."""
    return Graded(grades) if sharing else EachAlone(grades)
