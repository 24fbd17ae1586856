"""Corrections: Counts -> Labels. Each has `fit(counts)`, and what that returns has `label(counts)`."""

from clickmix.corrections.fitted import Explanation, MixtureFit
from clickmix.corrections.group import Group
from clickmix.corrections.labels import Labels
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.none import NoCorrection

__all__ = ["Explanation", "Group", "Labels", "MixtureCorrection", "MixtureFit", "NoCorrection"]
