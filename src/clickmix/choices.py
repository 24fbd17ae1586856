"""The corrections the paper compares with, by name and with their options.   name, options -> Correction"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from clickmix.corrections import (
    AffineCorrection,
    BiasParameters,
    ClicksOverExpected,
    Clip,
    Correction,
    InversePropensity,
    PlainEM,
    RegressionEM,
)
from clickmix.errors import SettingError
from clickmix.paths import are_paths

# What each correction may be given beside the log.
CHOICES: dict[str, tuple[str, ...]] = {
    "affine": ("parameters", "clip"),
    "ips": ("parameters", "clip"),
    "coec": ("clip",),
    "coec-best-position": ("clip",),
    "plain-em": ("trust", "clip"),
    "regression-em": ("features", "regression", "trust", "iterations", "seed", "clip"),
}
FITTING = ("mixture", "plain-em", "regression-em")  # those with a fit that can be written


@dataclass(frozen=True)
class Options:
    """What only some corrections take; None where it was not given.

    parameters   a parameters file, or `BiasParameters` (affine), or theta (ips)
    clip         how an estimate becomes relevance
    features     of every document of the log, in any layout that `clickmix.rankers.open_features` takes
    regression   the name of a regression, see `clickmix.regressions`
    trust        whether documents that are not relevant are clicked, too
    iterations   of regression EM, at most
    seed         of a regression; the same seed gives the same bytes
    """

    parameters: Any = None
    clip: Clip | None = None
    features: Any = None
    regression: str | None = None
    trust: bool | None = None
    iterations: int | None = None
    seed: int | None = None

    def refuse_all(self, correction: str, *, but: Sequence[str] = ()) -> None:
        """Complain about what a correction does not take."""
        for field in fields(self):
            if getattr(self, field.name) is not None and field.name not in but:
                takers = [name for name, taken in CHOICES.items() if field.name in taken]
                raise SettingError(f"{field.name} is for {', '.join(takers)}, and the correction is {correction}.")

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these that were given."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def choose(correction: str, options: Options) -> Correction:
    """The correction of that name, one of `CHOICES`."""
    options.refuse_all(correction, but=CHOICES[correction])
    clip = options.given("clip")
    if correction == "affine":
        given = _needed(options.parameters, "parameters", correction, "alpha and beta of every position")
        return AffineCorrection(given if isinstance(given, BiasParameters) else BiasParameters.read(given), **clip)
    if correction == "ips":
        given = _needed(options.parameters, "parameters", correction, "theta of every position")
        return InversePropensity(BiasParameters.read_examination(given).alpha if are_paths(given) else given, **clip)
    if correction == "plain-em":
        return PlainEM(**options.given("trust"), **clip)
    if correction == "regression-em":
        return _regression_em(options)
    return ClicksOverExpected("best-position" if correction == "coec-best-position" else "positions", **clip)


def _regression_em(options: Options) -> Correction:
    from clickmix.regressions import choose_regression  # late: rankers are not needed by the others

    features = _needed(options.features, "features", "regression-em", "the features of every document of the log")
    name: Any = options.regression or "dnn-sigmoid"  # the paper's choice
    regression = choose_regression(name, features, **options.given("seed"))
    return RegressionEM(regression, **options.given("trust", "iterations", "clip"))


def _needed(value: Any, name: str, correction: str, what: str) -> Any:
    if value is None:
        raise SettingError(f"{correction} needs {what}: give --{name} FILE (in Python {name}=...).")
    return value
