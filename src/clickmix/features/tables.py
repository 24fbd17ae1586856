"""Features in any layout -> a split, the documents of each query together.   features -> examples"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickmix.errors import InputError
from clickmix.features.files import checked_grades, read_features
from clickmix.features.label_columns import checked_ids
from clickmix.features.letor import read_letor
from clickmix.features.split import Split, row_of_repeated_document, widened


def open_features(features: Any, *, graded: bool = False, width: int = 0) -> Split:
    """The documents of a split, a features file (Parquet or LETOR text), a frame, or arrays.

    Arrays are (query_id, doc_id, features), the last a matrix; frames and Parquet files have the columns query_id,
    doc_id, grade, feature_1, feature_2, ... Grades are 0 where there are none, which `graded` does not allow. LETOR
    text may leave out features that are 0, the last ones too: it gets at least `width` of them.
    """
    if isinstance(features, Split):
        return features
    if isinstance(features, (str, Path)):
        text = Path(features).name.lower().endswith((".txt", ".txt.gz"))
        return widened(read_letor(features), width) if text else read_features(features, graded=graded)
    if isinstance(features, tuple) and len(features) == 3:
        if graded:
            raise InputError("the features: arrays have no grades. Give a Split, or a frame with a column grade.")
        return _grouped(*features)
    try:
        frame = nw.from_native(features, pass_through=True)
    except nw.exceptions.DuplicateError:  # as pandas allows
        names = list(features.columns)
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"the features: the column {twice!r} stands twice. Rename one of them.") from None
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"a {type(features).__name__} is no set of features. Give a features file, a Split, a frame, or arrays "
            "(query_id, doc_id, features)."
        )
    return _from_frame(frame.collect() if isinstance(frame, nw.LazyFrame) else frame, graded=graded)


def _from_frame(frame: nw.DataFrame[Any], *, graded: bool) -> Split:
    width = sum(bool(re.fullmatch(r"feature_[1-9][0-9]*", name)) for name in frame.columns)
    names = [f"feature_{i + 1}" for i in range(max(width, 1))]
    wanted = ["query_id", "doc_id", *(["grade"] if graded else []), *names]
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise InputError(
            f"the features: no column {missing[0]!r}; found {', '.join(frame.columns[:8])}. "
            f"Expected {', '.join(wanted[: 3 if graded else 2])}, feature_1, feature_2, ..."
        )
    matrix = np.column_stack([_numbers(frame, name) for name in names])
    grade = None
    if "grade" in frame.columns:
        grade = checked_grades(_numbers(frame, "grade"), where="the features")
    return _grouped(frame["query_id"].to_numpy(), frame["doc_id"].to_numpy(), matrix, grade)


def _numbers(frame: nw.DataFrame[Any], name: str) -> NDArray[np.float64]:
    column = frame[name]
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise InputError(f"the features, column {name!r}: of type {column.dtype}. Expected numbers.")
    return column.cast(nw.Float64).to_numpy()


def _grouped(
    query_id: ArrayLike, doc_id: ArrayLike, features: ArrayLike, grade: NDArray[np.int8] | None = None
) -> Split:
    """Rows in the order of their queries' first ones; within a query as they came."""
    query = checked_ids("the features", "query_id", query_id)
    document = checked_ids("the features", "doc_id", doc_id)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as that
        matrix: NDArray[np.float32] = np.asarray(features, dtype=np.float32)
    if matrix.ndim != 2 or not len(query) == len(document) == len(matrix):
        raise InputError(
            f"the features: {len(query)} query ids, {len(document)} document ids, features of shape {matrix.shape}: "
            "expected one id of each and one row per document."
        )
    row = row_of_repeated_document(query, document)
    if row is not None:
        raise InputError(
            f"the features, row {row + 1}: document {document[row]} stands twice in query {query[row]}. "
            "Remove one of the two."
        )
    _, first, number = np.unique(query, return_index=True, return_inverse=True)
    order = np.argsort(first[number], kind="stable")
    sizes = np.bincount(number)[np.argsort(first)]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    grades = np.zeros(len(query), np.int8) if grade is None else grade[order]
    return Split(query[np.sort(first)], offsets, document[order], grades, matrix[order])
