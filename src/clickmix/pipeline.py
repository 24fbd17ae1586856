"""From a click log to labels in one call: count, fit, label."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clickmix.choices import CORRECTIONS, Options, needs_lists
from clickmix.contexts import MOST_CONTEXTS
from clickmix.corrections import (
    AffineCorrection,
    BiasParameters,
    ClicksOverExpected,
    Clip,
    Correction,
    InversePropensity,
    MixtureCorrection,
    NoCorrection,
    PlainEM,
    RegressionEM,
)
from clickmix.counts import BadRows, Counts, count
from clickmix.errors import SettingError
from clickmix.mixtures.fit import Prior
from clickmix.paths import are_paths


def debias(
    log: Any,
    *,
    correction: str = "mixture",
    mixture: str = "auto",
    prior: Prior = "position",
    examination: str = "pbm",
    parameters: Any = None,
    clip: Clip | None = None,
    features: Any = None,
    regression: str | None = None,
    trust: bool | None = None,
    iterations: int | None = None,
    seed: int | None = None,
    context: Sequence[str] = (),
    max_contexts: int = MOST_CONTEXTS,
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRows = "fail",
    memory: str | None = None,
    engine: object = None,
) -> Any:
    """Relevance labels for a click log: `Labels` for paths, tables and counts, for a frame the same kind of frame."""
    options = Options(mixture, prior, examination, parameters, clip, features, regression, trust, iterations, seed)
    chosen = choose_correction(correction, options)
    if isinstance(chosen, MixtureCorrection):
        chosen = replace(chosen, checks=False)  # labels are all that comes back
    if isinstance(log, Counts):
        _check_counted(context=context, columns=columns, bad_rows=bad_rows, memory=memory, engine=engine)
        return chosen.fit(log).label(log)
    lists = needs_lists(correction, examination)
    counts = count(
        log,
        columns=columns,
        context=context,
        max_contexts=max_contexts,
        bad_rows=bad_rows,
        memory=memory,
        engine=engine,
        lists=lists,
    )
    labels = chosen.fit(counts).label(counts)
    return labels if are_paths(log) else labels.like(log)


def _check_counted(**settings: Any) -> None:
    """Settings of counting say nothing about a log that is counted."""
    for name, value in settings.items():
        if value and (name, value) != ("bad_rows", "fail"):
            raise SettingError(f"{name}: these are counts, made without it. Give it to clickmix.count.")


def choose_correction(correction: str, options: Options) -> Correction:
    """The correction of that name."""
    if correction not in CORRECTIONS:
        raise SettingError(f"correction {correction!r}: expected one of {', '.join(CORRECTIONS)}.")
    options.check(correction)
    if correction == "mixture":
        return MixtureCorrection(options.mixture, options.prior, examination=options.examination)
    return NoCorrection() if correction == "none" else _compared(correction, options)


def _compared(correction: str, options: Options) -> Correction:
    """One of those the paper compares with."""
    clip = options.given("clip")
    if correction == "affine":
        given = _needed(options.parameters, "parameters", correction, "alpha and beta of every position")
        return AffineCorrection(_bias(given), **clip)
    if correction == "ips":
        given = _needed(options.parameters, "parameters", correction, "theta of every position")
        return InversePropensity(_examination(given), **clip)
    if correction == "plain-em":
        return PlainEM(**options.given("trust"), **clip)
    if correction == "regression-em":
        return _regression_em(options)
    return ClicksOverExpected("best-position" if correction == "coec-best-position" else "positions", **clip)


def _bias(given: Any) -> BiasParameters:
    if isinstance(given, BiasParameters):
        return given
    if isinstance(given, (str, os.PathLike)):
        return BiasParameters.read(Path(given))
    raise SettingError(
        f"parameters={reprlib.repr(given)}: affine needs alpha and beta of every position. Give "
        "clickmix.BiasParameters(alpha, beta), or the path of a parameters file."
    )


def _examination(given: Any) -> Any:
    if isinstance(given, (str, os.PathLike)):
        return BiasParameters.read_examination(Path(given)).alpha
    if not isinstance(given, BiasParameters):
        return given
    if given.beta.any():
        k = int((given.beta > 0).argmax())
        raise SettingError(
            f"parameters: beta at position {k + 1} is {given.beta[k]:g}, and ips knows position bias alone, beta 0. "
            "Give clickmix.BiasParameters.of_examination(theta), or choose affine."
        )
    return given.alpha


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
