"""Measures: the text `ndcg@10` <-> a value that says what to measure."""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

from clickmix.errors import SettingError

Gain = Literal["exponential", "linear"]
GAINS: tuple[Gain, ...] = get_args(Gain)

GAINED = ("ndcg", "dcg")  # they add up gains
THRESHOLDED = ("mrr", "map", "precision", "recall")  # they only ask whether a document is relevant
NAMES = (*GAINED, *THRESHOLDED)
NOT_A_GRADE = "is not a number above 0, the lowest that counts as relevant"

_TEXT = re.compile(r"(?P<name>[^@:]*)(?:@(?P<cutoff>[^:]*))?(?::(?P<key>[^=]*)=(?P<value>.*))?")


@dataclass(frozen=True)
class Measure:
    """What is measured: a name, a cut-off (None: the whole list), and the gain or the grade that counts as relevant.

    >>> Measure.parse("ndcg@10")
    Measure(name='ndcg', cutoff=10, gain='exponential', grade=1.0)
    >>> str(Measure("precision", cutoff=5, grade=2))
    'precision@5:grade=2'
    >>> str(Measure("dcg", gain="linear"))
    'dcg:gain=linear'
    """

    name: str
    cutoff: int | None = None
    gain: Gain = "exponential"
    grade: float = 1.0

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.cutoff is not None and (type(self.cutoff) is not int or self.cutoff < 1):
            raise SettingError(f"{self.name}: the cut-off {self.cutoff!r} is not a whole number from 1, as in ndcg@10.")
        name, gain, grade = self.name, self.gain, self.grade
        if gain not in GAINS:
            raise SettingError(f"{name}: unknown gain {gain!r}. The gains are {' and '.join(GAINS)}.")
        if name in THRESHOLDED and gain != "exponential":
            raise SettingError(f"{name} has no gain: it asks whether a document is relevant. Set grade instead.")
        if isinstance(grade, bool) or not 0 < grade < math.inf:
            raise SettingError(f"{name}: the grade {grade!r} {NOT_A_GRADE}.")
        if name in GAINED and grade != 1:
            raise SettingError(f"{name} has no grade that counts as relevant: it adds up gains. Set gain instead.")
        object.__setattr__(self, "grade", float(grade))

    @classmethod
    def parse(cls, text: str) -> Measure:
        """The measure written as `name` or `name@cutoff`, perhaps followed by `:gain=linear` or `:grade=2`."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise SettingError(
                f"{text!r} is not a measure. Write it as in ndcg@10, ndcg@10:gain=linear or map:grade=2."
            )
        name, cutoff, key, value = match.group("name", "cutoff", "key", "value")
        _check_name(name)
        if cutoff is not None and not re.fullmatch("[1-9][0-9]{0,17}", cutoff):
            raise SettingError(f"{text}: the cut-off {cutoff!r} is not a whole number from 1, as in ndcg@10.")
        limit = None if cutoff is None else int(cutoff)
        if key is None:
            return cls(name, limit)
        if key == "gain":
            return cls(name, limit, gain=cast(Gain, value))  # the constructor refuses unknown gains
        if key == "grade":
            return cls(name, limit, grade=_number(text, value))
        raise SettingError(
            f"{text}: unknown setting {key!r}. The settings are gain (ndcg, dcg) and grade (the others)."
        )

    def __str__(self) -> str:
        limit = "" if self.cutoff is None else f"@{self.cutoff}"
        gain = "" if self.gain == "exponential" else f":gain={self.gain}"
        grade = "" if self.grade == 1 else f":grade={self.grade!r}".removesuffix(".0")
        return self.name + limit + gain + grade


def _check_name(name: str) -> None:
    if name in NAMES:
        return
    near = difflib.get_close_matches(name.lower(), NAMES, n=2)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise SettingError(f"Unknown measure {name!r}. {hint}The measures are {', '.join(NAMES)}.")


def _number(text: str, grade: str) -> float:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", grade):
        raise SettingError(f"{text}: the grade {grade!r} {NOT_A_GRADE}.")
    return float(grade)
