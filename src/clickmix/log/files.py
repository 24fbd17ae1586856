"""Files, a frame or an engine's tables -> sources.   paths -> sources -> log

A source is a SQL table with known columns, and a log has one or more: paths, globs and folders name files, and files of
the same format and columns are one source. CSV and NDJSON are read as text, so that messages can show bad values.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import duckdb

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import Engine
from clickmix.errors import InputError
from clickmix.log.csv_lines import has_long_line, write_cut
from clickmix.log.first_bytes import check_first_bytes
from clickmix.log.frames import frame_source
from clickmix.log.source import Csv, EngineTable, Ndjson, Parquet, Source, begins_as_named, reader_arguments
from clickmix.storage.packed import check_packed, unpack

DELIMITERS = (",", "\t", ";", "|")
USUAL_HEADER, LONGEST_HEADER = 64_000, 2_000_000  # bytes
LONGEST_OBJECT = 16_777_216  # DuckDB's limit
LINE_END = re.compile(r"[\r\n]")
FIRST_OBJECTS = 20_000
Format = Literal["parquet", "csv", "ndjson"]
FORMATS: Mapping[str, Format] = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".ndjson", ".jsonl", ".json"), "ndjson"),
}


def find_sources(log: object, engine: Engine) -> tuple[Source, ...]:
    """The sources of a log: DuckDB reads files and frames, other engines read their tables."""
    if engine.embedded is None:
        return tuple(EngineTable(table.types, of=table) for table in engine.tables(log))
    if not are_paths(log):
        return (frame_source(log, engine.embedded),)
    if log == "" or (isinstance(log, (list, tuple)) and "" in log):  # to pathlib, this is the current folder
        raise InputError("'': no such file. The path is empty; check the variable it came from.")
    return file_sources(find_files(log), engine.embedded)


def file_sources(files: Iterable[Path], engine: DuckDB) -> tuple[Source, ...]:
    """Group files that one reader can read together: same format, same columns with the same types."""
    for file in (files := list(files)):
        if not begins_as_named(file, format=format_of(file), gzipped=is_gzipped(file)):
            check_first_bytes(file, format=format_of(file), gzipped=is_gzipped(file))
    # Check archives first: the contents of a damaged one can look like bad rows, or like good ones.
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
        readable, gzipped = _unpacked(file, folder, partial(write_cut, gzipped=gzipped)), False
    added = _added(file, types)
    origin = {str(readable): str(file)} if readable != file else {}
    return Csv(types | dict.fromkeys(added, "VARCHAR"), (str(readable),), origin, added, gzipped, delimiter)


def _open_ndjson(file: Path, engine: DuckDB, folder: Path, has_long: bool) -> Source:
    types = _json_columns(file, engine)
    added = _added(file, types)
    return Ndjson(types | dict.fromkeys(added, "VARCHAR"), (str(file),), {}, added, is_gzipped(file))


def _open_parquet(file: Path, engine: DuckDB, folder: Path, has_long: bool) -> Source:
    # Parquet needs random access, so an archive is unpacked.
    readable = _unpacked(file, folder, unpack) if is_gzipped(file) else file
    try:
        types = engine.types(f"read_parquet({reader_arguments([str(readable)])}, binary_as_string = true)")
    except duckdb.Error as error:
        raise unreadable(str(file), error, read_as=str(readable)) from None
    added = _added(file, types)
    origin = {str(readable): str(file)} if readable != file else {}
    return Parquet(types | dict.fromkeys(added, "VARCHAR"), (str(readable),), origin, added)


OPENERS = {"csv": _open_csv, "ndjson": _open_ndjson, "parquet": _open_parquet}


def _added(file: Path, types: dict[str, str]) -> tuple[str, ...]:
    """The columns that folder names add to those of a file."""
    return tuple(column for column in partitions(file) if column not in types)


def _unpacked(file: Path, folder: Path, write: Callable[[Path, Path], None]) -> Path:
    """An unpacked copy below `folder`, in folders of the same names, because these can carry columns."""
    kept = [part for part in file.parent.parts if "=" in part]
    target = folder.joinpath(*kept, file.name.removesuffix(file.suffix) if is_gzipped(file) else file.name)
    target.parent.mkdir(parents=True)
    write(file, target)
    return target


def _csv_columns(file: Path) -> tuple[str, dict[str, str]]:
    """The delimiter and the columns, from the header; everything in CSV is text."""
    try:
        with gzip.open(file) if is_gzipped(file) else file.open("rb") as lines:
            start = _text(first_bytes := lines.read(USUAL_HEADER))
            if not LINE_END.search(start):
                start = _text(first_bytes + lines.read(LONGEST_HEADER - USUAL_HEADER))
            if not LINE_END.search(start) and lines.read(1):
                raise InputError(
                    f"{file}: the first line is longer than {LONGEST_HEADER:,} bytes. Expected a header with column "
                    "names."
                )
        first = next(iter(io.StringIO(start, newline="")), "")
        delimiter = max(DELIMITERS, key=first.count)
        columns = next(csv.reader(io.StringIO(start, newline=""), delimiter=delimiter), [])
    except (OSError, csv.Error) as error:
        raise InputError(f"{file}: the header cannot be read: {error}. Expected UTF-8 text.") from None
    if "\ufffd" in first:
        raise InputError(f"{file}: the header is not UTF-8 text. Save the file as UTF-8.")
    if not columns:
        raise InputError(f"{file}: the first line is blank. Expected a header with column names.")
    # Blanks around a name mean nothing. Frames written with their index have a first column without a name.
    columns = [column.strip() or f"column{i}" for i, column in enumerate(columns)]
    if columns[2:3] == ["Q"] and delimiter == "\t":  # a page of the Yandex challenge, in which numbers repeat
        return delimiter, {f"{column} ({i})": "VARCHAR" for i, column in enumerate(columns)}
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen and column.isdigit():
            raise InputError(
                f"{file}: the first line ({', '.join(columns[:6])}) has no column names. Expected a header. Pairs "
                "that were clicked or judged (such as MS MARCO's) are not a log: they do not say what was shown and "
                "not clicked."
            )
        if column.lower() in seen:
            raise InputError(f"{file}: the header has the column {column!r} twice. Rename one of them.")
        seen.add(column.lower())
    return delimiter, dict.fromkeys(columns, "VARCHAR")


def _text(read: bytes) -> str:
    return read.decode("utf-8-sig", errors="replace")


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


def unreadable(where: str, error: duckdb.Error, *, read_as: str = "") -> InputError:
    """What DuckDB said about a file it could not read, in one line; `read_as` is the file's unpacked copy."""
    if "Too many open files" in str(error):  # nothing is wrong with the file
        return InputError(
            f"{where}: cannot be read: too many files are open. Allow more with ulimit -n, or count some of the files "
            "at a time and add the others with counts --merge."
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "maximum recursion depth" in str(error):
        lines = ["a line of JSON is nested more than 128 levels deep"]
    if "CSV Parser state machine" in str(error):
        lines = ["some lines end differently from the first one, or a quotation mark is in the wrong place"]
    if "maximum_object_size" in str(error):
        lines = [f"a line of JSON is longer than {LONGEST_OBJECT:,} bytes"]
    reason = lines[0].split("Error: ", 1)[-1].rstrip(".") if lines else type(error).__name__
    reason = reason.replace(read_as, where) if read_as else reason
    return InputError(f"{where}: cannot be read: {reason}. The file may be damaged or cut off; write it again.")


def are_paths(log: object) -> bool:
    """Whether a log is given by paths: one, or a list of them."""
    if isinstance(log, (list, tuple)):
        return bool(log) and all(isinstance(part, (str, os.PathLike)) for part in log)
    return isinstance(log, (str, os.PathLike))


def find_files(log: object) -> list[Path]:
    """The files that a path, a glob, a folder, or a list of those names; each must exist and be named once."""
    parts = [log] if isinstance(log, (str, os.PathLike)) else list(log)  # type: ignore[call-overload]
    found = [file for part in parts for file in _expand(os.fspath(part))]
    seen: set[Path] = set()
    for file in found:
        if file.resolve() in seen:
            raise InputError(f"{file}: given twice. Its clicks would be counted twice; name it once.")
        seen.add(file.resolve())
        try:
            file.open("rb").close()
        except PermissionError as error:  # a reader would call the file damaged
            raise InputError(f"{file}: cannot be read: {error.strerror}. Make it readable, or leave it out.") from None
    return found


def format_of(file: Path) -> Format:
    """The format of a file, by its name."""
    format = _format(file)
    if format is None:
        expected = ", ".join(FORMATS)
        raise InputError(f"{file}: unknown kind of file. Expected a name ending in {expected}, or those with .gz.")
    return format


def is_gzipped(file: Path) -> bool:
    """Whether a file is gzipped as a whole, by its name."""
    return file.suffix.lower() == ".gz"


def partitions(file: Path) -> list[str]:
    """The columns that folders named column=value give to the files in them.

    >>> partitions(Path("log/day=3/device=mobile/part.csv"))
    ['day', 'device']
    """
    return [part.split("=")[0] for part in file.parent.parts if part.count("=") == 1 and not part.startswith("=")]


def _expand(text: str) -> list[Path]:
    path = Path(text)
    if path.is_dir():
        files = sorted(_search(path, {}))
        if not files:
            raise InputError(
                f"{path}: a folder without Parquet, CSV or NDJSON files. Name the folder of the click log."
            )
        return files
    if path.is_file():
        return [path]
    if path.exists():
        raise InputError(
            f"{path}: a pipe, a socket or a device. A log is read several times; write it to a file first."
        )
    matches = [Path(match) for match in glob.glob(text, recursive=True)]
    _check_searched(text)
    for match in matches:
        _check_link(match)
    files = sorted(match for match in matches if match.is_file())
    if not files:
        kind = "no file matches" if glob.has_magic(text) else "no such file"
        raise InputError(f"{text}: {kind}. Check the path; folders and globs such as 'logs/*.parquet' work too.")
    return files


def _search(folder: Path, seen: dict[Path, Path]) -> Iterator[Path]:
    """The data files of a folder and of those below it, including linked ones; unreadable ones are an error.

    `seen` maps the real path of each folder searched so far to the path under which it was found.
    """
    first = seen.setdefault(folder.resolve(), folder)
    if first is not folder:
        raise InputError(f"{folder}: the same folder as {first}. Its clicks would be counted twice; remove the link.")
    with _reading(folder):
        with os.scandir(folder) as entries:
            # Tools leave `_SUCCESS`, `.crc` and the like beside the data.
            names = sorted(entry.name for entry in entries if not entry.name.startswith((".", "_")))
        for name in names:
            _check_link(folder / name)
        folders = {name for name in names if (folder / name).is_dir()}
    for path in (folder / name for name in names):
        if path.name in folders:
            yield from _search(path, seen)
        elif path.is_file() and _format(path) is not None:
            yield path


def passed_over(log: object) -> list[Path]:
    """Files in the folders of a log that are not read, except those that tools leave beside data (`_SUCCESS`)."""
    parts = [log] if isinstance(log, (str, os.PathLike)) else list(log)  # type: ignore[call-overload]
    found = []
    for folder in (part for part in parts if Path(part).is_dir()):
        for above, folders, files in os.walk(folder, followlinks=True):
            hidden = [name for name in folders if name.startswith((".", "_"))]
            for name in hidden:
                folders.remove(name)
            others = (name for name in files if name.startswith((".", "_")) == (_format(Path(name)) is not None))
            found += [Path(above, name) for name in (*hidden, *others)]
    return sorted(found)


def _check_searched(pattern: str) -> None:
    """Raise if a glob searches a folder that cannot be read: Python's glob skips it silently."""
    parts = Path(pattern).parts
    first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    for number, part in enumerate(parts[first:], start=first):
        above = os.path.join(*parts[:number], "") if number else ""
        folders = glob.glob(above, recursive=True) if above else ["."]
        folders += glob.glob(f"{above}**/", recursive=True) if part == "**" else []
        for folder in folders:
            with _reading(Path(folder)):
                os.stat(os.path.join(folder, "."))  # fails if the folder cannot be entered
                if glob.has_magic(part):
                    os.scandir(folder).close()


@contextlib.contextmanager
def _reading(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be read: {error.strerror}. It may hold part of the log; make it readable, or name the "
            "files of the log."
        ) from None


def _check_link(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise InputError(
            f"{path}: a broken link. It may have been part of the log; remove it, or restore {path.readlink()}."
        )


def _format(path: Path) -> Format | None:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return FORMATS.get(suffixes[-1]) if suffixes else None
