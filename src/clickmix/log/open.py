"""A click log in any layout: files, a frame or an engine's tables -> sources -> the parts to count.   paths -> counts

A source is a SQL table with known columns, and a log is one or many. Text formats (CSV, NDJSON) are read as text and
judged in SQL, so that a bad value can be shown as it is in the file.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import Engine, StoredTable
from clickmix.errors import InputError, SettingError
from clickmix.log.columns import all_roles, checked_columns, checked_context, same_but_case
from clickmix.log.csv_lines import has_long_line, write_cut
from clickmix.log.layout import LAYOUTS, Layout, Lists, Part, Roles
from clickmix.log.layouts.counted import COUNTED
from clickmix.log.paths import are_paths, find_files, format_of, is_gzipped, partitions, passed_over
from clickmix.log.refused import Note
from clickmix.log.source import Csv, EngineTable, Frame, Ndjson, Parquet, Source, reader_arguments
from clickmix.storage.packed import check_packed, unpack

DELIMITERS = (",", "\t", ";", "|")
LONGEST_HEADER = 2_000_000
LINE_END = re.compile(r"[\r\n]")
FIRST_OBJECTS = 20_000


def find_sources(log: object, engine: Engine) -> tuple[Source, ...]:
    """What a log is read from: DuckDB reads files and frames, other engines what they call tables."""
    if engine.embedded is None:
        return tuple(table_source(table) for table in engine.tables(log))
    if not are_paths(log):
        return (frame_source(log, engine.embedded),)
    if log == "" or (isinstance(log, (list, tuple)) and "" in log):  # to pathlib, this is the current folder
        raise InputError("'': no such file. The path is empty; check the variable it came from.")
    return file_sources(find_files(log), engine.embedded)


def file_sources(files: Iterable[Path], engine: DuckDB) -> tuple[Source, ...]:
    """Group files that one reader can take together: same format, same columns with the same types."""
    files = list(files)
    # First of all: what a damaged archive holds looks like bad rows, or like good ones.
    packed = [file for file in files if is_gzipped(file) and format_of(file) != "parquet" and file.stat().st_size]
    long_lines = check_packed(packed) if packed else []
    groups: dict[str, list[Source]] = {}
    for number, file in enumerate(files):
        if file.stat().st_size == 0:
            raise InputError(f"{file}: the file is empty. Expected a click log with a header.")
        folder = engine.folder / "unpacked" / str(number)
        source = OPENERS[format_of(file)](file, engine, folder, file in long_lines)
        groups.setdefault(repr(replace(source, files=(), origin={})), []).append(source)
    return tuple(
        replace(
            alike[0],
            files=tuple(file for source in alike for file in source.files),
            origin={file: name for source in alike for file, name in source.origin.items()},
        )
        for alike in groups.values()
    )


def _open_csv(file: Path, engine: DuckDB, folder: Path, has_long: bool) -> Source:
    delimiter, types = _csv_columns(file)
    gzipped, readable = is_gzipped(file), file
    if has_long or (not gzipped and has_long_line(file)):
        readable, gzipped = _unpacked(file, folder, write_cut), False
    added = _added(file, types)
    origin = {str(readable): str(file)} if readable != file else {}
    return Csv(types | dict.fromkeys(added, "VARCHAR"), (str(readable),), origin, gzipped, added, delimiter)


def _open_ndjson(file: Path, engine: DuckDB, folder: Path, has_long: bool) -> Source:
    types = _json_columns(file, engine)
    added = _added(file, types)
    return Ndjson(types | dict.fromkeys(added, "VARCHAR"), (str(file),), {}, is_gzipped(file), added)


def _open_parquet(file: Path, engine: DuckDB, folder: Path, has_long: bool) -> Source:
    # Parquet needs random access, so an archive is unpacked.
    readable = _unpacked(file, folder, unpack) if is_gzipped(file) else file
    try:
        types = engine.types(f"read_parquet({reader_arguments([str(readable)])}, binary_as_string = true)")
    except duckdb.Error as error:
        raise unreadable(str(readable), error) from None
    added = _added(file, types)
    origin = {str(readable): str(file)} if readable != file else {}
    return Parquet(types | dict.fromkeys(added, "VARCHAR"), (str(readable),), origin, added)


OPENERS = {"csv": _open_csv, "ndjson": _open_ndjson, "parquet": _open_parquet}


def _added(file: Path, types: dict[str, str]) -> tuple[str, ...]:
    """The columns that the names of folders add to those of a file."""
    return tuple(column for column in partitions(file) if column not in types)


def _unpacked(file: Path, folder: Path, write: Callable[[Path, Path], None]) -> Path:
    """An unpacked copy below `folder`, in folders of the same names, because they may carry columns."""
    kept = [part for part in file.parent.parts if "=" in part]
    target = folder.joinpath(*kept, file.name.removesuffix(file.suffix) if is_gzipped(file) else file.name)
    target.parent.mkdir(parents=True)
    write(file, target)
    return target


def _csv_columns(file: Path) -> tuple[str, dict[str, str]]:
    """The delimiter and the columns, from the header; everything in CSV is text."""
    try:
        with gzip.open(file) if is_gzipped(file) else file.open("rb") as lines:
            start = lines.read(LONGEST_HEADER).decode("utf-8-sig", errors="replace")
            if not LINE_END.search(start) and lines.read(1):
                raise InputError(
                    f"{file}: the first line is longer than {LONGEST_HEADER:,} bytes. Expected a header with the names "
                    "of the columns."
                )
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
    if columns[2:3] == ["Q"] and delimiter == "\t":  # a page of the Yandex challenge, in which numbers repeat
        return delimiter, {f"{column} ({i})": "VARCHAR" for i, column in enumerate(columns)}
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen and column.isdigit():
            raise InputError(
                f"{file}: the first line ({', '.join(columns[:6])}) has no names of columns. Expected a header. Pairs "
                "that were clicked or judged (as MS MARCO's) are not a log: they do not say what was shown and not "
                "clicked."
            )
        if column.lower() in seen:
            raise InputError(f"{file}: the header has the column {column!r} twice. Rename one of them.")
        seen.add(column.lower())
    return delimiter, dict.fromkeys(columns, "VARCHAR")


def _json_columns(file: Path, engine: DuckDB) -> dict[str, str]:
    """The keys of the first objects with the types of their values: 5 is a number, "5" and dates are text."""
    objects = f"read_ndjson_objects({reader_arguments([str(file)], gzipped=is_gzipped(file))}, ignore_errors = true)"
    first = f"SELECT json FROM {objects} WHERE json_type(json) = 'OBJECT' LIMIT {FIRST_OBJECTS}"
    try:
        with engine.in_order():
            ((structure,),) = engine.rows(f"SELECT json_group_structure(json) FROM ({first})")
    except duckdb.Error as error:
        raise unreadable(str(file), error) from None
    if structure is None:
        raise InputError(f"{file}: no line is a JSON object. Expected one object per line, one line per impression.")
    return {key: _json_type(type) for key, type in json.loads(structure).items()}


def _json_type(structure: Any) -> str:
    """The SQL type of a value that json_group_structure describes; objects and lists of objects are JSON."""
    if isinstance(structure, list) and len(structure) == 1 and isinstance(structure[0], str):
        return f"{_json_type(structure[0])}[]"
    scalar = {"UBIGINT": "BIGINT", "NULL": "VARCHAR"}
    return scalar.get(structure, structure) if isinstance(structure, str) else "JSON[]"


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
        lines = ["some lines end differently from the first one, or a quotation mark is in the wrong place"]
    reason = lines[0].split("Error: ", 1)[-1].rstrip(".") if lines else type(error).__name__
    return InputError(f"{where}: cannot be read: {reason}. The file may be damaged or cut off; write it again.")


def table_source(table: StoredTable) -> Source:
    """A table of an engine as a source."""
    return EngineTable(table.types, of=table)


class _Stream:
    """A frame as an Arrow stream, which DuckDB reads without pyarrow; each reading starts from the beginning."""

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
                f"a {type(frame).__name__} is not a click log. Give a path, a list of paths, or a frame of pandas, "
                "polars, arrow or DuckDB."
            ) from None
        native = (known.collect() if isinstance(known, nw.LazyFrame) else known).to_native()
        readable = _Stream(native) if known.implementation.is_polars() else native
    try:
        name = engine.new_name("clickmix_frame")  # a log, its judgments and labels may all be frames
        engine.register(name, readable)
        return Frame(engine.types(name), registered=name)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].split("Error: ", 1)[-1].rstrip(".")
        raise InputError(
            f"the frame: cannot be read: {reason}. Give columns of numbers or text, or of lists of them; for arrays of "
            "text, lists."
        ) from None


MOST_NAMED = 5  # of the files in a folder that are not read


@dataclass(frozen=True)
class OpenedLog:
    """A log that can be counted: the sources it was read from, its parts, and what was odd when it was opened."""

    sources: tuple[Source, ...]
    parts: tuple[Part, ...]
    roles: Roles
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.sources))


def choose_layout(format: str | Layout = "auto", **options: Any) -> Layout:
    """The layout of that name with its options; a layout is taken as it is. Options of one layout alone name it."""
    if not isinstance(format, Layout):
        given = {key for key, value in options.items() if value is not None}
        takers = [member.name for member in LAYOUTS if given <= {option.name for option in member.options}]
        if format == "auto" and given and len(takers) > 1:
            raise SettingError(
                f"{min(given)} is for {', '.join(takers)}, and the format is auto. Say which it is with --format "
                f"{' or '.join(takers)}."
            )
        return LAYOUTS.make(takers[0] if format == "auto" and given and takers else format, **options)
    if options:
        raise SettingError(f"{next(iter(options))}: the format is an object that has its settings. Leave it out.")
    return format


def split_options(format: str | Layout, options: Mapping[str, Any]) -> tuple[Layout, dict[str, Any]]:
    """The layout with the options that belong to layouts, and the other options."""
    names = {option.name for option in LAYOUTS.options()}
    layout = choose_layout(format, **{name: value for name, value in options.items() if name in names})
    return layout, {name: value for name, value in options.items() if name not in names}


def open_log(
    log: object,
    *,
    engine: Engine,
    layout: Layout | None = None,
    columns: Mapping[str, str] | None = None,
    context: str | Sequence[str] = (),
    lists: Lists = False,
) -> OpenedLog:
    """Find the files, tables or the frame of a log, look at their columns, and say what is missing."""
    columns, context = checked_columns(columns or {}), checked_context(context)
    if lists and context:
        raise SettingError(f"context {context[0]!r}: result lists are kept without context columns. Leave one out.")
    layout = layout or choose_layout()
    sources = tuple(_named_alike(source, columns, engine) for source in layout.find(log, engine))
    roles = Roles(columns | _in_capitals(sources, columns), context, lists)
    try:
        parts, notes = layout.open(sources, roles, engine)
    except duckdb.Error as error:
        raise unreadable(", ".join(map(str, sources)), error) from None
    others = passed_over(log) if engine.embedded is not None and are_paths(log) else []
    if others:
        named = ", ".join(map(str, others[:MOST_NAMED])) + (", and others" if len(others) > MOST_NAMED else "")
        what = "file or folder was" if len(others) == 1 else "files or folders were"
        notes = (Note(f"{what} passed over: {named}", len(others)), *notes)
    return OpenedLog(sources, parts, roles, notes)


def _named_alike(source: Source, columns: Mapping[str, str], engine: Engine) -> Source:
    """A counts file that clickmix wrote has the standard names, whatever the raw log calls its columns."""
    duck = engine.embedded
    if not (columns and duck is not None and len(source.notes(duck)) == len(source.files) > 0):
        return source
    renamed = {role: column for role, column in columns.items() if role in source.types and role != column}
    types = {renamed.get(column, column): type for column, type in source.types.items()}
    twice = [role for role, column in renamed.items() if column in source.types and column not in renamed]
    if twice:
        raise InputError(
            f"{source}: the columns {twice[0]} and {columns[twice[0]]!r} would both be called {columns[twice[0]]!r}. "
            "Count the raw log again, or leave one of the two out."
        )
    return source.rename(renamed, types)


def _in_capitals(sources: Sequence[Source], columns: Mapping[str, str]) -> dict[str, str]:
    """Columns that all sources write in another case than expected, as Snowflake does: QUERY_ID."""
    counted = any(columns.get(role, role) in source.types for role in COUNTED for source in sources)
    found = {}
    for role in all_roles():
        wanted = columns.get(role, role)
        names = {same_but_case(wanted, source.types) for source in sources}
        if len(names) == 1 and names not in ({None}, {wanted}) and not (counted and role == "clicked"):
            found[role] = str(names.pop())
    return found
