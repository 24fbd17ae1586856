"""Two Gaussians of click-through rates: the paper's second mixture.   Observations of groups -> GroupFits"""

from __future__ import annotations

from functools import partial

from clickmix.mixtures.kinds.kind import MIXTURES, GroupByGroup


@MIXTURES.register("gaussian", help="Two Gaussians of click-through rates: the paper's second mixture.")
def gaussian(*, grades: int = 5, sharing: bool = True) -> GroupByGroup:
    """Two components. Rates are numbers with a variance, not counts."""
    from clickmix.mixtures.single import fit_group

    return GroupByGroup(partial(fit_group, family="gaussian"))
