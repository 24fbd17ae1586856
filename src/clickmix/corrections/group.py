"""Group: places with one chance of being examined, and what was fitted to them.   mixtures -> labels"""

from __future__ import annotations

from dataclasses import dataclass

from clickmix.groups import SMALLEST_GROUP, Place
from clickmix.mixtures import Mixture, Verdict


@dataclass(frozen=True)
class PlaceCounts:
    """A place, and what was seen there."""

    place: Place
    documents: int
    impressions: int
    clicks: int


@dataclass(frozen=True)
class Group:
    """Places with one chance of being examined, the mixture fitted to them, and the prior their documents get."""

    places: tuple[PlaceCounts, ...]
    mixture: Mixture
    prior: float

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

    def verdict(self, place: PlaceCounts) -> Verdict:
        """The verdict on one of its places: a small one was only joined."""
        small = place.documents < SMALLEST_GROUP and len(self.places) > 1
        return Verdict.TOO_FEW_DOCUMENTS if small else self.mixture.verdict
