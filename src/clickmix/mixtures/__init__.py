"""Mixtures: relevant and non-relevant documents click at two rates; which rates, and how many of each.

groups -> mixtures -> labels
"""

from clickmix.mixtures.mixture import Mixture, Verdict, fit_group, fit_jointly
from clickmix.mixtures.observations import Observations

__all__ = ["Mixture", "Observations", "Verdict", "fit_group", "fit_jointly"]
