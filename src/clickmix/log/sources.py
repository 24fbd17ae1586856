"""Files with the same columns, a frame, an engine's table -> a source: SQL with known columns.   paths -> log"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import Table
from clickmix.engines.sql import listed, literal, name
from clickmix.errors import InputError
from clickmix.log.long_lines import has_long_line, write_cut
from clickmix.log.paths import Format, format_of, is_gzipped, partitions
from clickmix.storage.packed import check_packed, unpack

DELIMITERS = (",", "\t", ";", "|")
LONGEST_HEADER = 1 << 20
FIRST_OBJECTS = 20_000


@dataclass(frozen=True)
class Source:
    """Files of one format with the same columns, one frame or one table of an engine, readable as one SQL table."""

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
    # Columns that go by other names than in the files: name in the file -> name here.
    renamed: Mapping[str, str] = field(default_factory=dict)
    # Of a table of an engine: what the user calls it, and what else the engine knows of it.
    of: Table | None = None

    @property
    def untyped(self) -> bool:
        """Whether it is read from CSV, where everything is text."""
        return self.format == "csv" or (self.of is not None and self.of.untyped)

    def __str__(self) -> str:
        if self.of is not None:
            return self.of.shown
        if not self.files:
            return "the frame"
        first = self.shown(self.files[0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    def shown(self, file: str) -> str:
        """A file as the user named it."""
        return self.origin.get(file, file)

    def table(self, *, skip: bool = False, file: str | None = None, numbered: bool = False) -> str:
        """The SQL table: all its files or one of them, with the row number where that costs nothing extra."""
        if self.of is not None:
            return self.of.name
        if self.format == "frame":
            return name(self.frame)
        files = self.reader_arguments(file)
        if self.format == "parquet":
            number = ", filename = 'file read', file_row_number = true" if numbered else ""
            table = f"read_parquet({files}, binary_as_string = true{number})"
            renamed = listed(f"{name(old)} AS {name(new)}" for old, new in self.renamed.items())
            return f"(SELECT * RENAME ({renamed}) FROM {table})" if renamed else table
        own = [column for column in self.types if column not in self.partitions]
        columns = "{" + listed(f"{literal(column)}: 'VARCHAR'" for column in own) + "}"
        if self.format == "csv":
            # Nothing is guessed: a reader that guesses takes the first well-formed line for the header.
            rejects = ", store_rejects = true" if skip else ""
            quoting = f"""delim = {literal(self.delimiter)}, quote = '"', escape = '"', allow_quoted_nulls = false"""
            return f"read_csv({files}, auto_detect = false, header = true, {quoting}, columns = {columns}{rejects})"
        return f"read_json({files}, format = 'newline_delimited', columns = {columns})"

    def reader_arguments(self, file: str | None = None) -> str:
        """The files (or one of them) as the first arguments of a SQL reader."""
        gzipped = None if self.format == "parquet" else self.gzipped
        return _reading([file] if file else self.files, partitioned=bool(self.partitions), gzipped=gzipped)


def file_sources(files: Iterable[Path], engine: DuckDB) -> tuple[Source, ...]:
    """Group files that one reader can take together: same format, same columns with the same types."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    origin: dict[str, str] = {}
    files = list(files)
    # Before anything is read: what a damaged archive holds looks like bad rows, or like good ones.
    packed = [file for file in files if is_gzipped(file) and format_of(file) != "parquet" and file.stat().st_size]
    long_lines = check_packed(packed)
    for number, file in enumerate(files):
        format, gzipped = format_of(file), is_gzipped(file)
        if file.stat().st_size == 0:
            raise InputError(f"{file}: the file is empty. Expected a click log with a header.")
        readable = file
        if format == "parquet" and gzipped:  # Parquet needs random access
            readable = _unpacked(file, engine.folder / "unpacked" / str(number))
        if format == "csv":
            delimiter, types = _csv_columns(file)
            if file in long_lines or (not gzipped and has_long_line(file)):
                readable, gzipped = _unpacked(file, engine.folder / "unpacked" / str(number)), False
        else:
            delimiter, types = ",", (_parquet_columns if format == "parquet" else _json_columns)(readable, engine)
        if readable != file:
            origin[str(readable)] = str(file)
        added = tuple(column for column in partitions(file) if column not in types)
        types |= dict.fromkeys(added, "VARCHAR")
        groups.setdefault((format, delimiter, gzipped, added, tuple(types.items())), []).append(str(readable))
    return tuple(
        Source(format, tuple(paths), dict(types), "", delimiter, gzipped, added, origin)
        for (format, delimiter, gzipped, added, types), paths in groups.items()
    )


def _unpacked(file: Path, folder: Path) -> Path:
    """An unpacked copy below `folder`, in folders of the same names, for they may carry columns. CSV has lines cut."""
    kept = [part for part in file.parent.parts if "=" in part]
    target = folder.joinpath(*kept, file.name.removesuffix(file.suffix) if is_gzipped(file) else file.name)
    target.parent.mkdir(parents=True)
    (write_cut if format_of(file) == "csv" else unpack)(file, target)
    return target


def _csv_columns(file: Path) -> tuple[str, dict[str, str]]:
    """The delimiter and the columns, from the header; everything in CSV is text."""
    try:
        with gzip.open(file) if is_gzipped(file) else file.open("rb") as lines:
            start = lines.read(LONGEST_HEADER).decode("utf-8-sig", errors="replace")
        first = next(iter(io.StringIO(start, newline="")), "")
        delimiter = max(DELIMITERS, key=first.count)
        columns = next(csv.reader(io.StringIO(start, newline=""), delimiter=delimiter), [])
    except (OSError, csv.Error) as error:
        raise InputError(f"{file}: the header cannot be read: {error}. Expected UTF-8 text.") from None
    if "\ufffd" in first:
        raise InputError(f"{file}: the header is not UTF-8 text. Save the file as UTF-8.")
    if not columns:
        raise InputError(f"{file}: the first line is blank. Expected a header with the names of the columns.")
    # Blanks around a name mean nothing. Frames written with their index have a first column without a name.
    columns = [column.strip() or f"column{i}" for i, column in enumerate(columns)]
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            raise InputError(f"{file}: the column {column!r} stands twice in the header. Rename one of them.")
        seen.add(column.lower())
    return delimiter, dict.fromkeys(columns, "VARCHAR")


def _parquet_columns(file: Path, engine: DuckDB) -> dict[str, str]:
    try:
        return engine.types(f"read_parquet({_reading([str(file)])}, binary_as_string = true)")
    except duckdb.Error as error:
        raise unreadable(str(file), error) from None


def _json_columns(file: Path, engine: DuckDB) -> dict[str, str]:
    """The keys of the first objects, with the JSON types of their values: 5 is a number, "5" and dates are text."""
    objects = f"read_ndjson_objects({_reading([str(file)], gzipped=is_gzipped(file))}, ignore_errors = true)"
    first = f"SELECT json FROM {objects} WHERE json_type(json) = 'OBJECT' LIMIT {FIRST_OBJECTS}"
    try:
        with engine.in_order():
            ((structure,),) = engine.rows(f"SELECT json_group_structure(json) FROM ({first})")
    except duckdb.Error as error:
        raise unreadable(str(file), error) from None
    if structure is None:
        raise InputError(f"{file}: no line is a JSON object. Expected one object per line, one line per impression.")
    scalar = {"UBIGINT": "BIGINT", "NULL": "VARCHAR"}
    return {
        key: scalar.get(type, type) if isinstance(type, str) else "JSON[]"
        for key, type in json.loads(structure).items()
    }


def file_list(files: Sequence[str]) -> str:
    """A SQL list of these very files: nothing in their names is a glob."""
    return "[" + listed(literal("".join(f"[{c}]" if c in "*?[" else c for c in file)) for file in files) + "]"


def _reading(files: Sequence[str], *, partitioned: bool = False, gzipped: bool | None = None) -> str:
    """The first arguments of a SQL reader: these very files (no globs), and whether folders carry columns."""
    folders = "true, hive_types_autocast = false" if partitioned else "false"
    packing = "" if gzipped is None else f", compression = '{'gzip' if gzipped else 'uncompressed'}'"
    return f"{file_list(files)}, hive_partitioning = {folders}{packing}"


def unreadable(where: str, error: duckdb.Error) -> InputError:
    """What DuckDB said of a file it could not read, in one line."""
    if "Too many open files" in str(error):  # nothing is wrong with what is read
        return InputError(
            f"{where}: cannot be read: too many files are open. Allow more with ulimit -n, or count some of the files "
            "at a time and add the others with counts --merge."
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "maximum recursion depth" in str(error):
        lines = ["a line of JSON is nested more than 128 levels deep"]
    if "CSV Parser state machine" in str(error):
        lines = ["some lines end in another way than the first one, or a quotation mark stands in the wrong place"]
    reason = lines[0].split("Error: ", 1)[-1].rstrip(".") if lines else type(error).__name__
    return InputError(f"{where}: cannot be read: {reason}. The file may be damaged or cut off; write it again.")


def table_source(table: Table) -> Source:
    """A table of an engine as a source."""
    return Source("table", (), table.types, of=table)


class _Stream:
    """A frame as nothing but an Arrow stream, which DuckDB reads without pyarrow; each reading starts anew."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def frame_source(frame: object, engine: DuckDB) -> Source:
    """A frame of pandas, polars, arrow or DuckDB as a source."""
    if isinstance(frame, duckdb.DuckDBPyRelation):
        readable: object = _Stream(frame)
    else:
        import narwhals as nw  # late: files do not need it

        try:
            known = nw.from_native(frame)  # type: ignore[call-overload]
        except TypeError:
            raise InputError(
                f"a {type(frame).__name__} is no click log. Give a path, a list of paths, or a frame of pandas, "
                "polars, arrow or DuckDB."
            ) from None
        native = (known.collect() if isinstance(known, nw.LazyFrame) else known).to_native()
        readable = _Stream(native) if known.implementation.is_polars() else native
    try:
        engine.register("clickmix_frame", readable)
        return Source("frame", (), engine.types("clickmix_frame"), frame="clickmix_frame")
    except duckdb.Error as error:
        raise unreadable("the frame", error) from None


def kind_of(type: str) -> str:
    """What a SQL type holds: text, integer, real, boolean or other.

    Warehouses write integers as decimals without digits after the point.

    >>> [kind_of(t) for t in ("UINTEGER", "DECIMAL(38,0)", "DECIMAL(18,3)", "ENUM('a', 'b')", "BOOLEAN", "INTEGER[]")]
    ['integer', 'integer', 'real', 'text', 'boolean', 'other']
    """
    base = type.split("(")[0].upper()
    if type.endswith("]"):
        return "other"
    if type.startswith("DECIMAL") and type.endswith(",0)"):
        return "integer"
    if base in ("FLOAT", "DOUBLE", "DECIMAL", "REAL"):
        return "real"
    if base.endswith(("INT", "INTEGER")):
        return "integer"
    if base in ("VARCHAR", "ENUM", "UUID", "JSON"):
        return "text"
    return "boolean" if base == "BOOLEAN" else "other"


def is_wide(type: str) -> bool:
    """Whether an integer type holds more than a BIGINT can."""
    return type in ("UBIGINT", "HUGEINT", "UHUGEINT") or type.startswith("DECIMAL")


def disagree(types: set[str]) -> bool:
    """Whether ids of these types have no common type that keeps them: text and integers, or uint64 and signed ones.

    SQL would take 128 bits for the latter, which numpy and files have as reals only.
    """
    signed = any(not type.startswith("U") for type in types)
    return len({kind_of(type) for type in types}) > 1 or ("UBIGINT" in types and signed)
