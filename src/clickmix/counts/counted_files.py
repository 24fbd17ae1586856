"""The files of a log -> the record of what was counted, so that nothing is counted twice.   log -> counts

A counts file in Parquet carries the names and fingerprints of the files it was counted from, and of those that were
merged into it. A fingerprint hashes a file's size and a few of its blocks: it is cheap and moves with the file.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clickmix.engines.duckdb import DuckDB
from clickmix.errors import FormatError, InputError, SettingError
from clickmix.log.layout import Lists
from clickmix.log.source import Source
from clickmix.log.sources import file_sources
from clickmix.storage.locks import holding, making

BLOCK = 1 << 14
BLOCKS = 4
SMALL = 4_096  # bytes: smaller files can be equal by chance, so folder and name count too


@dataclass(frozen=True)
class CountedFile:
    """A file that was counted: its name at the time, and its fingerprint."""

    name: str
    fingerprint: str


def fingerprint(path: str | Path) -> str:
    """A hash of a file's size and its first, last and two inner blocks, whatever its name."""
    path = Path(path)
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    if size < SMALL:
        digest.update("/".join(path.resolve().parts[-2:]).encode(errors="surrogateescape"))
    with path.open("rb") as file:
        for i in range(BLOCKS):
            file.seek(max(0, (size - BLOCK) * i // (BLOCKS - 1)))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()[:32]


def record_of(sources: Sequence[Source], engine: DuckDB) -> tuple[CountedFile, ...]:
    """Every file that these sources were counted from; raises if one is in there twice."""
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
    """Each file, or those it was counted from, with the file of the log that holds it."""
    for source in sources:
        notes = source.notes(engine)
        for file in source.files:
            where = source.shown(file)
            if file in notes:
                yield from ((where, counted) for counted in parse_record(notes[file], where))
            else:
                yield where, CountedFile(Path(where).name, fingerprint(where))


@contextlib.contextmanager
def merging(path: Path, *, lists: Lists, context: Sequence[str]) -> Iterator[None]:
    """Lock a counts file while a log is added to it; raises unless it was counted the way the log will be."""
    if path.suffix != ".parquet":
        raise SettingError(f"--merge {path}: only Parquet has room for the record of counted files.")
    if not path.exists() and glob.has_magic(str(path)):
        raise InputError(f"--merge {path}: no such file. Name one counts file.")
    if not path.exists():  # the first day: there is nothing to add to yet
        with making(path):
            yield
        return
    if not path.is_file():
        raise InputError(f"--merge {path}: not a file. Name one counts file.")
    with holding(path):
        engine = DuckDB()
        (source,) = file_sources([path], engine)
        found = source.own_columns
        kept = _kept_apart(found)
        if kept == _settings(True, ()) and lists == "clicks" and not engine.rows(mixed_clicks_query(source.table())):
            kept = _settings("clicks", ())
        if kept is None:
            raise InputError(
                f"--merge {path}: is not a counts file, and would be lost. Found the columns {', '.join(found)}, "
                "expected query_id, doc_id, position, impressions, clicks. Write the counts to a new file with -o."
            )
        if kept != _settings(lists, context):
            raise InputError(
                f"--merge {path}: was counted {_told(kept)}, but would now be merged "
                f"{_told(_settings(lists, context))}. Run it {_told(kept)}, or write the counts to a new file with -o."
            )
        yield


def _kept_apart(columns: Sequence[str]) -> str | None:
    """The settings that give a counts file these columns; None if it is not a counts file."""
    if columns == ["query_id", "list", "position", "doc_id", "impressions", "clicks"]:
        return _settings(True, ())
    if columns[:3] == ["query_id", "doc_id", "position"] and columns[3:][-2:] == ["impressions", "clicks"]:
        return _settings(False, columns[3:-2])
    return None


def mixed_clicks_query(by_list: str) -> str:
    """SQL for a cell of a list that some sessions clicked and others did not: lists are not kept apart by clicks."""
    return f"SELECT query_id, position FROM {by_list} WHERE clicks > 0 AND clicks < impressions LIMIT 1"


def _settings(lists: Lists, context: Sequence[str]) -> str:
    """How counts are kept apart, as options of the command."""
    kept = {False: [], True: ["--lists"], "clicks": ["--lists-by-clicks"]}[lists]
    return " ".join(kept + [f"--context {','.join(context)}"] * bool(context))


def _told(settings: str) -> str:
    return f"with {settings}" if settings else "without --context and --lists"


def record_text(record: Sequence[CountedFile]) -> str:
    """The record as text, for a counts file."""
    return json.dumps({"counted": [[counted.name, counted.fingerprint] for counted in record]})


def parse_record(text: str, where: str) -> list[CountedFile]:
    """The record from a counts file."""
    try:
        return [CountedFile(str(name), str(known)) for name, known in json.loads(text)["counted"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(f"{where}: the record of counted files cannot be read. Count the log again.") from None
