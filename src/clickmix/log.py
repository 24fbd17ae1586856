"""A click log in any layout -> a SQL query that counts it, and the rows it had to refuse.   log -> counts

A log is one or many sources: files of one format with the same columns, or a frame. Text formats (CSV, NDJSON) are
read as text and judged here, so that a bad value can be shown as it stands in the file.
"""

from __future__ import annotations

import csv
import difflib
import glob
import gzip
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import narwhals as nw

from clickmix.engines.duckdb import DuckDB
from clickmix.errors import InputError, SettingError
from clickmix.sql import listed, literal, name

Format = Literal["parquet", "csv", "ndjson", "frame"]
FORMATS: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
}
KEYS = ("query_id", "doc_id", "position")
RAW = ("clicked",)
COUNTED = ("impressions", "clicks")
DELIMITERS = (",", "\t", ";", "|")
LONGEST_HEADER = 1 << 20
ROLES = (*KEYS, *RAW, *COUNTED, "session_id")


@dataclass(frozen=True)
class Source:
    """Files of one format with the same columns, or one frame, readable as one SQL table."""

    format: Format
    files: tuple[str, ...]
    types: Mapping[str, str]
    frame: str = ""
    delimiter: str = ","

    def __str__(self) -> str:
        if not self.files:
            return "the frame"
        return self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more"

    def table(self, *, skip: bool = False, file: str | None = None, numbered: bool = False) -> str:
        """The SQL table: all its files or one of them, with the row number where that costs nothing extra."""
        files = "[" + listed(literal(f) for f in ([file] if file else self.files)) + "]"
        if self.format == "frame":
            return name(self.frame)
        if self.format == "parquet":
            number = ", filename = true, file_row_number = true" if numbered else ""
            return f"read_parquet({files}, binary_as_string = true{number})"
        columns = "{" + listed(f"{literal(column)}: 'VARCHAR'" for column in self.types) + "}"
        if self.format == "csv":
            # Nothing is guessed: a reader that guesses takes the first well-formed line for the header.
            rejects = ", store_rejects = true" if skip else ""
            quoting = f"""delim = {literal(self.delimiter)}, quote = '"', escape = '"', header = true"""
            return f"read_csv({files}, auto_detect = false, {quoting}, columns = {columns}{rejects})"
        lenient = ", ignore_errors = true" if skip else ""
        return f"read_json({files}, format = 'newline_delimited', columns = {columns}{lenient})"


@dataclass(frozen=True)
class Log:
    """The sources of a log, and which of their columns means what."""

    sources: tuple[Source, ...]
    columns: Mapping[str, str]
    context: tuple[str, ...] = ()

    def column(self, role: str) -> str:
        """The log's own name for a column."""
        return self.columns.get(role, role)


def open_log(
    log: object,
    *,
    engine: DuckDB,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
) -> Log:
    """Find the files or take the frame, look at their columns, and say what is missing."""
    columns = _checked_columns(columns or {})
    if isinstance(log, (str, os.PathLike)) or _is_list_of_paths(log):
        sources = _file_sources(find_files(log), engine)
    else:
        sources = (_frame_source(log, engine),)
    opened = Log(sources, columns, tuple(context))
    for source in sources:
        _check_columns(source, opened)
    return opened


def find_files(log: object) -> list[Path]:
    """The files meant by a path, a glob, a folder, or a list of those; each must exist and stand there once."""
    parts = [log] if isinstance(log, (str, os.PathLike)) else list(log)  # type: ignore[call-overload]
    found = [file for part in parts for file in _expand(os.fspath(part))]
    seen: set[Path] = set()
    for file in found:
        if file.resolve() in seen:
            raise InputError(f"{file}: given twice. Its clicks would be counted twice; name it once.")
        seen.add(file.resolve())
    return found


def _expand(text: str) -> list[Path]:
    path = Path(text)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and _is_data(p, path))
        if not files:
            raise InputError(
                f"{path}: a folder without Parquet, CSV or NDJSON files. Give the folder of the click log."
            )
        return files
    if path.exists():
        return [path]
    files = sorted(Path(p) for p in glob.glob(text, recursive=True) if Path(p).is_file())
    if not files:
        kind = "no file matches" if glob.has_magic(text) else "no such file"
        raise InputError(f"{text}: {kind}. Check the path; folders and globs such as 'logs/*.parquet' work too.")
    return files


def _is_data(path: Path, folder: Path) -> bool:
    """A file a log can be in; tools leave `_SUCCESS`, `.crc` and the like beside the data."""
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return not hidden and _format(path) is not None


def _format(path: Path) -> Format | None:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return FORMATS.get(suffixes[-1]) if suffixes else None


def _file_sources(files: Iterable[Path], engine: DuckDB) -> tuple[Source, ...]:
    """Group files that one reader can take together: same format, same columns with the same types."""
    groups: dict[tuple[Format, str, tuple[tuple[str, str], ...]], list[str]] = {}
    for file in files:
        format = _format(file)
        if format is None:
            expected = ", ".join(FORMATS)
            raise InputError(f"{file}: unknown kind of file. Expected a name ending in {expected}, or those with .gz.")
        if file.stat().st_size == 0:
            raise InputError(f"{file}: the file is empty. Expected a click log with a header.")
        readable = _unpack(file, engine.folder) if format == "parquet" and file.suffix.lower() == ".gz" else file
        delimiter, types = _csv_columns(file) if format == "csv" else (",", _typed_columns(readable, format, engine))
        groups.setdefault((format, delimiter, tuple(types.items())), []).append(str(readable))
    return tuple(
        Source(format, tuple(paths), dict(types), delimiter=delimiter)
        for (format, delimiter, types), paths in groups.items()
    )


def _csv_columns(file: Path) -> tuple[str, dict[str, str]]:
    """The delimiter and the columns, from the first line; everything in CSV is text."""
    try:
        with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as lines:
            header = lines.readline(LONGEST_HEADER).decode("utf-8-sig").rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file}: the header cannot be read: {error}. Expected UTF-8 text, gzipped if so named."
        ) from None
    delimiter = max(DELIMITERS, key=header.count)
    columns = next(csv.reader([header], delimiter=delimiter), [])
    twice = [column for i, column in enumerate(columns) if column in columns[:i]]
    if twice:
        raise InputError(f"{file}: the column {twice[0]!r} stands twice in the header. Rename one of them.")
    return delimiter, dict.fromkeys(columns, "VARCHAR")


def _unpack(file: Path, folder: Path) -> Path:
    """Parquet needs random access, so a file gzipped as a whole is unpacked first."""
    target = Path(tempfile.mkdtemp(dir=folder)) / file.name[: -len(".gz")]
    try:
        with gzip.open(file) as packed, target.open("xb") as out:
            shutil.copyfileobj(packed, out, 1 << 20)
    except (OSError, EOFError) as error:
        raise InputError(f"{file}: cannot be unpacked: {error}. The file may be cut off; copy it again.") from None
    return target


def _typed_columns(file: Path, format: Format, engine: DuckDB) -> dict[str, str]:
    path = literal(str(file))
    parquet = f"read_parquet({path}, binary_as_string = true)"
    try:
        return engine.types(parquet if format == "parquet" else f"read_json({path}, format = 'newline_delimited')")
    except duckdb.Error as error:
        raise unreadable(str(file), error) from None


def unreadable(where: str, error: duckdb.Error) -> InputError:
    """What DuckDB said of a file it could not read, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[0].split("Error: ", 1)[-1].rstrip(".") if lines else type(error).__name__
    return InputError(f"{where}: cannot be read: {reason}. The file may be damaged or cut off; write it again.")


def _is_list_of_paths(log: object) -> bool:
    return isinstance(log, (list, tuple)) and bool(log) and all(isinstance(p, (str, os.PathLike)) for p in log)


class _Stream:
    """A DuckDB relation of another connection, as an Arrow stream; each reading runs it again."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


def _frame_source(frame: object, engine: DuckDB) -> Source:
    if isinstance(frame, duckdb.DuckDBPyRelation):
        readable: object = _Stream(frame)
    else:
        try:
            readable = nw.from_native(frame).to_native()  # type: ignore[call-overload]
        except TypeError:
            raise InputError(
                f"a {type(frame).__name__} is no click log. Give a path, a list of paths, or a frame of pandas, "
                "polars, arrow or DuckDB."
            ) from None
    engine.register("clickmix_frame", readable)
    return Source("frame", (), engine.types("clickmix_frame"), frame="clickmix_frame")


def _checked_columns(columns: Mapping[str, str]) -> dict[str, str]:
    for role in columns:
        if role not in ROLES:
            raise SettingError(f"columns: {role!r} is no column of a click log. Expected {_nearest(role, ROLES)}.")
    return dict(columns)


def _check_columns(source: Source, log: Log) -> None:
    counted = is_counted(source, log)
    for role in (*KEYS, *(COUNTED if counted else RAW)):
        column = log.column(role)
        if column not in source.types:
            raise _missing(source, role, column)
        kind = kind_of(source.types[column])
        allowed = ("text", "integer") if role in KEYS[:2] else ("text", "integer", "real")
        if kind not in allowed and not (role == "clicked" and kind == "boolean"):
            raise InputError(
                f"{source}, column {column!r}: found {source.types[column]} values, expected "
                f"{'text or whole numbers' if role in KEYS[:2] else 'whole numbers'} for {role}."
            )
    for column in log.context:
        if column not in source.types:
            raise InputError(
                f"{source}: no context column {column!r}. Found {', '.join(source.types)}. "
                f"Expected {_nearest(column, source.types)}."
            )


def _missing(source: Source, role: str, column: str) -> InputError:
    also = " (or 'impressions' and 'clicks', if it is counted already)" if role == "clicked" else ""
    near = _nearest(column, source.types).split(" or ")[0]
    return InputError(
        f"{source}: no column {column!r}{also}. Found {', '.join(source.types)}. "
        f"Say which column is meant, for instance --columns {role}={near} (in Python columns={{{role!r}: {near!r}}})."
    )


def _nearest(word: str, among: Iterable[str]) -> str:
    names = list(among)
    return " or ".join(difflib.get_close_matches(word, names, n=2, cutoff=0.5) or names)


def is_counted(source: Source, log: Log) -> bool:
    """Whether a source holds impressions and clicks instead of one row per impression."""
    return log.column("clicked") not in source.types and any(log.column(role) in source.types for role in COUNTED)


def kind_of(type: str) -> str:
    """What a SQL type holds: text, integer, real, boolean or other.

    >>> [kind_of(t) for t in ("UBIGINT", "DECIMAL(18,3)", "ENUM('a', 'b')", "BOOLEAN", "INTEGER[]")]
    ['integer', 'real', 'text', 'boolean', 'other']
    """
    base = type.split("(")[0].upper()
    if base.endswith("]"):
        return "other"
    if base in ("FLOAT", "DOUBLE", "DECIMAL", "REAL"):
        return "real"
    if base.endswith("INT") or base == "INTEGER":
        return "integer"
    if base in ("VARCHAR", "ENUM", "UUID", "JSON"):
        return "text"
    return "boolean" if base == "BOOLEAN" else "other"
