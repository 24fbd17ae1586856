"""Paths, globs and folders -> the files of a log, and the format of each.   paths -> log"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from clickmix.errors import InputError

Format = Literal["parquet", "csv", "ndjson"]
FORMATS: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
}


def are_paths(log: object) -> bool:
    """Whether a log is given by paths: one, or a list of them."""
    if isinstance(log, (list, tuple)):
        return bool(log) and all(isinstance(part, (str, os.PathLike)) for part in log)
    return isinstance(log, (str, os.PathLike))


def find_files(log: object) -> list[Path]:
    """The files meant by a path, a glob, a folder, or a list of those; each must exist and be named once."""
    parts = [log] if isinstance(log, (str, os.PathLike)) else list(log)  # type: ignore[call-overload]
    found = [file for part in parts for file in _expand(os.fspath(part))]
    seen: set[Path] = set()
    for file in found:
        if file.resolve() in seen:
            raise InputError(f"{file}: given twice. Its clicks would be counted twice; name it once.")
        seen.add(file.resolve())
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
                f"{path}: a folder without Parquet, CSV or NDJSON files. Give the folder of the click log."
            )
        return files
    if path.exists():
        return [path]
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
    """The data files of a folder and of those below it, linked ones too; what cannot be read is an error.

    `seen` holds the folders searched so far: where each really is, and under which path it was found.
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
    """What lies in the folders of a log and is not read; not what tools leave beside data, such as `_SUCCESS`."""
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
    """Raise if a folder in which a glob looks for matches cannot be read; Python's glob passes over it silently."""
    parts = Path(pattern).parts
    first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    for number, part in enumerate(parts[first:], start=first):
        above = os.path.join(*parts[:number], "") if number else ""
        folders = glob.glob(above, recursive=True) if above else ["."]
        folders += glob.glob(f"{above}**/", recursive=True) if part == "**" else []
        for folder in folders:
            with _reading(Path(folder)):
                os.stat(os.path.join(folder, "."))  # fails if what is in the folder cannot be reached
                if glob.has_magic(part):
                    os.scandir(folder).close()


@contextlib.contextmanager
def _reading(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be read: {error.strerror}. It may hold a part of the log; make it readable, or name the "
            "files of the log."
        ) from None


def _check_link(path: Path) -> None:
    """Raise if a link leads nowhere."""
    if path.is_symlink() and not path.exists():
        raise InputError(
            f"{path}: a link that leads nowhere. It may have been a part of the log; remove it, or restore "
            f"{path.readlink()}."
        )


def _format(path: Path) -> Format | None:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return FORMATS.get(suffixes[-1]) if suffixes else None
