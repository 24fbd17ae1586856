"""Features files: query_id, doc_id, grade, feature_1, feature_2, ... in Parquet.   Split -> file -> Split"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clickmix.datasets.collection import Ids, Split, offsets_of, row_of_scattered_query
from clickmix.errors import InputError
from clickmix.files import replacing

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
    columns |= {f"feature_{i + 1}": column for i, column in enumerate(np.asarray(split.features).T)}
    with replacing(path) as temporary, _connection(threads=1) as database:  # more threads, other bytes
        database.register("columns", columns)
        database.execute(
            "COPY (SELECT * FROM columns) TO $path (FORMAT parquet, COMPRESSION zstd)", {"path": str(temporary)}
        )


def read_features(path: str | Path) -> Split:
    """Read a features file; the rows of each query must be together."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file. Expected a Parquet file of features.")
    with _connection(threads=None) as database:
        width = _width(database, path)
        query, doc_id = (_ids(database, path, name) for name in ("query_id", "doc_id"))
        grade = _numbers(database, path, ["grade"], "TINYINT")["grade"]
        features = np.empty((len(query), width), np.float32)
        for first in range(0, width, COLUMNS_AT_ONCE):
            names = [f"feature_{i + 1}" for i in range(first, min(first + COLUMNS_AT_ONCE, width))]
            for i, column in enumerate(_numbers(database, path, names, "FLOAT").values()):
                features[:, first + i] = column
    row = row_of_scattered_query(query)
    if row is not None:
        raise InputError(f"{path}, row {row + 1}: query {query[row]} had ended further up. Order the rows by query_id.")
    offsets = offsets_of(query)
    return Split(query[offsets[:-1]], offsets, doc_id, grade, features)


def _connection(*, threads: int | None) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": threads} if threads else {})


def _width(database: duckdb.DuckDBPyConnection, path: Path) -> int:
    """How many features there are; complain when a column is missing."""
    import duckdb

    try:
        rows = database.execute("DESCRIBE SELECT * FROM read_parquet($path)", {"path": str(path)}).fetchall()
    except duckdb.Error:
        raise InputError(
            f"{path}: not a Parquet file, or a damaged one. Expected a Parquet file of features."
        ) from None
    found = [str(row[0]) for row in rows]
    width = sum(bool(re.fullmatch(r"feature_[1-9][0-9]*", name)) for name in found)
    wanted = ["query_id", "doc_id", "grade", *(f"feature_{i + 1}" for i in range(max(width, 1)))]
    missing = [name for name in wanted if name not in found]
    if missing:
        shown = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "")
        raise InputError(
            f"{path}: no column {missing[0]!r}; found {shown}. "
            "Expected query_id, doc_id, grade, feature_1, feature_2, ..."
        )
    return width


def _ids(database: duckdb.DuckDBPyConnection, path: Path, name: str) -> Ids:
    """A column of ids: whole numbers stay whole numbers, all else becomes text."""
    column = _fetch(database, path, f"SELECT {name} FROM read_parquet($path)")[name]
    if column.dtype.kind in "iu":
        return column.astype(np.int64)
    return _fetch(database, path, f"SELECT {name}::VARCHAR AS {name} FROM read_parquet($path)")[name].astype(np.str_)


def _numbers(database: duckdb.DuckDBPyConnection, path: Path, names: list[str], kind: str) -> dict[str, NDArray[Any]]:
    """Columns of finite numbers as DuckDB's `kind`."""
    columns = _fetch(
        database,
        path,
        "SELECT " + ", ".join(f"{name}::{kind} AS {name}" for name in names) + " FROM read_parquet($path)",
    )
    for name, column in columns.items():
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            raise InputError(f"{path}, row {bad[0] + 1}, column {name!r}: not a finite number.")
    return columns


def _fetch(database: duckdb.DuckDBPyConnection, path: Path, sql: str) -> dict[str, NDArray[Any]]:
    """The columns of a query without NULLs."""
    import duckdb

    try:
        columns: dict[str, NDArray[Any]] = database.execute(sql, {"path": str(path)}).fetchnumpy()
    except duckdb.ConversionException as error:
        raise InputError(f"{path}: a value that is not a number of its column's kind: {error}") from None
    except duckdb.Error as error:
        raise InputError(f"{path}: damaged, or cannot be read: {error}") from None
    for name, column in columns.items():
        if isinstance(column, np.ma.MaskedArray):
            bad = np.flatnonzero(np.ma.getmaskarray(column))
            if len(bad):
                raise InputError(f"{path}, row {bad[0] + 1}, column {name!r}: empty. Every row needs a value.")
            columns[name] = column.data
    return columns
