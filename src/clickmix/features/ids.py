"""Ids as numpy holds them: whole numbers or text, each as it came.   a column of SQL or numpy -> Ids

Whole numbers are int64. Where some are too large for that they are uint64, and where some fit neither, text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.str_]
WHOLE = ("BIGINT", "UBIGINT")


def whole_ids(numbers: NDArray[Any]) -> Ids:
    """Whole numbers of any size as ids.

    >>> whole_ids(np.array([7], np.uint64)).dtype, whole_ids(np.array([2**63], np.uint64)).dtype
    (dtype('int64'), dtype('uint64'))
    """
    fits = numbers.max(initial=0) <= np.iinfo(np.int64).max
    return numbers.astype(np.int64) if fits else numbers.astype(np.uint64)


def id_type(column: str) -> str:
    """SQL that tells the type in which every whole number of a column can be fetched."""
    fits = (f"WHEN count(TRY_CAST({column} AS {type})) = count({column}) THEN '{type}'" for type in WHOLE)
    return f"CASE {' '.join(fits)} ELSE 'VARCHAR' END"


def comparable(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Both as they are, or as text where one is int64 and the other uint64: numpy would compare these as reals."""
    if {first.dtype.kind, second.dtype.kind} == {"i", "u"}:
        return first.astype(np.str_), second.astype(np.str_)
    return first, second
