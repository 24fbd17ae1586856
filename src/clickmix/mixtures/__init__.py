"""Mixtures: documents of each grade of relevance click at a rate of their own; which rates, and how many of each.

groups -> mixtures -> labels
"""

from clickmix.groups.observations import Observations
from clickmix.mixtures.examination import fit_examined
from clickmix.mixtures.impressions_needed import expected_error, impressions_for
from clickmix.mixtures.joint import JointFit, fit_jointly
from clickmix.mixtures.mixture import Mixture, Verdict
from clickmix.mixtures.neighbours import Neighbours, can_share, fit_neighbours
from clickmix.mixtures.single import fit_group

__all__ = [
    "JointFit",
    "Mixture",
    "Neighbours",
    "Observations",
    "Verdict",
    "can_share",
    "expected_error",
    "fit_examined",
    "fit_group",
    "fit_jointly",
    "fit_neighbours",
    "impressions_for",
]
