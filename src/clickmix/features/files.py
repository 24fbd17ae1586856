"""Features files: query_id, doc_id, grade, feature_1, feature_2, ... in Parquet.   Split -> file -> Split"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import InputError
from clickmix.features.ids import Ids, id_type, whole_ids
from clickmix.features.letor_lines import LARGEST_GRADE
from clickmix.features.split import Split, offsets_of, row_of_repeated_document, row_of_scattered_query
from clickmix.log.source import is_wide, kind_of
from clickmix.storage.files import replacing, write_failure

if TYPE_CHECKING:
    import duckdb

COLUMNS_AT_ONCE = 16  # read side by side: bounds the memory beyond the matrix itself


def write_features(split: Split, path: str | Path) -> None:
    """Write `split` as a features file, atomically; the same split gives the same bytes."""
    columns: dict[str, NDArray[Any]] = {
        "query_id": np.repeat(split.query_id, split.sizes),
        "doc_id": np.asarray(split.doc_id),
        "grade": np.asarray(split.grade),
    }
    import duckdb

    columns |= {f"feature_{i + 1}": column for i, column in enumerate(np.asarray(split.features).T)}
    with replacing(path) as temporary, _connection(threads=1) as database:  # more threads, other bytes
        database.register("columns", columns)
        try:
            database.execute(
                "COPY (SELECT * FROM columns) TO $path (FORMAT parquet, COMPRESSION zstd)", {"path": str(temporary)}
            )
        except duckdb.IOException as error:
            raise write_failure(path, str(error)) from None


def read_features(path: str | Path, *, graded: bool = True) -> Split:
    """Read a features file; the rows of each query must be together.

    With `graded=False` the column grade may be missing, as where nobody has judged: all grades are 0 then.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file. Expected a Parquet file of features.")
    with _connection(threads=None) as database:
        width, types = _columns(database, path, graded=graded)
        query, doc_id = (_ids(database, path, name, types[name]) for name in ("query_id", "doc_id"))
        grade = _grades(database, path) if "grade" in types else np.zeros(len(query), np.int8)
        features = _features(database, path, len(grade), width)
    row = row_of_scattered_query(query)
    if row is not None:
        raise InputError(f"{path}, row {row + 1}: query {query[row]} had ended further up. Order the rows by query_id.")
    row = row_of_repeated_document(query, doc_id)
    if row is not None:
        raise InputError(
            f"{path}, row {row + 1}: document {doc_id[row]} stands twice in query {query[row]}. Remove one of the two."
        )
    offsets = offsets_of(query)
    return Split(query[offsets[:-1]], offsets, doc_id, grade, features)


def _connection(*, threads: int | None) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": threads} if threads else {})


def _columns(database: duckdb.DuckDBPyConnection, path: Path, *, graded: bool) -> tuple[int, dict[str, str]]:
    """How many features there are, and the type of every column; complain when one is missing."""
    import duckdb

    try:
        rows = database.execute("DESCRIBE SELECT * FROM read_parquet($path)", {"path": str(path)}).fetchall()
    except duckdb.Error:
        raise InputError(
            f"{path}: not a Parquet file, or a damaged one. Expected a Parquet file of features, or LETOR text with a "
            "name ending in .txt or .txt.gz."
        ) from None
    found = {str(row[0]): str(row[1]) for row in rows}
    width = sum(bool(re.fullmatch(r"feature_[1-9][0-9]*", name)) for name in found)
    wanted = ["query_id", "doc_id", "grade", *(f"feature_{i + 1}" for i in range(max(width, 1)))]
    missing = [name for name in wanted if name not in found and (graded or name != "grade")]
    if missing:
        shown = ", ".join(list(found)[:8]) + (", ..." if len(found) > 8 else "")
        raise InputError(
            f"{path}: no column {missing[0]!r}; found {shown}. "
            "Expected query_id, doc_id, grade, feature_1, feature_2, ..."
        )
    return width, found


def _ids(database: duckdb.DuckDBPyConnection, path: Path, name: str, type: str) -> Ids:
    """A column of ids: whole numbers stay whole numbers, all else becomes text."""
    if kind_of(type) != "integer":
        type = "VARCHAR"
    elif is_wide(type):
        type = _fetch(database, path, f"{id_type(name)} AS type")["type"][0]
    column = _fetch(database, path, f"{name}::{type} AS {name}")[name]
    _refuse(np.ma.getmaskarray(column), path, name, "empty. Every row needs one")
    ids = np.ma.getdata(column)
    return whole_ids(ids) if ids.dtype.kind in "iu" else ids.astype(np.str_)


def _grades(database: duckdb.DuckDBPyConnection, path: Path) -> NDArray[np.int8]:
    grade = np.ma.filled(_fetch(database, path, "TRY_CAST(grade AS DOUBLE) AS grade")["grade"], np.nan)
    return checked_grades(grade, where=str(path))


def checked_grades(grade: NDArray[np.float64], *, where: str) -> NDArray[np.int8]:
    """Numbers as grades, if all of them are; `where` names them in messages."""
    right = (grade >= 0) & (grade <= LARGEST_GRADE) & (grade == np.floor(grade))
    _refuse(~right, where, "grade", f"expected a whole number from 0 to {LARGEST_GRADE}")
    return grade.astype(np.int8)


def _features(database: duckdb.DuckDBPyConnection, path: Path, rows: int, width: int) -> NDArray[np.float32]:
    features = np.empty((rows, width), np.float32)
    for first in range(1, width + 1, COLUMNS_AT_ONCE):
        names = [f"feature_{i}" for i in range(first, min(first + COLUMNS_AT_ONCE, width + 1))]
        columns = _fetch(database, path, ", ".join(f"TRY_CAST({name} AS FLOAT) AS {name}" for name in names))
        for i, name in enumerate(names, start=first - 1):
            features[:, i] = np.ma.filled(columns[name], np.nan)
            _refuse(~np.isfinite(features[:, i]), path, name, "expected a finite number")
    return features


def _fetch(database: duckdb.DuckDBPyConnection, path: Path, columns: str) -> dict[str, NDArray[Any]]:
    """Columns of the file in its order; masked where a value is NULL."""
    import duckdb

    try:
        return database.execute(f"SELECT {columns} FROM read_parquet($path)", {"path": str(path)}).fetchnumpy()
    except duckdb.Error as error:
        raise InputError(f"{path}: damaged, or cannot be read: {error}") from None


def _refuse(wrong: NDArray[np.bool_], where: str | Path, column: str, reason: str) -> None:
    if wrong.any():
        raise InputError(f"{where}, row {np.argmax(wrong) + 1}, column {column!r}: {reason}.")
