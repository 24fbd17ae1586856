"""A click log in any layout -> its sources: SQL tables with known columns, and which column means what.   log -> counts

A log is one or many sources: files of one format with the same columns, or a frame. Text formats (CSV, NDJSON) are
read as text and judged in `rows`, so that a bad value can be shown as it stands in the file.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw

from clickmix.engines.duckdb import DuckDB
from clickmix.errors import InputError, SettingError
from clickmix.files import unpack
from clickmix.paths import Format, are_paths, find_files, format_of, is_gzipped, partitions
from clickmix.sql import listed, literal, name

KEYS = ("query_id", "doc_id", "position")
RAW = ("clicked",)
COUNTED = ("impressions", "clicks")
DELIMITERS = (",", "\t", ";", "|")
LONGEST_HEADER = 1 << 20
RESERVED = ("query_id", "doc_id", "position", "impressions", "clicks", "refused", "relevance")
ROLES = (*KEYS, *RAW, *COUNTED, "session_id")


@dataclass(frozen=True)
class Source:
    """Files of one format with the same columns, or one frame, readable as one SQL table."""

    format: Format
    files: tuple[str, ...]
    types: Mapping[str, str]
    frame: str = ""
    delimiter: str = ","
    gzipped: bool = False
    # Columns that come from folders named column=value, not from the files.
    partitions: tuple[str, ...] = ()
    # Where a file that had to be unpacked came from.
    origin: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.files:
            return "the frame"
        first = self.shown(self.files[0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    def shown(self, file: str) -> str:
        """A file as the user named it."""
        return self.origin.get(file, file)

    def table(self, *, skip: bool = False, file: str | None = None, numbered: bool = False) -> str:
        """The SQL table: all its files or one of them, with the row number where that costs nothing extra."""
        if self.format == "frame":
            return name(self.frame)
        files = self.reader_arguments(file)
        if self.format == "parquet":
            number = ", filename = 'file read', file_row_number = true" if numbered else ""
            return f"read_parquet({files}, binary_as_string = true{number})"
        own = [column for column in self.types if column not in self.partitions]
        files += f", compression = '{'gzip' if self.gzipped else 'none'}'"
        columns = "{" + listed(f"{literal(column)}: 'VARCHAR'" for column in own) + "}"
        if self.format == "csv":
            # Nothing is guessed: a reader that guesses takes the first well-formed line for the header.
            rejects = ", store_rejects = true" if skip else ""
            quoting = f"""delim = {literal(self.delimiter)}, quote = '"', escape = '"', allow_quoted_nulls = false"""
            return f"read_csv({files}, auto_detect = false, header = true, {quoting}, columns = {columns}{rejects})"
        lenient = ", ignore_errors = true" if skip else ""
        return f"read_json({files}, format = 'newline_delimited', columns = {columns}{lenient})"

    def reader_arguments(self, file: str | None = None) -> str:
        """The files (or one of them) as the first arguments of a SQL reader."""
        files = listed(literal(_exactly(f)) for f in ([file] if file else self.files))
        folders = "true, hive_types_autocast = false" if self.partitions else "false"
        return f"[{files}], hive_partitioning = {folders}"


@dataclass(frozen=True)
class Log:
    """The sources of a log, and which of their columns means what."""

    sources: tuple[Source, ...]
    columns: Mapping[str, str]
    context: tuple[str, ...] = ()
    # Keeps unpacked copies alive as long as the log is.
    unpacked: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False, compare=False)

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
    unpacked = None
    if are_paths(log):
        unpacked = tempfile.TemporaryDirectory(prefix="clickmix-", ignore_cleanup_errors=True)
        sources = _file_sources(find_files(log), engine, Path(unpacked.name))
    else:
        sources = (_frame_source(log, engine),)
    opened = Log(sources, columns, tuple(context), unpacked)
    for source in sources:
        _check_columns(source, opened)
    return opened


def _file_sources(files: Iterable[Path], engine: DuckDB, folder: Path) -> tuple[Source, ...]:
    """Group files that one reader can take together: same format, same columns with the same types."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    origin: dict[str, str] = {}
    for number, file in enumerate(files):
        format, gzipped = format_of(file), is_gzipped(file)
        if file.stat().st_size == 0:
            raise InputError(f"{file}: the file is empty. Expected a click log with a header.")
        readable = file
        if format == "parquet" and gzipped:  # Parquet needs random access
            readable = _unpacked(file, folder / str(number))
            origin[str(readable)] = str(file)
        delimiter, types = _csv_columns(file) if format == "csv" else (",", _typed_columns(readable, format, engine))
        added = tuple(column for column in partitions(file) if column not in types)
        types |= dict.fromkeys(added, "VARCHAR")
        groups.setdefault((format, delimiter, gzipped, added, tuple(types.items())), []).append(str(readable))
    return tuple(
        Source(format, tuple(paths), dict(types), "", delimiter, gzipped, added, origin)
        for (format, delimiter, gzipped, added, types), paths in groups.items()
    )


def _unpacked(file: Path, folder: Path) -> Path:
    """An unpacked copy below `folder`, in folders of the same names, for they may carry columns."""
    kept = [part for part in file.parent.parts if "=" in part]
    target = folder.joinpath(*kept, file.name[: -len(".gz")])
    target.parent.mkdir(parents=True)
    unpack(file, target)
    return target


def _exactly(file: str) -> str:
    """A file's name for a reader that would take it for a glob."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in file)


def _csv_columns(file: Path) -> tuple[str, dict[str, str]]:
    """The delimiter and the columns, from the header; everything in CSV is text."""
    try:
        with gzip.open(file) if is_gzipped(file) else file.open("rb") as lines:
            start = lines.read(LONGEST_HEADER).decode("utf-8-sig", errors="replace")
        first = next(iter(io.StringIO(start, newline="")), "")
        delimiter = max(DELIMITERS, key=first.count)
        columns = next(csv.reader(io.StringIO(start, newline=""), delimiter=delimiter), [])
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise InputError(
            f"{file}: the header cannot be read: {error}. Expected UTF-8 text, gzipped if so named."
        ) from None
    if "\ufffd" in first:
        raise InputError(f"{file}: the header is not UTF-8 text. Save the file as UTF-8.")
    if not columns:
        raise InputError(f"{file}: the first line is blank. Expected a header with the names of the columns.")
    # Frames written with their index have a first column without a name.
    columns = [column or f"column{i}" for i, column in enumerate(columns)]
    lower = [column.lower() for column in columns]
    twice = [column for i, column in enumerate(columns) if lower[i] in lower[:i]]
    if twice:
        raise InputError(f"{file}: the column {twice[0]!r} stands twice in the header. Rename one of them.")
    return delimiter, dict.fromkeys(columns, "VARCHAR")


def _typed_columns(file: Path, format: Format, engine: DuckDB) -> dict[str, str]:
    files = f"[{literal(_exactly(str(file)))}], hive_partitioning = false"
    try:
        if format == "parquet":
            return engine.types(f"read_parquet({files}, binary_as_string = true)")
        compression = f"compression = '{'gzip' if is_gzipped(file) else 'none'}'"
        types = engine.types(
            f"read_json({files}, format = 'newline_delimited', records = 'true', ignore_errors = true, {compression})"
        )
    except duckdb.Error as error:
        raise unreadable(str(file), error) from None
    # In JSON these are texts that happen to look like dates or UUIDs.
    return {key: "VARCHAR" if type.startswith(("DATE", "TIME", "UUID")) else type for key, type in types.items()}


def unreadable(where: str, error: duckdb.Error) -> InputError:
    """What DuckDB said of a file it could not read, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "CSV Parser state machine" in str(error):
        lines = ["some lines end in another way than the first one, or a quotation mark stands in the wrong place"]
    reason = lines[0].split("Error: ", 1)[-1].rstrip(".") if lines else type(error).__name__
    return InputError(f"{where}: cannot be read: {reason}. The file may be damaged or cut off; write it again.")


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
    try:
        engine.register("clickmix_frame", readable)
        return Source("frame", (), engine.types("clickmix_frame"), frame="clickmix_frame")
    except duckdb.Error as error:
        raise unreadable("the frame", error) from None


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
        if column.lower() in RESERVED or log.context.count(column) > 1:
            raise SettingError(
                f"context {column!r}: stands twice, or means something else in a log. Take another name."
            )
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

    >>> [kind_of(t) for t in ("UBIGINT", "DECIMAL(18,3)", "ENUM('a', 'b')", "BOOLEAN", "DECIMAL(18,3)[]")]
    ['integer', 'real', 'text', 'boolean', 'other']
    """
    base = type.split("(")[0].upper()
    if type.endswith("]"):
        return "other"
    if base in ("FLOAT", "DOUBLE", "DECIMAL", "REAL"):
        return "real"
    if base.endswith("INT") or base == "INTEGER":
        return "integer"
    if base in ("VARCHAR", "ENUM", "UUID", "JSON"):
        return "text"
    return "boolean" if base == "BOOLEAN" else "other"
