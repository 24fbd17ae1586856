"""Mixtures: documents of each grade of relevance click at a rate of their own; which rates, and how many of each.

groups -> mixtures -> labels
"""

from clickmix.mixtures.alone import fit_group
from clickmix.mixtures.examined import fit_examined
from clickmix.mixtures.joint import JointFit, fit_jointly
from clickmix.mixtures.mixture import Mixture, Verdict
from clickmix.mixtures.neighbours import Neighbours, can_share, fit_neighbours
from clickmix.mixtures.observations import Observations

__all__ = [
    "JointFit",
    "Mixture",
    "Neighbours",
    "Observations",
    "Verdict",
    "can_share",
    "fit_examined",
    "fit_group",
    "fit_jointly",
    "fit_neighbours",
]
