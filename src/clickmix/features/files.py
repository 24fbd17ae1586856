"""Features files and frames: query_id, doc_id, perhaps grade, and one column per feature.   file, frame <-> Split

Every other column is a feature with its own name. If features are called feature_1, feature_2, ..., their numbers give
their order. An empty cell, NULL or NaN is a missing value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import listed, name
from clickmix.errors import InputError
from clickmix.features.ids import checked_ids, id_sql
from clickmix.features.letor_lines import LARGEST_GRADE
from clickmix.features.split import KEYS, Split, default_names, offsets_of, refuse_repeated, row_of_scattered_query
from clickmix.log.files import file_sources, find_files, unreadable
from clickmix.log.frames import frame_source
from clickmix.log.source import Source, kind_of
from clickmix.storage.atomic import replacing, write_failure
from clickmix.types import Columns

COLUMNS_AT_ONCE = 16  # limits the memory beyond the matrix itself
EXPECTED = "Expected query_id, doc_id and one column per feature"


def write_features(split: Split, path: str | Path) -> None:
    """Write a split as a Parquet features file, atomically; the same split gives the same bytes.

    >>> import tempfile
    >>> from clickmix.features import open_features
    >>> folder = tempfile.TemporaryDirectory()
    >>> split = open_features((["q", "q"], ["a", "b"], [[0.1], [0.9]]))
    >>> write_features(split, f"{folder.name}/features.parquet")
    >>> read_features(f"{folder.name}/features.parquet").doc_id.tolist()
    ['a', 'b']
    >>> folder.cleanup()
    """
    columns: Columns = {
        "query_id": np.repeat(split.query_id, split.sizes),
        "doc_id": np.asarray(split.doc_id),
        "grade": np.asarray(split.grade),
    }
    columns |= dict(zip(split.feature_names, np.asarray(split.features).T, strict=True))
    # One thread, because more would give other bytes.
    with replacing(path) as temporary, duckdb.connect(config={"threads": 1}) as database:
        database.register("columns", columns)
        try:
            database.execute(
                "COPY (SELECT * FROM columns) TO $path (FORMAT parquet, COMPRESSION zstd)", {"path": str(temporary)}
            )
        except duckdb.IOException as error:
            raise write_failure(path, str(error)) from None


def read_features(path: str | Path, *, graded: bool = True, gaps: bool = False) -> Split:
    """Read a features file (Parquet, CSV or NDJSON); the rows of each query must be together.

    With `graded=False` the column grade can be missing; all grades are then 0. With `gaps`, values can be missing.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "features.csv")
    >>> _ = path.write_text("query_id,doc_id,grade,bm25\\nq,a,2,0.5\\n")
    >>> read_features(path).feature_names
    ('bm25',)
    >>> folder.cleanup()
    """
    with closing(DuckDB()) as engine:
        source = one_source(path, engine, expected=f"{EXPECTED}.", file="features file")
        query, doc_id, grade, features, names = read_columns(source, engine, graded=graded)
    if not gaps:
        _refuse(np.isnan(features), str(path), names, "missing, and here every value is needed")
    row = row_of_scattered_query(query)
    if row is not None:
        raise InputError(f"{path}, row {row + 1}: query {query[row]} already ended above. Sort the rows by query_id.")
    refuse_repeated(query, doc_id, where=lambda row: f"{path}, row {row + 1}")
    offsets = offsets_of(query)
    return Split(query[offsets[:-1]], offsets, doc_id, grade, features, names)


def read_frame(frame: Any, *, graded: bool) -> tuple[Any, ...]:
    """The columns of a frame of pandas, polars, arrow or DuckDB, as `read_columns` gives them."""
    with closing(DuckDB()) as engine:
        return read_columns(frame_source(frame, engine), engine, graded=graded)


def read_columns(
    source: Source, engine: DuckDB, *, graded: bool
) -> tuple[Any, Any, NDArray[np.int8], NDArray[np.float32], tuple[str, ...]]:
    """Read query ids, document ids, grades (0 if the source has none), features and their names."""
    where = str(source) if source.files else "the features"
    found = source.own_columns
    names = _feature_names(where, found, graded=graded)
    try:
        with engine.in_order():
            ids = listed(id_sql(source, column, engine) for column in KEYS[:2])
            columns = engine.fetch(f"SELECT {ids} FROM {source.table()}")
            query, doc_id = (checked_ids(where, column, columns[column]) for column in KEYS[:2])
            grade = np.zeros(len(query), np.int8)
            if "grade" in found:
                grade = _grades(
                    where, engine.fetch(f"SELECT {_number(source, 'grade')} FROM {source.table()}")["grade"]
                )
            return query, doc_id, grade, _features(where, source, engine, names, len(query)), names
    except duckdb.Error as error:
        raise unreadable(where, error) from None


def one_source(paths: Any, engine: DuckDB, *, expected: str, file: str) -> Source:
    """The source of some files, which must have the same columns; `expected` and `file` are for messages."""
    files = find_files(paths)
    for each in files:
        if each.stat().st_size == 0:
            raise InputError(f"{each}: the file is empty. {expected}")
    sources = file_sources(files, engine)
    if len(sources) > 1:
        raise InputError(f"{sources[0]} and {sources[1]} have different columns or formats. Pass only one {file}.")
    return sources[0]


def _feature_names(where: str, found: Sequence[str], *, graded: bool) -> tuple[str, ...]:
    """The columns that are features, in order; raises if a column is missing."""
    names = tuple(column for column in found if column not in KEYS)
    damaged = [column for column in names if "\0" in column]
    if damaged:  # no table can have such a name
        raise InputError(f"{where}: the name of column {damaged[0]!r} has zeros in it. The file may be damaged.")
    if all(re.fullmatch("feature_[1-9][0-9]*", column) for column in names):
        names = default_names(max(len(names), 1))
    needed = KEYS if graded else KEYS[:2]
    missing = [column for column in (*needed, *names) if column not in found]
    if missing:
        shown = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "")
        expected = f"Expected {', '.join(needed)} and one column per feature"
        what = "no features" if set(found) <= set(KEYS) and missing == ["feature_1"] else f"no column {missing[0]!r}"
        raise InputError(f"{where}: {what}; found {shown}. {expected}.")
    return names


def _number(source: Source, column: str, type: str = "DOUBLE") -> str:
    """SQL for a column as numbers: NaN if the value is missing, NULL if it is not a number."""
    quoted = text = name(column)
    if source.is_text or kind_of(source.types[column]) == "text":
        # concat hides the column: the CSV reader would run a bare cast itself, and fail where TRY_CAST gives NULL.
        text = f"nullif(trim(concat({quoted}, '')), '')"
    return f"CASE WHEN {text} IS NULL THEN 'nan'::{type} ELSE TRY_CAST({text} AS {type}) END AS {quoted}"


def _features(where: str, source: Source, engine: DuckDB, names: tuple[str, ...], rows: int) -> NDArray[np.float32]:
    features = np.empty((rows, len(names)), np.float32)
    # Text files are always parsed as a whole, so read all columns at once.
    step = len(names) if source.is_text else COLUMNS_AT_ONCE
    for first in range(0, len(names), step):
        chosen = names[first : first + step]
        selected = listed(_number(source, column, "FLOAT") for column in chosen)
        columns = engine.fetch(f"SELECT {selected} FROM {source.table()}")
        for i, column in enumerate(chosen, start=first):
            features[:, i] = np.ma.filled(columns[column], np.inf)
            wrong = np.isinf(features[:, i])
            if wrong.any():
                shown = engine.fetch(f"SELECT CAST({name(column)} AS VARCHAR) AS shown FROM {source.table()}")["shown"]
                row = int(np.argmax(wrong))
                raise InputError(
                    f"{where}, row {row + 1}, column {column!r}: {shown[row]!r} found, expected a finite number of "
                    "single precision. Every column besides query_id, doc_id and grade is a feature."
                )
    return features


def _grades(where: str, column: NDArray[np.float64]) -> NDArray[np.int8]:
    grade = np.ma.filled(column, np.nan)
    right = (grade >= 0) & (grade <= LARGEST_GRADE) & (grade == np.floor(grade))
    _refuse(~right[:, None], where, ("grade",), f"expected a whole number from 0 to {LARGEST_GRADE}")
    return grade.astype(np.int8)


def _refuse(wrong: NDArray[np.bool_], where: str, columns: Sequence[str], reason: str) -> None:
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(f"{where}, row {row + 1}, column {columns[column]!r}: {reason}.")
