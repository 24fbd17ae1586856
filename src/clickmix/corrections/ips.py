"""Inverse propensity scoring (IPS) with given position bias: a click at k counts 1 / theta_k.   Counts -> Labels

    estimate = sum over a document's cells of c / theta_k, divided by the sum of n
This is affine correction with alpha = theta and beta = 0. It is unbiased if relevant documents that are examined are
always clicked and others never; trust bias stays in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from clickmix.corrections.affine import affine_labels
from clickmix.corrections.clipping import CLIP, Clip, checked_clip, clip_title
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.labels import Labels
from clickmix.corrections.parameters import PARAMETERS, BiasParameters, given_examination
from clickmix.counts.counts import Counts
from clickmix.types import Progress


@dataclass(frozen=True)
class InversePropensity:
    """Relevance by clicks / examination; theta is the examination of every position, from position 1 on."""

    parameters: BiasParameters
    clip: Clip = "one"

    def __init__(self, theta: ArrayLike, clip: Clip = "one") -> None:
        object.__setattr__(self, "parameters", BiasParameters.of_examination(theta))
        object.__setattr__(self, "clip", checked_clip(clip))

    @property
    def title(self) -> str:
        """As tables show it."""
        return clip_title("ips", self.clip)

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> InversePropensity:
        """There is nothing to fit: theta is given."""
        return self

    def label(self, counts: Counts) -> Labels:
        """The estimate of every document, and relevance by clipping it."""
        return affine_labels(counts, self.parameters, clip=self.clip, correction="ips")


@CORRECTIONS.register("ips", help="Clicks divided by examination theta, which you know.", options=(PARAMETERS, CLIP))
def _ips(*, parameters: Any = None, clip: Clip = "one") -> InversePropensity:
    return InversePropensity(given_examination(parameters), clip)
