"""Rankings: arrays of scores and grades in, documents in order, with their ties, out."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickmix.errors import InputError
from clickmix.types import Floats, Ints

Ids = NDArray[np.generic]  # text or whole numbers


@dataclass(frozen=True)
class Ranking:
    """The documents of all queries, query by query, best score first; tied documents form a block.

    query_ids, size, grades    one per query (size: its documents), one per query, one per document
    query, position, block     per document: row of `query_ids`, place in its list from 1, number of its tie block
    first, tied                per block: its first document; how many documents are tied in it

    >>> from clickmix.evaluate import rank
    >>> ranking = rank([3, 1, 1], [0, 1, 0], ["a", "a", "a"])
    >>> ranking.position.tolist(), ranking.tied.tolist()
    ([1, 2, 3], [1, 2])
    """

    query_ids: Ids
    size: Ints
    grades: Floats
    query: Ints
    position: Ints
    block: Ints
    first: Ints
    tied: Ints

    def __post_init__(self) -> None:
        for field in fields(self):
            getattr(self, field.name).setflags(write=False)


def rank(scores: ArrayLike, grades: ArrayLike, query_ids: ArrayLike) -> Ranking:
    """Sort the documents once, for any number of measures.

    One score, grade and query id per document; the documents of a query need not be together.

    >>> ranking = rank([0.1, 0.7, 0.7], [0, 1, 2], ["a", "a", "a"])
    >>> ranking.grades.tolist(), ranking.tied.tolist()
    ([2.0, 1.0, 0.0], [2, 1])
    """
    s, g, (ids, query) = checked_numbers(scores, "scores"), _grades(grades), distinct_ids(query_ids, "query_ids")
    if not len(s) == len(g) == len(query):
        raise InputError(
            f"{len(s)} scores, {len(g)} grades and {len(query)} query ids: expected one of each per document."
        )
    if not len(s):
        raise InputError("No documents: expected at least one score with its grade and query id.")
    # Grades are the last key only so that sums are equal, whatever the order of rows.
    order = np.lexsort((-g, -s, query))
    s, g, query = s[order], g[order], query[order]
    size = np.bincount(query)
    starts = np.r_[True, (s[1:] != s[:-1]) | (query[1:] != query[:-1])]
    first = np.flatnonzero(starts)
    tied = np.diff(np.r_[first, len(s)])
    return Ranking(ids, size, g, query, positions(query), np.cumsum(starts) - 1, first, tied)


def query_index(offsets: ArrayLike) -> Ints:
    """The number of each document's query, from offsets: query q has the documents offsets[q]:offsets[q + 1].

    >>> query_index([0, 2, 5]).tolist()
    [0, 0, 1, 1, 1]
    """
    found = np.asarray(offsets)
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) < 2 or found[0] != 0:
        raise InputError("offsets: expected whole numbers from 0 to the number of documents, for instance [0, 2, 5].")
    bounds: Ints = found.astype(np.int64)
    lengths = bounds[1:] - bounds[:-1]
    if (lengths < 1).any():
        row = int(np.argmax(lengths < 1))
        raise InputError(
            f"offsets, query {row}: starts at {found[row]} and ends at {found[row + 1]}, so it has no documents. "
            "Leave such queries out."
        )
    return np.repeat(np.arange(len(lengths)), lengths)


def positions(query: Ints) -> Ints:
    """The place of each document in its list, from 1; documents are sorted by query."""
    size = np.bincount(query)
    return np.arange(len(query)) - (np.cumsum(size) - size)[query] + 1


def distinct_ids(given: ArrayLike, what: str) -> tuple[Ids, Ints]:
    """The distinct ids in ascending order, and the row of each document's id; `what` names them in messages."""
    ids = _checked_ids(given, what)
    # Documents of a query are mostly together: sorting one id per run of equal ids is far cheaper.
    first = np.flatnonzero(np.r_[[True] * len(ids[:1]), ids[1:] != ids[:-1]])
    distinct, row = np.unique(ids[first], return_inverse=True)
    return distinct, np.repeat(row, np.diff(np.r_[first, len(ids)]))


def _checked_ids(given: ArrayLike, what: str) -> Ids:
    found = np.asarray(given)
    if found.ndim != 1:
        raise InputError(f"{what}: {found.ndim} dimensions, expected one id per document.")
    if found.dtype.kind == "O" and all(isinstance(value, str) for value in found):
        return found
    if found.dtype.kind not in "iuUT" and len(found):
        raise InputError(f"{what}: ids of type {found.dtype}, expected text or whole numbers.")
    return found


def checked_numbers(given: ArrayLike, what: str) -> Floats:
    """One number per document, none of them nan; `what` names them in messages."""
    found = np.asarray(given)
    if found.ndim != 1:
        raise InputError(f"{what}: {found.ndim} dimensions, expected one number per document.")
    if found.dtype.kind not in "biuf":
        raise InputError(f"{what}: values of type {found.dtype}, expected one number per document.")
    numbers = np.asarray(found, dtype=np.float64)
    if np.isnan(numbers).any():
        row = int(np.argmax(np.isnan(numbers)))
        raise InputError(f"{what}, document {row} (from 0): nan is not a number. Check where it comes from.")
    return numbers


def _grades(given: ArrayLike) -> Floats:
    grades = checked_numbers(given, "grades")
    wrong = (grades < 0) | np.isinf(grades)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"grades, document {row} (from 0): {grades[row]:g} found, expected 0 (not relevant) or more. "
            "Leave documents without a judgement out, or use grade 0."
        )
    return grades
