"""Any distribution of click rates, on a grid.   Observations of groups -> GroupFits"""

from __future__ import annotations

from clickmix.mixtures.kinds.kind import MIXTURES, GroupByGroup


@MIXTURES.register("nonparametric", help="Any distribution of click rates.")
def nonparametric(*, grades: int = 5, sharing: bool = True) -> GroupByGroup:
    """Any distribution, without an assumed shape. Fitted together, groups would have too many parameters."""
    from clickmix.mixtures.nonparametric import fit_nonparametric

    return GroupByGroup(fit_nonparametric)
