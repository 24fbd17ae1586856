"""Grades at evenly spaced click rates: two are the paper's binomial mixture.   Observations of groups -> GroupFits"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clickmix.mixtures.kinds.kind import GRADES, MIXTURES, STRONG, GroupFits

if TYPE_CHECKING:
    from clickmix.groups.observations import Observations
    from clickmix.groups.places import Place
    from clickmix.mixtures.mixture import Mixture


@dataclass(frozen=True)
class Graded:
    """So many grades, the same number in every group; None lets the log choose by BIC."""

    grades: int | None
    sharing: bool = True
    moves: bool = True
    checkable: bool = True

    def fit_groups(self, seen: Sequence[Observations], places: Sequence[Place]) -> GroupFits:
        """The groups with clicks, by themselves or with their neighbours."""
        from clickmix.mixtures.mixture import silent
        from clickmix.mixtures.neighbours import can_share, fit_neighbours

        mixtures = [silent("binomial", *observations.totals) for observations in seen]
        heard = [g for g, mixture in enumerate(mixtures) if mixture is None]
        positions, contexts = [places[g].position for g in heard], [places[g].context for g in heard]
        clicked = [seen[g] for g in heard]
        shared = self.sharing and can_share(positions, contexts)
        if shared:
            fit = fit_neighbours(clicked, positions=positions, contexts=contexts, grades=self.grades)
            found, bics = list(fit.mixtures), fit.bics
        else:
            found, bics = _each_alone(clicked, self.grades)
        for g, mixture in zip(heard, found, strict=True):
            mixtures[g] = mixture
        return GroupFits.of([mixture for mixture in mixtures if mixture is not None], bics, shared=shared)

    def fit_jointly(self, seen: Observations, positions: Sequence[int] | None) -> GroupFits:
        """The first number of grades after which more are no better, by BIC."""
        from clickmix.mixtures.joint import fit_jointly

        fits, best = {}, 0
        for number in GRADES if self.grades is None else (self.grades,):
            fits[number] = fit_jointly(seen, "binomial", grades=number, positions=positions)
            best = min(fits, key=lambda g: fits[g].bic)
            if number > best:
                break
        bics = {number: fit.bic for number, fit in fits.items()}
        return replace(fits[_fewest(bics)].as_groups(), bics=bics)

    def fit_examined(self, seen: Sequence[Observations]) -> GroupFits | None:
        """All groups of a position together; the number of grades must be known."""
        from clickmix.mixtures.examination import fit_examined

        return None if self.grades is None else GroupFits.of(fit_examined(seen, grades=self.grades), shared=False)

    def given(self, grades: int) -> Graded:
        """With so many grades, unless their number is set."""
        return replace(self, grades=self.grades or grades)


@MIXTURES.register("auto", help="Binomial or graded, with the number of grades chosen from the log.")
def auto(*, grades: int = 5, sharing: bool = True) -> Graded:
    """Choose the number of grades by BIC."""
    return Graded(None, sharing)


@MIXTURES.register("binomial", help="Two grades: the paper's first mixture.")
def binomial(*, grades: int = 5, sharing: bool = True) -> Graded:
    """Two grades."""
    return Graded(2, sharing)


@MIXTURES.register("graded", help="Five grades at evenly spaced click rates.")
def graded(*, grades: int = 5, sharing: bool = True) -> Graded:
    """As many grades as were asked for."""
    return Graded(grades, sharing)


def _each_alone(seen: Sequence[Observations], grades: int | None) -> tuple[list[Mixture], Mapping[int, float]]:
    """Each group from its own clicks; the number of grades by the sum of their BIC if it is not given."""
    from clickmix.mixtures.single import fit_group

    fits: dict[int, list[Mixture]] = {}
    bics: dict[int, float] = {}
    for number in GRADES if grades is None else range(grades, min(grades + 1, GRADES[-1]) + 1):
        fits[number] = [fit_group(observations, "binomial", grades=number) for observations in seen]
        bics[number] = sum(min(m.bic or 0.0, m.bic_one_rate or 0.0) for m in fits[number])
        if number - 1 in fits and bics[number] > bics[number - 1]:
            break
    return fits[grades or _fewest(bics)], bics


def _fewest(bics: Mapping[int, float]) -> int:
    """The fewest grades whose BIC is not much above the best."""
    return min(grades for grades, bic in bics.items() if bic <= min(bics.values()) + STRONG)
