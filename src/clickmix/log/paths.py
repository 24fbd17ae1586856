"""Paths, globs and folders -> the files of a log, and the format of each.   paths -> log"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from clickmix.errors import InputError

Format = Literal["parquet", "csv", "ndjson", "frame", "table"]
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
    """The files meant by a path, a glob, a folder, or a list of those; each must exist and stand there once."""
    parts = [log] if isinstance(log, (str, os.PathLike)) else list(log)  # type: ignore[call-overload]
    found = [file for part in parts for file in _expand(os.fspath(part))]
    seen: set[Path] = set()
    for file in found:
        if file.resolve() in seen:
            raise InputError(f"{file}: given twice. Its clicks would be counted twice; name it once.")
        seen.add(file.resolve())
    return found


def format_of(file: Path) -> Format:
    """The format that a file's name tells."""
    format = _format(file)
    if format is None:
        expected = ", ".join(FORMATS)
        raise InputError(f"{file}: unknown kind of file. Expected a name ending in {expected}, or those with .gz.")
    return format


def is_gzipped(file: Path) -> bool:
    """Whether a file's name tells that it is gzipped as a whole."""
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
