"""Counts: how often each document of each query was shown, and clicked, at each position.   log -> counts -> groups

The cells (query, document, position, context) are in a table of the engine and need not fit in memory. Later stages
fetch little of them: a histogram of (impressions, clicks), or the documents of a sample of queries.

A counts file in Parquet records the names and fingerprints of all files that were counted into it, so that none is
counted twice. A fingerprint hashes the size and a few blocks of a file: it is cheap, and stays the same if the file
moves.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import Engine
from clickmix.engines.sql import aliased, listed, name
from clickmix.errors import FormatError, InputError, SettingError
from clickmix.log.files import file_sources
from clickmix.log.layout import Lists, Part, Roles
from clickmix.log.layouts.counted import Counted
from clickmix.log.open import OpenedLog, checked_context
from clickmix.log.refused import Note, Refused
from clickmix.log.source import Registered, Source
from clickmix.storage.locks import holding, making
from clickmix.types import Columns

if TYPE_CHECKING:
    import numpy as np

# SQL for the impressions and clicks of several cells together.
SUMS = "CAST(sum(impressions) AS BIGINT) AS impressions, CAST(sum(clicks) AS BIGINT) AS clicks"
BLOCK = 1 << 14
BLOCKS = 4
SMALL = 4_096  # bytes: smaller files can be equal by chance, so their folder and name count, too


@dataclass(frozen=True, repr=False)
class Counts:
    """Impressions and clicks per query, document, position and context, exact, in a table of the engine.

    If result lists were counted separately, `by_list` is a second table, per query, list, document and position.
    `contexts` counts the combinations of the context columns. `refused` are the bad rows, `notes` what else was odd.
    `parts` are the tables that were counted, unless spellings of queries were joined, which differ only in what
    `normalise` names.

    >>> counts = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 2], [100, 100], [60, 20])
    >>> counts.totals()
    (200, 80)
    >>> counts
    Counts(by query, document, position; totals(), cells(), write(path))
    """

    engine: Engine
    table: str
    context: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    notes: tuple[Note, ...] = ()
    by_list: str | None = None
    sources: tuple[Source, ...] = ()
    contexts: int = 1
    parts: tuple[Part, ...] = ()
    normalise: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What is counted, and what to call; runs no SQL."""
        lists = ["list"] if self.by_list else []
        return f"Counts(by {', '.join(['query', *lists, 'document', *self.keys])}; totals(), cells(), write(path))"

    @classmethod
    def from_arrays(
        cls,
        query_id: Sequence[Any] | np.ndarray[Any, Any],
        doc_id: Sequence[Any] | np.ndarray[Any, Any],
        position: Sequence[int] | np.ndarray[Any, Any],
        impressions: Sequence[int] | np.ndarray[Any, Any],
        clicks: Sequence[int] | np.ndarray[Any, Any],
        **context: Sequence[Any] | np.ndarray[Any, Any],
    ) -> Counts:
        """Build counts from columns; context columns by name."""
        import numpy as np  # here, because reading a log does not need it

        from clickmix.counts.count import count_opened  # here, because it imports Counts

        checked_context(tuple(context))
        engine = DuckDB()
        given = (query_id, doc_id, position, impressions, clicks)
        named = zip(("query_id", "doc_id", "position", "impressions", "clicks"), given, strict=True)
        columns = {key: np.asarray(value) for key, value in (*named, *context.items())}
        lengths = {key: column.size for key, column in columns.items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{key} has {length:,}" for key, length in lengths.items())
            raise InputError(f"Counts.from_arrays: {found}. Expected one value of each for every cell.")
        engine.register("given", columns)
        source, roles = Registered(engine.types("given"), registered="given"), Roles(context=tuple(context))
        log = OpenedLog((source,), (Part(source, Counted(), roles),), roles)
        return count_opened(log, engine)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that make a place: position, then the context columns."""
        return ("position", *self.context)

    @cached_property
    def histogram(self) -> str:
        """A small table: how many `documents` have how many impressions and clicks at each place (k0, k1, ...)."""
        ordinals = listed(str(i + 1) for i in range(len(self.keys) + 2))
        columns = f"{aliased(self.keys)}, impressions, clicks, count(*) AS documents"
        return self.engine.keep(f"SELECT {columns} FROM {self.table} GROUP BY {ordinals}")

    def cells(self) -> Columns:
        """All cells as numpy columns, in order; they must fit in memory."""
        return self.engine.fetch(self.query())

    def query(self) -> str:
        """The SQL query for all cells, in order."""
        columns = ["query_id", "doc_id", *map(name, self.keys)]
        return f"SELECT {listed(columns)}, impressions, clicks FROM {self.table} ORDER BY {listed(columns)}"

    def one_cell_each(self) -> bool:
        """Whether every document was seen at one place only."""
        several = f"SELECT 1 FROM {self.table} GROUP BY query_id, doc_id HAVING count(*) > 1"
        return not self.engine.rows(f"SELECT 1 FROM ({several}) LIMIT 1")

    def list_query(self) -> str:
        """The SQL query for all cells of all result lists, in order."""
        keys = "query_id, list, position, doc_id"
        return f"SELECT {keys}, impressions, clicks FROM {self.by_list} ORDER BY {keys}"

    def totals(self) -> tuple[int, int]:
        """Impressions and clicks of the whole log."""
        return self._totals

    @cached_property
    def _totals(self) -> tuple[int, int]:
        ((impressions, clicks),) = self.engine.rows(
            f"SELECT CAST(sum(impressions) AS BIGINT), CAST(sum(clicks) AS BIGINT) FROM {self.table}"
        )
        return impressions, clicks

    def write(self, path: str | Path) -> int:
        """Write a counts file, which is itself a log, list by list if lists were counted; return the number of cells.

        A Parquet file records the files that were counted, so that none is counted twice.
        """
        files = [source for source in self.sources if source.files]
        note = record_text(record_of(files, self.engine.embedded)) if files and self.engine.embedded else ""
        query = self.query() if self.by_list is None else self.list_query()
        return self.engine.write(query, str(path), note=note)


class TakesCounts:
    """A correction or a fit, whose `fit` and `label` refuse anything but counts: a path or a frame has to be counted.

    >>> import clickmix as cm
    >>> cm.NoCorrection().label("day1.csv")
    Traceback (most recent call last):
    clickmix.errors.InputError: NoCorrection.label takes counts, not 'day1.csv'. Use clickmix.count('day1.csv').
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for method in ("fit", "label"):
            if method in vars(cls):
                setattr(cls, method, _of_counts(vars(cls)[method], f"{cls.__name__}.{method}"))


def _of_counts(method: Callable[..., Any], called: str) -> Callable[..., Any]:
    @wraps(method)
    def checked(self: Any, counts: Counts, *args: Any, **settings: Any) -> Any:
        check_counts(counts, by=called)
        return method(self, counts, *args, **settings)

    return checked


def check_counts(given: object, *, by: str) -> None:
    """Refuse a log that is not counted yet."""
    if not isinstance(given, Counts):
        path = repr(str(given)) if isinstance(given, (str, Path)) else ""
        raise InputError(
            f"{by} takes counts, not {path or f'a {type(given).__name__}'}. Use clickmix.count({path or 'log'})."
        )


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
    """Every file that these sources were counted from; raises if one appears twice."""
    seen: dict[str, str] = {}
    record = []
    for where, counted in _files(sources, engine):
        if counted.fingerprint in seen:
            raise InputError(
                f"{where}: {counted.name!r} was already counted, in {seen[counted.fingerprint]}. Its clicks would be "
                "counted twice; leave it out."
            )
        seen[counted.fingerprint] = where
        record.append(counted)
    return tuple(sorted(record, key=lambda counted: (counted.name, counted.fingerprint)))


def _files(sources: Iterable[Source], engine: DuckDB) -> Iterable[tuple[str, CountedFile]]:
    """Each file, or the files that were counted into it, with the file of the log that holds it."""
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
    """Lock a counts file while adding a log to it; raises unless both are counted the same way."""
    if path.suffix != ".parquet":
        raise SettingError(f"--merge {path}: only a Parquet file can record which files were counted.")
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
                f"--merge {path}: was counted {_in_words(kept)}, but would now be merged "
                f"{_in_words(_settings(lists, context))}. Run it {_in_words(kept)}, or write the counts to a new file "
                "with -o."
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
    """SQL for a cell that some sessions of a list clicked and others did not: lists are not separated by clicks."""
    return f"SELECT query_id, position FROM {by_list} WHERE clicks > 0 AND clicks < impressions LIMIT 1"


def _settings(lists: Lists, context: Sequence[str]) -> str:
    """What counts are separated by, as options of the command."""
    kept = {False: [], True: ["--lists"], "clicks": ["--lists-by-clicks"]}[lists]
    return " ".join(kept + [f"--context {','.join(context)}"] * bool(context))


def _in_words(settings: str) -> str:
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
