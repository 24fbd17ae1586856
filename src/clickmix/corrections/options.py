"""What can be chosen by name, and what goes with it. Nothing heavy is imported: the command asks before it works."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from clickmix.errors import SettingError

if TYPE_CHECKING:
    from clickmix.corrections.clipping import Clip
    from clickmix.mixtures.problem import Prior

# What each correction may be given beside the log.
CHOICES: dict[str, tuple[str, ...]] = {
    "mixture": ("mixture", "prior", "examination"),
    "none": (),
    "affine": ("parameters", "clip"),
    "ips": ("parameters", "clip"),
    "coec": ("clip",),
    "coec-best-position": ("clip",),
    "plain-em": ("trust", "clip"),
    "regression-em": ("features", "regression", "trust", "iterations", "seed", "clip"),
}
CORRECTIONS = tuple(CHOICES)
COMPARED = CORRECTIONS[2:]  # those the paper compares with
FITTING = ("mixture", "plain-em", "regression-em")  # those with a fit that can be written


@dataclass(frozen=True)
class Options:
    """What only some corrections take; its default where it was not given.

    mixture, prior, examination   see `clickmix.MixtureCorrection`
    parameters   a parameters file, or `BiasParameters` (affine), or theta (ips)
    clip         how an estimate becomes relevance
    features     of every document of the log, in any layout that `clickmix.rankers.open_features` takes
    regression   the name of a regression, see `clickmix.lab.regressions`
    trust        whether documents that are not relevant are clicked, too
    iterations   of regression EM, at most
    seed         of a regression; the same seed gives the same bytes
    """

    mixture: str = "auto"
    prior: Prior = "position"
    examination: str = "pbm"
    parameters: Any = None
    clip: Clip | None = None
    features: Any = None
    regression: str | None = None
    trust: bool | None = None
    iterations: int | None = None
    seed: int | None = None

    def check(self, correction: str) -> None:
        """Complain about what a correction does not take."""
        for field in fields(self):
            value, default = getattr(self, field.name), field.default
            # Texts may be equal without being the same; arrays and frames cannot be compared with None.
            given = value is not None if default is None else value != default
            if given and field.name not in CHOICES[correction]:
                takers = [name for name, taken in CHOICES.items() if field.name in taken]
                raise SettingError(f"{field.name} is for {', '.join(takers)}, and the correction is {correction}.")

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these that were given."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def needs_lists(correction: str, examination: str) -> bool:
    """Whether what stands above a document must be known."""
    return correction == "mixture" and examination != "pbm"
