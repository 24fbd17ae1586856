"""What every kind of mixture has in common.   Observations of groups -> GroupFits, or cells of a log -> Model

Kinds import their fits inside functions, because `--help` loads the family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from clickmix.registry import Family
from clickmix.types import Floats

if TYPE_CHECKING:
    from clickmix.groups.observations import Observations
    from clickmix.mixtures.hierarchical.cells import Cells
    from clickmix.mixtures.hierarchical.problem import Model
    from clickmix.mixtures.mixture import Mixture

GRADES = (2, 3, 4, 5, 6, 7)


@dataclass(frozen=True)
class GroupFits:
    """A mixture per group, and its prior weights, None if nothing could be fitted.

    `bics` has the BIC of every number of grades that was tried.
    """

    mixtures: Sequence[Mixture]
    priors: Sequence[Floats | None]
    bics: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, mixtures: Sequence[Mixture], bics: Mapping[int, float] | None = None) -> GroupFits:
        """Fits that use the fitted weights of groups as their priors."""
        import numpy as np

        priors = [np.array(mixture.weights) if mixture.informative else None for mixture in mixtures]
        return cls(mixtures, priors, bics or {})


class MixtureKind(Protocol):
    """A kind of mixture, which fits every group separately."""

    def fit_groups(self, seen: Sequence[Observations]) -> GroupFits:
        """Fit every group to its own histogram."""

    def given(self, grades: int) -> MixtureKind:
        """The same kind once the number of grades is known."""


@dataclass(frozen=True)
class GroupByGroup:
    """A kind without a number of grades to choose, which fits each group to its own clicks."""

    fit: Callable[[Observations], Mixture]

    def fit_groups(self, seen: Sequence[Observations]) -> GroupFits:
        """Fit each group separately."""
        return GroupFits.of(list(map(self.fit, seen)))

    def given(self, grades: int) -> GroupByGroup:
        """The same."""
        return self


@runtime_checkable
class WholeLogKind(MixtureKind, Protocol):
    """A kind of mixture that fits one model to the whole log, and groups only if clicks say nothing."""

    def fit_log(self, cells: Cells, *, alike: bool) -> Model:
        """Fit the log; queries are `alike` if they are not known."""


MIXTURES: Family[MixtureKind] = Family("mixture", "clickmix.mixtures.kinds", first="auto")
