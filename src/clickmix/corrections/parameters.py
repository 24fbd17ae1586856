"""Bias parameters: alpha and beta of every position, checked, read and written.

P(click at k) = alpha_k relevance + beta_k. With position bias alone, alpha_k is the examination theta_k and beta_k is
0. A parameters file is JSON: {"alpha": [...], "beta": [...]}, or {"theta": [...]}, or all three; the first number of
each list is for position 1.
"""

from __future__ import annotations

import json
import os
import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from clickmix.corrections.correction import check_positions_only
from clickmix.counts.counts import Counts
from clickmix.errors import InputError, SettingError
from clickmix.registry import Option
from clickmix.storage.atomic import write_atomically
from clickmix.storage.documents import strict_json
from clickmix.types import Floats

LEAST_ALPHA = 1e-6  # below this, estimates divide by next to nothing
ROUNDING = 1e-9
LARGEST_FILE = 16 * 1024 * 1024
FIELDS = ("alpha", "beta", "theta")

PARAMETERS = Option("parameters", "JSON file: alpha and beta (affine), theta (ips).", type=Path)


@dataclass(frozen=True, eq=False)
class BiasParameters:
    """alpha and beta of every position, from position 1, for affine correction.

    >>> BiasParameters([0.5, 0.4], [0.2, 0.1]).positions
    2
    """

    alpha: Floats
    beta: Floats

    def __init__(self, alpha: ArrayLike, beta: ArrayLike) -> None:
        object.__setattr__(self, "alpha", _checked(alpha, name="alpha", least=LEAST_ALPHA))
        object.__setattr__(self, "beta", _checked(beta, name="beta", least=0.0))
        if len(self.alpha) != len(self.beta):
            raise SettingError(
                f"alpha has {len(self.alpha)} positions, beta has {len(self.beta)}. Give both for the same positions."
            )
        above = self.alpha + self.beta > 1 + ROUNDING
        if above.any():
            k = int(above.argmax())
            raise SettingError(
                f"alpha + beta at position {k + 1} is {self.alpha[k] + self.beta[k]:g}, expected at most 1: it is the "
                "click rate of a relevant document there. Check the numbers."
            )

    @classmethod
    def of_examination(cls, theta: ArrayLike) -> BiasParameters:
        """Position bias alone: alpha = theta, beta = 0."""
        checked = _checked(theta, name="theta", least=LEAST_ALPHA)
        return cls(checked, np.zeros(len(checked)))

    @property
    def positions(self) -> int:
        """The number of positions."""
        return len(self.alpha)

    def write(self, path: str | Path) -> None:
        """Write a parameters file with alpha and beta."""
        text = json.dumps({"alpha": self.alpha.tolist(), "beta": self.beta.tolist()}, indent=1)
        write_atomically(path, f"{text}\n".encode())

    @classmethod
    def read(cls, path: str | Path) -> BiasParameters:
        """The alpha and beta of a parameters file."""
        return cls._from_file(path, ("alpha", "beta"))

    @classmethod
    def read_examination(cls, path: str | Path) -> BiasParameters:
        """The theta of a parameters file, as alpha = theta and beta = 0."""
        return cls._from_file(path, ("theta",))

    @classmethod
    def _from_file(cls, path: str | Path, names: tuple[str, ...]) -> BiasParameters:
        lists = [_list(path, _fields(path), name) for name in names]
        try:
            return cls(*lists) if len(lists) == 2 else cls.of_examination(*lists)
        except SettingError as error:
            raise InputError(f"{path}: {error}") from None


def given_bias(parameters: Any) -> BiasParameters:
    """alpha and beta: as they are, or from a parameters file."""
    if isinstance(parameters, BiasParameters):
        return parameters
    if isinstance(parameters, (str, os.PathLike)):
        return BiasParameters.read(Path(parameters))
    if parameters is None:
        raise SettingError(
            "affine needs alpha and beta of every position. Pass --parameters FILE (in Python parameters=...)."
        )
    raise SettingError(
        f"parameters={reprlib.repr(parameters)}: affine needs alpha and beta of every position. Pass "
        "clickmix.BiasParameters(alpha, beta), or the path of a parameters file."
    )


def given_examination(parameters: Any) -> Any:
    """theta: as it is, from parameters without trust, or from a parameters file."""
    if parameters is None:
        raise SettingError("ips needs theta of every position. Pass --parameters FILE (in Python parameters=...).")
    if isinstance(parameters, (str, os.PathLike)):
        return BiasParameters.read_examination(Path(parameters)).alpha
    if not isinstance(parameters, BiasParameters):
        return parameters
    if parameters.beta.any():
        k = int((parameters.beta > 0).argmax())
        raise SettingError(
            f"parameters: beta at position {k + 1} is {parameters.beta[k]:g}, but ips needs beta 0 (no trust bias). "
            "Pass clickmix.BiasParameters.of_examination(theta), or use affine."
        )
    return parameters.alpha


def check_fits(parameters: BiasParameters, counts: Counts, *, correction: str) -> None:
    """Refuse a log with context columns, or with more positions than there are parameters."""
    check_positions_only(counts, correction=correction)
    ((last,),) = counts.engine.rows(f"SELECT max(position) FROM {counts.table}")
    if last > parameters.positions:
        raise InputError(
            f"The parameters cover {parameters.positions} positions, but the log goes down to position {last}. "
            "Give parameters for all positions, or remove the lower ones from the log."
        )


def _checked(values: ArrayLike, *, name: str, least: float) -> Floats:
    """A read-only row of probabilities of at least `least`."""
    try:
        row = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError(f"{name} must be one number per position, found {reprlib.repr(values)}.") from None
    if row.ndim != 1 or not len(row):
        raise SettingError(f"{name} must be one number per position, found an array of shape {row.shape}.")
    wrong = ~((row >= least) & (row <= 1))
    if wrong.any():
        k = int(wrong.argmax())
        expected = f"a number from {least:g} to 1" if least else "a probability, from 0 to 1"
        raise SettingError(f"{name} at position {k + 1} is {row[k]:g}, expected {expected}.")
    row.setflags(write=False)
    return row


def _fields(path: str | Path) -> dict[str, Any]:
    path = Path(path)
    if not path.is_file():
        raise InputError(f'{path}: no such file. Expected parameters, for instance {{"alpha": [...], "beta": [...]}}.')
    if path.stat().st_size > LARGEST_FILE:
        raise InputError(f"{path}: larger than {LARGEST_FILE // 1024**2} MiB, so not a parameters file.")
    try:
        fields = strict_json(path.read_bytes().decode())
    except (ValueError, RecursionError):
        raise InputError(
            f'{path}: not JSON. Expected {{"alpha": [...], "beta": [...]}} or {{"theta": [...]}}.'
        ) from None
    if not isinstance(fields, dict) or not set(fields) <= set(FIELDS):
        found = ", ".join(sorted(fields)) if isinstance(fields, dict) else f"a {type(fields).__name__}"
        raise InputError(f"{path}: found {found}. Expected an object with alpha and beta, or theta, and nothing else.")
    return fields


def _list(path: str | Path, fields: dict[str, Any], name: str) -> list[float]:
    if name not in fields:
        raise InputError(
            f"{path}: no {name}. Found {', '.join(sorted(fields)) or 'nothing'}; expected a list {name}, one number "
            "per position."
        )
    values = fields[name]
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise InputError(f"{path}: {name} is not a list of numbers. Give one number per position.")
    return values
