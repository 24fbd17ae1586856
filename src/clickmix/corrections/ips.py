"""Inverse propensity scoring (IPS) with given position bias: a click at k counts 1 / theta_k.   Counts -> Labels

    estimate = sum over a document's cells of c / theta_k, divided by the sum of n
This is affine correction with alpha = theta and beta = 0. It is unbiased if people always click relevant documents that
they examine, and never others. Trust bias remains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from clickmix.corrections.affine import affine_labels
from clickmix.corrections.clipping import CLIP, Clip, checked_clip, clip_title
from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.corrections.parameters import PARAMETERS, BiasParameters, given_examination
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.types import Progress


@dataclass(frozen=True)
class InversePropensity(TakesCounts):
    """relevance = mean of click / theta, with known examination theta of every position.

    >>> from clickmix import Counts
    >>> counts = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 2], [100, 100], [60, 20])
    >>> InversePropensity([0.8, 0.5]).label(counts).relevance.round(2).tolist()
    [0.75, 0.4]
    """

    parameters: BiasParameters
    clip: Clip = "one"

    def __init__(self, theta: ArrayLike, clip: Clip = "one") -> None:
        object.__setattr__(self, "parameters", BiasParameters.of_examination(theta))
        object.__setattr__(self, "clip", checked_clip(clip))

    @property
    def title(self) -> str:
        """The name in tables."""
        return clip_title("ips", self.clip)

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> InversePropensity:
        """Nothing to fit: theta is given."""
        return self

    def label(self, counts: Counts) -> Labels:
        """Estimate and clipped relevance of every document."""
        return affine_labels(counts, self.parameters, clip=self.clip, correction="ips")


@CORRECTIONS.register("ips", help="Clicks divided by examination theta, which you supply.", options=(PARAMETERS, CLIP))
def _ips(*, parameters: Any = None, clip: Clip = "one") -> InversePropensity:
    return InversePropensity(given_examination(parameters), clip)
