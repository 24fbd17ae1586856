"""What the first bytes of a file say, if its name says something else.   paths -> sources"""

from __future__ import annotations

from pathlib import Path

from clickmix.errors import InputError
from clickmix.log.not_logs import advice_on_document
from clickmix.log.source import GZIP_START, PARQUET_START
from clickmix.storage.documents import START


def check_first_bytes(file: Path, *, format: str, gzipped: bool) -> None:
    """Raise if a file is of another kind than its name says: a reader would call it damaged."""
    if advice := advice_on_document(file):
        raise InputError(f"{file}: {advice}")
    with file.open("rb") as opened:
        start = opened.read(START)
    stem = file.name.removesuffix(file.suffix) if gzipped else file.name
    if start.startswith(GZIP_START) and not gzipped:
        raise _misnamed(file, "gzipped", f"{file.name}.gz")
    if start.startswith(PARQUET_START) and (gzipped or format != "parquet"):
        raise _misnamed(file, "Parquet", f"{Path(stem).stem}.parquet")
    if start and gzipped and not start.startswith(GZIP_START):
        raise _misnamed(file, "not gzipped", stem)
    if format == "parquet" and (suffix := _suffix_of_text(start)):
        raise _misnamed(file, "text, not Parquet", f"{Path(stem).stem}{suffix}")


def _suffix_of_text(start: bytes) -> str:
    """The usual suffix of a text file that begins like this; empty if it does not look like a table in text."""
    first, line_end, _ = start.partition(b"\n")
    if first.startswith(b"{"):
        return ".ndjson"
    return ".csv" if line_end and b"," in first and b"\0" not in start else ""


def _misnamed(file: Path, what: str, name: str) -> InputError:
    return InputError(f"{file}: by its first bytes, this file is {what}. Rename it to {name}, or write it again.")
