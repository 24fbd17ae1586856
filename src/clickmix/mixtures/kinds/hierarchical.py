"""One model of the whole log: queries and documents may differ, held-out clicks choose.   Cells of a log -> Model"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmix.mixtures.kinds.graded import Graded
from clickmix.mixtures.kinds.kind import MIXTURES

if TYPE_CHECKING:
    from clickmix.mixtures.hierarchical.cells import Cells
    from clickmix.mixtures.hierarchical.problem import Model

SEED = 0  # of samples and of clicks that are held out


@dataclass(frozen=True)
class Hierarchical(Graded):
    """Grades, and what differs between queries and documents, are chosen by held-out clicks."""

    checkable: bool = False

    def fit_log(self, cells: Cells) -> Model:
        """Choose and fit."""
        import numpy as np

        from clickmix.mixtures.hierarchical.choose import choose

        return choose(cells, rng=np.random.default_rng(SEED))


@MIXTURES.register("hierarchical", help="Experimental: one model of documents that move and queries that differ.")
def hierarchical(*, grades: int = 5, sharing: bool = True) -> Hierarchical:
    """The log chooses everything."""
    return Hierarchical(None)
