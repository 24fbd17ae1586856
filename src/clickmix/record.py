"""The files of a log -> the record of what was counted, so that nothing is counted twice.   log -> counts

A counts file in Parquet carries the names and fingerprints of the files it was counted from; counts merged from others
carry theirs. A fingerprint is made of a file's size and a few blocks of it: it costs nothing and moves with the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clickmix.engines.duckdb import DuckDB
from clickmix.errors import FormatError, InputError
from clickmix.sources import Source, file_list

BLOCK = 1 << 14
BLOCKS = 4
SMALL = 4_096  # bytes: such files can be equal by chance, so folder and name count too


@dataclass(frozen=True)
class CountedFile:
    """A file that was counted: its name then, and what it is known by."""

    name: str
    fingerprint: str


def fingerprint(path: str | Path) -> str:
    """What tells a file from others, whatever its name: its size, and its first, last and two inner blocks."""
    path = Path(path)
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    if size < SMALL:
        digest.update("/".join(path.resolve().parts[-2:]).encode())
    with path.open("rb") as file:
        for i in range(BLOCKS):
            file.seek(max(0, (size - BLOCK) * i // (BLOCKS - 1)))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()[:32]


def record_of(sources: Sequence[Source], engine: DuckDB) -> tuple[CountedFile, ...]:
    """Every file that these sources were counted from; one that is in there twice is refused."""
    seen: dict[str, str] = {}
    record = []
    for where, counted in _files(sources, engine):
        if counted.fingerprint in seen:
            raise InputError(
                f"{where}: {counted.name!r} was counted already, in {seen[counted.fingerprint]}. Its clicks would be "
                "counted twice; leave it out."
            )
        seen[counted.fingerprint] = where
        record.append(counted)
    return tuple(sorted(record, key=lambda counted: (counted.name, counted.fingerprint)))


def _files(sources: Iterable[Source], engine: DuckDB) -> Iterable[tuple[str, CountedFile]]:
    """Each file, or those it was counted from; and in which file of the log that is."""
    for source in sources:
        notes = dict(engine.notes(file_list(source.files))) if source.format == "parquet" else {}
        for file in source.files:
            where = source.shown(file)
            if file in notes:
                yield from ((where, counted) for counted in parse_record(notes[file], where))
            else:
                yield where, CountedFile(Path(where).name, fingerprint(where))


def record_text(record: Sequence[CountedFile]) -> str:
    """The record as it stands in a counts file."""
    return json.dumps({"counted": [[counted.name, counted.fingerprint] for counted in record]})


def parse_record(text: str, where: str) -> list[CountedFile]:
    """The record from a counts file."""
    try:
        return [CountedFile(str(name), str(known)) for name, known in json.loads(text)["counted"]]
    except (ValueError, KeyError, TypeError):
        raise FormatError(f"{where}: the record of counted files cannot be read. Count the log again.") from None
