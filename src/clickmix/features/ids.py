"""Ids in numpy: whole numbers or text, as in the source.   a column of SQL or numpy -> Ids

Whole numbers are int64. If some are too large for that, the column is uint64; if some fit neither, it is text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import name
from clickmix.errors import InputError
from clickmix.log.source import Source, is_wide, kind_of
from clickmix.types import Ints

Ids = NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.str_]
WHOLE = ("BIGINT", "UBIGINT")


def id_sql(source: Source, column: str, engine: DuckDB) -> str:
    """SQL that selects a column of ids. Text formats have no types: their ids are whole numbers if all look like it."""
    type, quoted = source.types[column], name(column)
    if source.is_text:
        whole = f"bool_and(regexp_full_match({quoted}, '0|-?[1-9][0-9]*'))"
        type = engine.rows(f"SELECT CASE WHEN {whole} THEN {_widest(quoted)} END FROM {source.table()}")[0][0]
    elif kind_of(type) != "integer":
        type = ""
    elif is_wide(type):
        type = engine.rows(f"SELECT {_widest(quoted)} FROM {source.table()}")[0][0]
    return f"CAST({quoted} AS {type or 'VARCHAR'}) AS {quoted}"


def _widest(column: str) -> str:
    """SQL for the type in which every whole number of a column can be fetched."""
    fits = (f"WHEN count(TRY_CAST({column} AS {type})) = count({column}) THEN '{type}'" for type in WHOLE)
    return f"CASE {' '.join(fits)} ELSE 'VARCHAR' END"


def checked_ids(where: str, column: str, given: ArrayLike) -> Ids:
    """Ids as whole numbers or text; `where` and `column` name them in messages."""
    ids: Any = np.ma.asarray(given)
    missing = np.ma.getmaskarray(ids) | (np.ma.getdata(ids) == None)  # noqa: E711  (element by element)
    if missing.any():
        raise InputError(f"{where}, row {int(np.argmax(missing)) + 1}: {column} is missing. Every row needs one.")
    plain = np.ma.getdata(ids)
    if plain.ndim == 1 and plain.dtype.kind in "iu":
        return whole_ids(plain)
    text = plain.dtype.kind in "UT" or (plain.dtype == object and all(isinstance(each, str) for each in plain))
    if plain.ndim == 1 and (text or not len(plain)):
        return plain.astype(np.str_)
    raise InputError(f"{where}: {column} has type {plain.dtype}. Expected text or whole numbers, one per row.")


def whole_ids(numbers: NDArray[Any]) -> Ids:
    """Whole numbers of any size as ids.

    >>> whole_ids(np.array([7], np.uint64)).dtype, whole_ids(np.array([2**63], np.uint64)).dtype
    (dtype('int64'), dtype('uint64'))
    """
    fits = numbers.max(initial=0) <= np.iinfo(np.int64).max
    return numbers.astype(np.int64) if fits else numbers.astype(np.uint64)


def comparable(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Both unchanged, or as text if one is int64 and the other uint64: numpy would compare these as reals."""
    if {first.dtype.kind, second.dtype.kind} == {"i", "u"}:
        return first.astype(np.str_), second.astype(np.str_)
    return first, second


def codes(known: Ids, wanted: Ids) -> tuple[Ints, Ints]:
    """Numbers that are equal if the ids are; text is never equal to a number.

    >>> [code.tolist() for code in codes(np.array([7, 3]), np.array([3, 9]))]
    [[1, 0], [0, 2]]
    """
    if (known.dtype.kind in "iu") != (wanted.dtype.kind in "iu"):
        first = np.unique(known, return_inverse=True)[1]
        return first, first.max(initial=-1) + 1 + np.unique(wanted, return_inverse=True)[1]
    code = np.unique(np.concatenate(comparable(known, wanted)), return_inverse=True)[1]
    return code[: len(known)], code[len(known) :]


def id_kind(ids: Ids) -> str:
    """What kind of ids these are, for messages."""
    return "whole number" if ids.dtype.kind in "iu" else "text"
