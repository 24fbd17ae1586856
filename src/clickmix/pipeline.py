"""From a click log to labels in one call: count, fit, label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clickmix.choices import CHOICES, Options, choose
from clickmix.corrections import Clip, Correction, MixtureCorrection, NoCorrection
from clickmix.counts import BadRows, Counts, count
from clickmix.errors import SettingError
from clickmix.mixtures.fit import Prior
from clickmix.paths import are_paths

CORRECTIONS = ("mixture", "none", *CHOICES)
NONE_GIVEN = Options()


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
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRows = "fail",
    memory: str | None = None,
    engine: object = None,
) -> Any:
    """Relevance labels for a click log: `Labels` for paths, tables and counts, for a frame the same kind of frame."""
    options = Options(parameters, clip, features, regression, trust, iterations, seed)
    chosen = choose_correction(correction, mixture=mixture, prior=prior, examination=examination, options=options)
    if isinstance(log, Counts):
        return chosen.fit(log).label(log)
    lists = needs_lists(correction, examination)
    counts = count(log, columns=columns, context=context, bad_rows=bad_rows, memory=memory, engine=engine, lists=lists)
    labels = chosen.fit(counts).label(counts)
    return labels if are_paths(log) else labels.like(log)


def needs_lists(correction: str, examination: str) -> bool:
    """Whether what stands above a document must be known."""
    return correction == "mixture" and examination != "pbm"


def choose_correction(
    correction: str, *, mixture: str, prior: Prior, examination: str = "pbm", options: Options = NONE_GIVEN
) -> Correction:
    """The correction of that name."""
    if correction in CHOICES:
        return choose(correction, options)
    options.refuse_all(correction)
    if correction == "none":
        return NoCorrection()
    if correction == "mixture":
        return MixtureCorrection(mixture, prior, examination=examination)
    raise SettingError(f"correction {correction!r}: expected one of {', '.join(CORRECTIONS)}.")
