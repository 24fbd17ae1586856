"""Features in any layout -> a split, the documents of each query together.   features -> examples"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickmix.datasets import Split, read_features, read_letor
from clickmix.errors import InputError
from clickmix.rankers.label_columns import checked_ids


def open_features(features: Any, *, graded: bool = False) -> Split:
    """The documents of a split, a features file (Parquet or LETOR text), a frame, or arrays.

    Arrays are (query_id, doc_id, features), the last a matrix; frames and Parquet files have the columns query_id,
    doc_id, feature_1, feature_2, ... Grades are 0 where there are none, which `graded` does not allow in a file.
    """
    if isinstance(features, Split):
        return features
    if isinstance(features, (str, Path)):
        text = Path(features).name.lower().endswith((".txt", ".txt.gz"))
        return read_letor(features) if text else read_features(features, graded=graded)
    if isinstance(features, tuple) and len(features) == 3:
        return _grouped(*features)
    frame = nw.from_native(features, pass_through=True)
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"a {type(features).__name__} is no set of features. Give a features file, a Split, a frame, or arrays "
            "(query_id, doc_id, features)."
        )
    return _from_frame(frame.collect() if isinstance(frame, nw.LazyFrame) else frame)


def _from_frame(frame: nw.DataFrame[Any]) -> Split:
    width = sum(bool(re.fullmatch(r"feature_[1-9][0-9]*", name)) for name in frame.columns)
    names = [f"feature_{i + 1}" for i in range(max(width, 1))]
    missing = [name for name in ("query_id", "doc_id", *names) if name not in frame.columns]
    if missing:
        raise InputError(
            f"the features: no column {missing[0]!r}; found {', '.join(frame.columns[:8])}. "
            "Expected query_id, doc_id, feature_1, feature_2, ..."
        )
    matrix = frame.select(nw.col(names).cast(nw.Float32)).to_numpy()
    return _grouped(frame["query_id"].to_numpy(), frame["doc_id"].to_numpy(), matrix)


def _grouped(query_id: ArrayLike, doc_id: ArrayLike, features: ArrayLike) -> Split:
    """Rows in the order of their queries' first ones; within a query as they came."""
    query = checked_ids("the features", "query_id", query_id)
    document = checked_ids("the features", "doc_id", doc_id)
    matrix: NDArray[np.float32] = np.asarray(features, dtype=np.float32)
    if matrix.ndim != 2 or not len(query) == len(document) == len(matrix):
        raise InputError(
            f"the features: {len(query)} query ids, {len(document)} document ids, features of shape {matrix.shape}: "
            "expected one id of each and one row per document."
        )
    _, first, number = np.unique(query, return_index=True, return_inverse=True)
    order = np.argsort(first[number], kind="stable")
    sizes = np.bincount(number)[np.argsort(first)]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    grade = np.zeros(len(query), np.int8)
    return Split(query[np.sort(first)], offsets, document[order], grade, matrix[order])
