"""Types that every stage shares."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:  # because an engine can read a log before numpy is loaded
    import numpy as np

Floats: TypeAlias = "np.ndarray[Any, Any]"
Ints: TypeAlias = "np.ndarray[Any, Any]"
Columns: TypeAlias = "dict[str, np.ndarray[Any, Any]]"
# A log: files, folders, globs or an engine's tables, by name.
Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
# How spellings of a query may differ.
Spelling: TypeAlias = Literal["case", "space", "unicode"]
# The members of families that come with clickmix, for editors to complete. Packages can register more, so signatures
# also take any text.
CorrectionName: TypeAlias = Literal[
    "affine", "coec", "coec-best-position", "coec-smoothed", "ctr-smoothed", "ctr-then-rank", "dbn", "dcm",
    "intervention", "ips", "mixture", "none", "pbm", "plain-em", "regression-em", "sdbn", "ubm",
]  # fmt: skip
MixtureName: TypeAlias = Literal["auto", "binomial", "gaussian", "graded", "nonparametric"]
LayoutName: TypeAlias = Literal["auto", "counted", "ga4", "lists", "rows", "ubi", "yandex"]


class Frame(Protocol):
    """A frame of pandas, polars, arrow, Spark, or a DuckDB relation: it has columns."""

    @property
    def columns(self) -> Any:
        """Their names, or the columns themselves."""


AnyFrame = TypeVar("AnyFrame", bound=Frame)
# Judgments, labels, features: one file, or a frame.
Table: TypeAlias = "str | os.PathLike[str] | Frame"
# Called with the share of the work done so far, from 0 to 1.
Progress: TypeAlias = Callable[[float], None]
