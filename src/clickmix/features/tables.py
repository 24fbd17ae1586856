"""Features in any layout -> a split, query by query.   features -> examples"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickmix.errors import InputError
from clickmix.features.files import read_features, read_frame
from clickmix.features.ids import checked_ids
from clickmix.features.letor import read_letor
from clickmix.features.split import Split, arranged, default_names, refuse_repeated, widened
from clickmix.log.frames import known_frame

ARRAYS = "the features"


def open_features(features: Any, *, graded: bool = False, names: Sequence[str] = ()) -> Split:
    """The documents of a split, a features file, a frame, or arrays; missing values are NaN.

    A file is Parquet, CSV, NDJSON or LETOR text (.txt). Files and frames have the columns query_id, doc_id, perhaps
    grade, and one per feature. Arrays are (query_id, doc_id, matrix). Without grades, all are 0; `graded` forbids that.

    `names` are the features of a ranker, in its order: they are found by name, and any other is an error. LETOR text
    numbers its features and can leave out those that are 0; arrays have no names, so their order counts.

    >>> open_features((["q", "q"], ["a", "b"], [[0.1], [0.9]])).features.shape
    (2, 1)
    """
    where = str(features) if isinstance(features, (str, Path)) else ARRAYS
    if isinstance(features, Split):
        split = features
    elif isinstance(features, (str, Path)):
        split = _read(features, graded=graded, names=names)
    elif isinstance(features, tuple) and len(features) == 3:
        if graded:
            raise InputError("the features: arrays have no grades. Pass a Split, or a frame with a column grade.")
        split = _grouped(*features, names=names)
    else:
        _check_frame(features)
        query_id, doc_id, grade, matrix, found = read_frame(features, graded=graded)
        split = _grouped(query_id, doc_id, matrix, grade, names=found)
    return arranged(split, names, where=where) if names else split


def _read(path: str | Path, *, graded: bool, names: Sequence[str]) -> Split:
    if not Path(path).name.lower().endswith((".txt", ".txt.gz")):
        return read_features(path, graded=graded, gaps=True)
    split = read_letor(path)
    return widened(split, len(names)) if tuple(names) == default_names(len(names)) else split


def _check_frame(features: Any) -> None:
    if not isinstance(features, duckdb.DuckDBPyRelation) and known_frame(features, where="the features") is None:
        raise InputError(
            f"the features: a {type(features).__name__} found. Pass a features file, a Split, a frame, or arrays "
            "(query_id, doc_id, features)."
        )


def _grouped(
    query_id: ArrayLike,
    doc_id: ArrayLike,
    features: ArrayLike,
    grade: NDArray[np.int8] | None = None,
    *,
    names: Sequence[str],
) -> Split:
    """A split with queries in the order of their first rows, and documents of a query in the order of theirs."""
    query, document = checked_ids(ARRAYS, "query_id", query_id), checked_ids(ARRAYS, "doc_id", doc_id)
    with np.errstate(over="ignore"):  # numbers that are too large become infinite, and are refused later
        matrix: NDArray[np.float32] = np.asarray(features, dtype=np.float32)
    if matrix.ndim != 2 or not len(query) == len(document) == len(matrix):
        raise InputError(
            f"the features: {len(query)} query ids, {len(document)} document ids, features of shape {matrix.shape}: "
            "expected one id of each and one row per document."
        )
    if names and len(names) != matrix.shape[1]:
        raise InputError(
            f"the features: {matrix.shape[1]} features, but the ranker was trained on {len(names)}. "
            "Use the same features."
        )
    refuse_repeated(query, document, where=lambda row: f"the features, row {row + 1}")
    _, first, number = np.unique(query, return_index=True, return_inverse=True)
    order = np.argsort(first[number], kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(number)[np.argsort(first)])))
    grades = np.zeros(len(query), np.int8) if grade is None else grade[order]
    return Split(query[np.sort(first)], offsets, document[order], grades, matrix[order], tuple(names))
