"""Group: places with one chance of being examined, and what was fitted to them.   mixtures -> labels"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.groups.places import SMALLEST_GROUP, Place
from clickmix.mixtures.mixture import Mixture, Verdict


@dataclass(frozen=True)
class PlaceCounts:
    """A place, and what was seen there."""

    place: Place
    documents: int
    impressions: int
    clicks: int


@dataclass(frozen=True)
class Group:
    """Places with the same chance of being examined, the mixture fitted to them, and the prior of their documents.

    `prior` is the probability of each grade, before any click.

    >>> from clickmix import Counts, MixtureCorrection
    >>> counts = Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> (group,) = MixtureCorrection().fit(counts).groups
    >>> group.documents, group.clicks, round(group.prior_relevance, 2)
    (80, 680, 0.25)
    """

    places: tuple[PlaceCounts, ...]
    mixture: Mixture
    prior: tuple[float, ...]

    @property
    def documents(self) -> int:
        """Documents seen there; one seen at two of its places counts twice."""
        return sum(place.documents for place in self.places)

    @property
    def impressions(self) -> int:
        """Impressions there."""
        return sum(place.impressions for place in self.places)

    @property
    def clicks(self) -> int:
        """Clicks there."""
        return sum(place.clicks for place in self.places)

    @property
    def prior_relevance(self) -> float:
        """The relevance of a document without known clicks."""
        return float(np.linspace(0, 1, len(self.prior)) @ self.prior)

    @property
    def squared_error(self) -> float:
        """The expected squared error of labels from clicks here; if clicks say nothing, the variance of the prior."""
        return self.prior_variance if self.mixture.error is None else self.mixture.error**2

    @property
    def prior_variance(self) -> float:
        """The expected squared error of labels before any click."""
        x = np.linspace(0, 1, len(self.prior))
        return float((x * x) @ self.prior) - self.prior_relevance**2

    @property
    def prior_logits(self) -> tuple[float, ...]:
        """log P(grade k) / P(grade 0), for the grades above 0."""
        return tuple(np.log(np.array(self.prior[1:]) / self.prior[0]).tolist())

    def verdict(self, place: PlaceCounts) -> Verdict:
        """The verdict on one of its places: a small one was only joined."""
        small = place.documents < SMALLEST_GROUP and len(self.places) > 1
        return Verdict.TOO_FEW_DOCUMENTS if small else self.mixture.verdict
