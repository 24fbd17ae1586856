"""What every kind of mixture has in common.   Observations of groups -> GroupFits

Kinds import what fits them inside functions: the family is loaded to list their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from clickmix.registry import Family
from clickmix.types import Floats

if TYPE_CHECKING:
    from clickmix.groups.observations import Observations
    from clickmix.groups.places import Place
    from clickmix.mixtures.hierarchical.cells import Cells
    from clickmix.mixtures.hierarchical.problem import Model
    from clickmix.mixtures.mixture import Mixture

GRADES = (2, 3, 4, 5, 6, 7)
STRONG = 6.0  # difference of BIC that is strong evidence (Kass & Raftery 1995): what more grades must win by


@dataclass(frozen=True)
class GroupFits:
    """A mixture and prior weights per group, none where nothing could be fitted; and how they were fitted.

    `bics` has the BIC of every number of grades that was tried, `shared` says whether neighbours learned from each
    other, `error` is the expected error of labels where only a joint fit knows it.
    """

    mixtures: Sequence[Mixture]
    priors: Sequence[Floats | None]
    log_likelihoods: tuple[float, ...] = ()
    bics: Mapping[int, float] = field(default_factory=dict)
    shared: bool = False
    error: float | None = None

    @classmethod
    def of(cls, mixtures: Sequence[Mixture], bics: Mapping[int, float] | None = None, *, shared: bool) -> GroupFits:
        """Fits whose groups keep the weights that were fitted as their priors."""
        import numpy as np

        priors = [np.array(mixture.weights) if mixture.informative else None for mixture in mixtures]
        return cls(mixtures, priors, bics=bics or {}, shared=shared)


class MixtureKind(Protocol):
    """A kind of mixture.

    `moves` says whether it can be fitted to documents that move between groups, `checkable` whether the checks of a log
    know it.
    """

    @property
    def moves(self) -> bool: ...

    @property
    def checkable(self) -> bool: ...

    def fit_groups(self, seen: Sequence[Observations], places: Sequence[Place]) -> GroupFits:
        """Fit every group from its own histogram; `places` says where each stands."""

    def fit_jointly(self, seen: Observations, positions: Sequence[int] | None) -> GroupFits:
        """Fit all groups at once, every document with one grade wherever it was shown."""

    def fit_examined(self, seen: Sequence[Observations]) -> GroupFits | None:
        """Fit groups of one position that differ in examination alone; None where this kind cannot."""

    def given(self, grades: int) -> MixtureKind:
        """The same kind once the number of grades is known."""


@runtime_checkable
class WholeLogKind(MixtureKind, Protocol):
    """A kind of mixture that fits one model to the whole log, and groups only where clicks say nothing."""

    def fit_log(self, cells: Cells) -> Model:
        """Fit the log."""


MIXTURES: Family[MixtureKind] = Family("mixture", "clickmix.mixtures.kinds", first="auto")
