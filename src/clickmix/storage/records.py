"""Records: frozen dataclasses <-> JSON values. The types of the fields say what a file may hold.

    encode(record) -> JSON value;   decode(type, JSON value) -> record, or a MismatchError that says where

A field can be a bool, int, float, str, `Literal`, `StrEnum`, another record, `tuple[X, ...]`, `Mapping[int, X]` or
`X | None`. `Annotated[float, Range(0, 1)]` limits a number. A record can define `check_fields`, which raises a
MismatchError if its fields do not agree.
"""

from __future__ import annotations

import enum
import math
import re
import reprlib
import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

LARGEST_WHOLE = 2**63 - 1
T = TypeVar("T")
Decoder = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        low = f" from {self.low}" if self.low > -math.inf else ""
        return low + (f" to {self.high}" if self.high < math.inf else "")


class MismatchError(Exception):
    """A JSON value that does not fit a record: `at` is the path to it, such as groups[3].mixture.rates."""

    def __init__(self, problem: str, *, at: str = "") -> None:
        self.problem = problem
        self.at = at
        super().__init__(f"{at}: {problem}" if at else problem)


def encode(value: Any) -> Any:
    """A record, or a value of one of its fields, as JSON.

    >>> encode(Range(0.0, 1.0))
    {'low': 0.0, 'high': 1.0}
    """
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return str(value) if isinstance(value, enum.StrEnum) else value


def decode(record: type[T], payload: Any) -> T:
    """The record of this type from JSON. Refuses missing and extra fields, wrong types and numbers out of range.

    >>> decode(Range, {"low": 0, "high": 1})
    Range(low=0.0, high=1.0)
    >>> decode(Range, {"low": 0, "high": "x"})
    Traceback (most recent call last):
        ...
    clickmix.storage.records.MismatchError: high: found 'x', expected a number
    """
    return cast(T, _decoder(cast(Hashable, record))(payload, ""))


@cache
def _decoder(wanted: Any) -> Decoder:
    """The function that turns a JSON value and the path to it into a value of the wanted type."""
    origin, arguments = get_origin(wanted), get_args(wanted)
    if isinstance(wanted, type) and is_dataclass(wanted):
        hints = get_type_hints(wanted, include_extras=True)
        return partial(_record, wanted, {field.name: _decoder(hints[field.name]) for field in fields(wanted)})
    if origin is Annotated:
        return partial(_number, *arguments)
    if wanted in (int, float):
        return partial(_number, wanted, Range())
    if wanted in (str, bool):
        return partial(_plain, wanted)
    if origin is Literal:
        return partial(_choice, {value: value for value in arguments})
    if isinstance(wanted, enum.EnumType):
        members: Mapping[str, Any] = wanted.__members__
        return partial(_choice, {str(member): member for member in members.values()})
    if origin is tuple and arguments[1:] == (...,):
        return partial(_list, _decoder(arguments[0]))
    if origin is Mapping and arguments[0] is int:
        return partial(_mapping, _decoder(arguments[1]))
    if origin in (Union, types.UnionType) and len(arguments) == 2 and arguments[1] is types.NoneType:
        return partial(_optional, _decoder(arguments[0]))
    raise TypeError(f"{wanted} cannot be a field of a record")


def _record(wanted: Callable[..., Any], decoders: Mapping[str, Decoder], value: Any, at: str) -> Any:
    if not isinstance(value, dict):
        raise _unexpected(value, "an object", at)
    for problem, names in (("missing", decoders.keys() - value), ("unknown", value.keys() - decoders)):
        if names:
            name = reprlib.repr(min(names))
            raise MismatchError(f"{problem} field {name}, expected {', '.join(sorted(decoders))}", at=at)
    dot = f"{at}." if at else ""
    made = wanted(**{name: decode(value[name], f"{dot}{name}") for name, decode in decoders.items()})
    if hasattr(made, "check_fields"):
        try:
            made.check_fields()
        except MismatchError as error:
            raise MismatchError(error.problem, at=f"{dot}{error.at}" if error.at else at) from None
    return made


def _number(wanted: type[int] | type[float], limits: Range, value: Any, at: str) -> int | float:
    """A number within limits; integers become floats if a float is wanted."""
    kinds = (int,) if wanted is int else (int, float)
    right = isinstance(value, kinds) and not isinstance(value, bool)
    # Compare before converting: an int may be too large for a float.
    if not right or not limits.low <= value <= limits.high or (abs(value) > LARGEST_WHOLE and isinstance(value, int)):
        raise _unexpected(value, f"a {'whole ' if wanted is int else ''}number{limits}", at)
    if not math.isfinite(value):
        raise _unexpected(value, "a finite number", at)
    return wanted(value)


def _plain(wanted: type, value: Any, at: str) -> Any:
    if not isinstance(value, wanted):
        raise _unexpected(value, "text" if wanted is str else "true or false", at)
    return value


def _choice(values: Mapping[str, Any], value: Any, at: str) -> Any:
    if not isinstance(value, str) or value not in values:
        raise _unexpected(value, f"one of {', '.join(values)}", at)
    return values[value]


def _list(decode: Decoder, value: Any, at: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _unexpected(value, "a list", at)
    return tuple(decode(item, f"{at}[{i}]") for i, item in enumerate(value))


def _mapping(decode: Decoder, value: Any, at: str) -> dict[int, Any]:
    if not isinstance(value, dict):
        raise _unexpected(value, "an object", at)
    for key in value:
        if not re.fullmatch("0|[1-9][0-9]{0,17}", key):
            raise MismatchError(f"found the key {reprlib.repr(key)}, expected whole numbers", at=at)
    return {int(key): decode(item, f"{at}[{key}]") for key, item in value.items()}


def _optional(decode: Decoder, value: Any, at: str) -> Any:
    return None if value is None else decode(value, at)


def _unexpected(value: Any, expected: str, at: str) -> MismatchError:
    return MismatchError(f"found {reprlib.repr(value)}, expected {expected}", at=at)
