"""Split and Collection: judged documents with features, grouped by query.   files or a generator -> Collection"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import InputError
from clickmix.features.ids import Ids

KEYS = ("query_id", "doc_id", "grade")  # the columns of a features file that are not features
MOST_NAMES = 8  # names listed in a message


class GroupedByQuery:
    """Documents, query by query: query i has the rows offsets[i] to offsets[i + 1]."""

    query_id: Ids
    offsets: NDArray[np.int64]

    @property
    def queries(self) -> int:
        """How many queries."""
        return len(self.query_id)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many documents each query has."""
        return np.diff(self.offsets)

    @cached_property
    def query(self) -> NDArray[np.int64]:
        """The number, from 0, of each document's query."""
        return np.repeat(np.arange(self.queries), self.sizes)


@dataclass(frozen=True, eq=False)
class Split(GroupedByQuery):
    """The documents of some queries, query by query: query i has the rows offsets[i] to offsets[i + 1].

    `features` (documents × features, float32) can be a read-only memory map; NaN is a missing value. `feature_names`
    are feature_1, feature_2, ... if none are given. Ids are whole numbers or text.

    >>> from clickmix.features import open_features
    >>> split = open_features((["q", "q"], ["a", "b"], [[0.1], [0.9]]))
    >>> split.query_id.tolist(), split.doc_id.tolist(), split.feature_names
    (['q'], ['a', 'b'], ('feature_1',))
    """

    query_id: Ids
    offsets: NDArray[np.int64]
    doc_id: Ids
    grade: NDArray[np.int8]
    features: NDArray[np.float32]
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows = len(self.grade)
        if not (len(self.offsets) == len(self.query_id) + 1 and self.offsets[0] == 0 and self.offsets[-1] == rows):
            raise InputError(f"offsets must go from 0 to the {rows} documents, one more than the queries.")
        if not (len(self.doc_id) == rows and self.features.ndim == 2 and len(self.features) == rows):
            raise InputError(f"doc_id and features must have one row for each of the {rows} documents.")
        object.__setattr__(self, "feature_names", checked_names(self.feature_names, self.features.shape[1]))
        for array in (self.query_id, self.offsets, self.doc_id, self.grade, self.features):
            array.setflags(write=False)

    @property
    def documents(self) -> int:
        """How many documents, over all queries."""
        return len(self.grade)

    def part(self, first: int, last: int) -> Split:
        """The queries from number `first` up to, not including, `last`; nothing is copied."""
        rows = slice(self.offsets[first], self.offsets[last])
        return Split(
            self.query_id[first:last],
            self.offsets[first : last + 1] - self.offsets[first],
            self.doc_id[rows],
            self.grade[rows],
            self.features[rows],
            self.feature_names,
        )


@dataclass(frozen=True, eq=False)
class Collection:
    """Three splits with the same features; `notes` are for readers of results on it.

    >>> from clickmix.features import open_features
    >>> split = open_features((["q", "q"], ["a", "b"], [[0.1], [0.9]]))
    >>> Collection("tiny", split, split, split, largest_grade=4).train.doc_id.tolist()
    ['a', 'b']
    """

    name: str
    train: Split
    vali: Split
    test: Split
    largest_grade: int
    notes: tuple[str, ...] = ()


def default_names(width: int) -> tuple[str, ...]:
    """The names of features that have none.

    >>> default_names(2)
    ('feature_1', 'feature_2')
    """
    return tuple(f"feature_{i + 1}" for i in range(width))


def checked_names(names: Sequence[str], width: int) -> tuple[str, ...]:
    """Check that there are `width` names, and return them; return default names if none are given."""
    if not names:
        return default_names(width)
    if len(names) != width:
        raise InputError(f"{len(names)} feature names for {width} features: expected one name per feature.")
    if wrong := [name for i, name in enumerate(names) if name in KEYS or name in names[:i]]:
        raise InputError(f"A feature cannot be called {wrong[0]!r}: the name is already taken. Rename the feature.")
    return tuple(names)


def widened(split: Split, width: int) -> Split:
    """The split with at least `width` features: sparse text leaves out the last ones if they are 0."""
    missing = max(0, width - split.features.shape[1])
    if not missing:
        return split
    return replace(split, features=np.pad(split.features, ((0, 0), (0, missing))), feature_names=())


def arranged(split: Split, names: Sequence[str], *, where: str) -> Split:
    """The split with its features in the order of `names`; raises if one is missing or there are others."""
    found = split.feature_names
    if found == tuple(names):
        return split
    missing, extra = [name for name in names if name not in found], [name for name in found if name not in names]
    if missing:
        raise InputError(
            f"{where}: the feature {missing[0]!r} is missing{_others(missing)}. Found {_shortened(found)}. "
            "Use the features the ranker was trained on."
        )
    if extra:
        raise InputError(
            f"{where}: the ranker was not trained on the feature {extra[0]!r}{_others(extra)}. "
            f"Remove the column, or train on it. The ranker takes {_shortened(names)}."
        )
    return replace(split, features=split.features[:, [found.index(name) for name in names]], feature_names=tuple(names))


def _others(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _shortened(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")


def offsets_of(query: Ids) -> NDArray[np.int64]:
    """Where each run of equal query ids begins, and the end.

    >>> offsets_of(np.array([7, 7, 3, 3, 3])).tolist()
    [0, 2, 5]
    """
    changes = np.flatnonzero(query[1:] != query[:-1]) + 1
    return np.concatenate(([0] if len(query) else [], changes, [len(query)])).astype(np.int64)


def row_of_scattered_query(query: Ids) -> int | None:
    """The first row whose query already ended further up; None if the rows of each query are together.

    >>> row_of_scattered_query(np.array([7, 3, 3, 7]))
    3
    """
    starts = offsets_of(query)[:-1]
    _, first = np.unique(query[starts], return_index=True)
    again = np.setdiff1d(np.arange(len(starts)), first)
    return int(starts[again[0]]) if len(again) else None


def row_of_repeated_document(query: Ids, doc_id: Ids) -> int | None:
    """The first row whose document is also further up in the same query; None if there is none.

    >>> row_of_repeated_document(np.array([7, 7, 3, 7]), np.array(["a", "b", "a", "a"]))
    3
    """
    order = np.lexsort((doc_id, query))  # stable, so the first of equal rows stays first
    again = (doc_id[order][1:] == doc_id[order][:-1]) & (query[order][1:] == query[order][:-1])
    return int(order[1:][again].min()) if again.any() else None


def refuse_repeated(query: Ids, doc_id: Ids, *, where: Callable[[int], str]) -> None:
    """Raise if a document appears twice in a query: labels and features are joined by query and document."""
    row = row_of_repeated_document(query, doc_id)
    if row is not None:
        raise InputError(f"{where(row)}: document {doc_id[row]} appears twice in query {query[row]}. Remove one.")


def binarized(grade: NDArray[np.int8], *, largest_grade: int) -> NDArray[np.float64]:
    """Relevance 1 for grades above half of the largest, otherwise 0.

    >>> binarized(np.array([0, 1, 2, 3, 4], np.int8), largest_grade=4).tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0]
    """
    return (grade > largest_grade / 2).astype(np.float64)


def graded(grade: NDArray[np.int8], *, largest_grade: int) -> NDArray[np.float64]:
    """Relevance grade / largest grade.

    >>> graded(np.array([0, 1, 4], np.int8), largest_grade=4).tolist()
    [0.0, 0.25, 1.0]
    """
    return grade / float(largest_grade)
