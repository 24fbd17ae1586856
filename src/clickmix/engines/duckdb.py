"""DuckDB, embedded: runs statements within a bound of memory, hands small results over, writes big ones."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from clickmix.engines.sql import checked_text, literal
from clickmix.errors import SettingError
from clickmix.storage.files import check_writable, replacing, temporary_is_full, write_failure
from clickmix.types import Columns, Progress

NOTE = "clickmix"
AMOUNT = "Write for instance 4GB or 800MB."
Result = TypeVar("Result")
# By the name of the file to be written: what COPY must be told.
OUTPUT_OPTIONS: Mapping[str, str] = {
    ".parquet": "FORMAT parquet, ROW_GROUP_SIZE 122880",
    ".csv": "FORMAT csv, HEADER true",
    ".csv.gz": "FORMAT csv, HEADER true, COMPRESSION gzip",
    ".ndjson": "FORMAT json",
    ".ndjson.gz": "FORMAT json, COMPRESSION gzip",
}

_open: weakref.WeakSet[DuckDB] = weakref.WeakSet()


def remove_folders() -> None:
    """Remove the temporary folders of all engines: for a process that leaves without the usual farewell."""
    for engine in list(_open):
        engine._clean()


class DuckDB:
    """An `Engine`: one embedded database; tables larger than `memory` go to a temporary folder by themselves."""

    def __init__(self, *, memory: str | None = None, threads: int | None = None) -> None:
        # For what does not fit in memory, and for unpacked files; gone with the engine.
        _check_temporary()
        self.folder = Path(tempfile.mkdtemp(prefix="clickmix-"))
        self._clean = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        _open.add(self)
        self._connection = duckdb.connect()
        self._numbers = itertools.count(1)
        self._connection.execute(f"SET temp_directory = {literal(str(self.folder))}")
        # Nothing is fetched from anywhere: all that is needed is built in.
        self._connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        # DuckDB draws a bar of its own in some sessions; ours is drawn by whoever asks for progress.
        self._connection.execute("SET enable_progress_bar = false")
        # Row order in our tables means nothing; every result that is handed out is ordered explicitly.
        self._connection.execute("SET preserve_insertion_order = false")
        # What a Parquet file tells of its values may be wrong, or leave out NaN: DuckDB would drop the checks that it
        # makes look needless, and squeeze values into the types that it makes look wide enough.
        self._connection.execute("SET disabled_optimizers = 'statistics_propagation'")
        # A log's files are opened more than once: for their columns, for notes, and to be read.
        self._connection.execute("SET parquet_metadata_cache = true")
        if memory is not None:
            try:
                self._connection.execute(f"SET memory_limit = {literal(checked_memory(memory))}")
            except duckdb.Error:
                raise SettingError(f"memory {memory!r} is more than can be counted. {AMOUNT}") from None
        if threads is not None:
            self._connection.execute(f"SET threads = {int(threads)}")

    def run(self, statement: str, *, progress: Progress | None = None) -> None:
        """Execute a statement; `progress` is called with the share done, a few times a second."""
        if progress is not None:  # the bar itself is drawn by whoever passed it
            self._connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        self._watched(lambda: self._connection.execute(statement), progress)

    def keep(self, query: str, *, progress: Progress | None = None) -> str:
        """Compute a result of any size and keep it in a temporary table; says its name."""
        table = f"kept_{next(self._numbers)}"
        self.run(f"CREATE TEMP TABLE {table} AS {query}", progress=progress)
        return table

    def forget(self, table: str) -> None:
        """Drop what was kept."""
        self.run(f"DROP TABLE {table}")

    def fetch(self, query: str) -> Columns:
        """A result small enough for memory, as numpy columns; missing texts are None, missing numbers masked."""
        return self._watched(lambda: dict(self._connection.execute(query).fetchnumpy()))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """A very small result, as rows."""
        return self._watched(lambda: self._connection.execute(query).fetchall())

    def check_target(self, target: str, *, log: Sequence[str] = ()) -> None:
        """Complain when a file cannot be written, or its name tells no format; `log` is for those who know tables."""
        output_options(target)
        checked_text(target)
        check_writable(target)

    def write(
        self,
        query: str,
        path: str | Path,
        *,
        key: Sequence[str] = (),
        otherwise: str = "",
        progress: Progress | None = None,
        note: str = "",
    ) -> int:
        """Write a result of any size to a file, whole or not at all, and say how many rows it has.

        A result that comes in the order of a `key` is good only if no two rows have the same key; else the result is
        `otherwise`. To look at the file is faster than to ask before. Parquet has a place for `note`, others have none.
        """
        options = output_options(checked_text(str(path)))
        if note and "parquet" in options:
            options += f", KV_METADATA {{{NOTE}: {literal(note)}}}"
        with replacing(path) as temporary:
            try:
                # Several threads would cut the rows into files and row groups differently from run to run.
                with self.in_order():
                    can_look = "parquet" in options
                    rows = self._copy(query if not key or can_look else otherwise, temporary, options, progress)
                    if key and can_look and self._twice(temporary, key):
                        rows = self._copy(otherwise, temporary, options, progress)
            except duckdb.IOException as error:
                raise write_failure(path, str(error)) from None
        return rows

    def _copy(self, query: str, file: Path, options: str, progress: Progress | None) -> int:
        self.run(f"COPY ({query}) TO {literal(str(file))} ({options})", progress=progress)
        ((rows,),) = self._connection.fetchall()
        return int(rows)

    def _twice(self, file: Path, key: Sequence[str]) -> bool:
        """Whether two neighbouring rows of a Parquet file have the same key."""
        same = " AND ".join(f"{column} = lag({column}) OVER ()" for column in key)
        rows = f"SELECT {same} AS again FROM read_parquet({literal(str(file))})"
        return bool(self.rows(f"SELECT 1 FROM ({rows}) WHERE again LIMIT 1"))

    @contextlib.contextmanager
    def in_order(self) -> Iterator[None]:
        """Rows come in the order in which they stand in their files and results."""
        self._connection.execute("SET preserve_insertion_order = true")
        try:
            yield
        finally:
            with contextlib.suppress(duckdb.FatalException):  # of a connection that is lost: what broke it says why
                self._connection.execute("SET preserve_insertion_order = false")

    def register(self, name: str, frame: object) -> None:
        """Make a frame, or a dictionary of numpy columns, readable as a table."""
        self._connection.register(name, frame)

    def types(self, table: str) -> dict[str, str]:
        """The columns of a table expression with their SQL types."""
        return {row[0]: str(row[1]) for row in self.rows(f"DESCRIBE SELECT * FROM {table}")}

    def notes(self, files: str) -> list[tuple[str, str]]:
        """The notes of Parquet files, given as a reader's first argument: (file, note) where there is one."""
        # Other tools' keys and values may be any bytes: only ours are text, unless the file is damaged.
        found = self.rows(
            f"SELECT file_name, value FROM parquet_kv_metadata({files}) WHERE key = encode({literal(NOTE)})"
        )
        return [(str(file), bytes(note).decode(errors="replace")) for file, note in found]

    def close(self) -> None:
        """Give memory and temporary files back."""
        self._connection.close()
        self._clean()

    def _told(self, failure: BaseException) -> BaseException:
        """A full temporary folder in words of ours, too little memory as Python tells it, all else as it is."""
        message = str(failure)
        no_room = "No space left" in message and str(self.folder) in message
        if isinstance(failure, duckdb.Error) and (no_room or "max_temp_directory_size" in message):
            return temporary_is_full(self.folder)
        if isinstance(failure, duckdb.OutOfMemoryException):
            return MemoryError(message.splitlines()[0])
        return failure

    def _watched(self, work: Callable[[], Result], progress: Progress | None = None) -> Result:
        """Work in another thread, so that progress can be asked for and Ctrl-C is heard at once."""
        results: list[Result] = []
        failures: list[BaseException] = []
        # Thread.join() does not do: where Ctrl-C breaks it off, it takes the thread for ended.
        done = threading.Event()

        def call() -> None:
            try:
                results.append(work())
            except BaseException as failure:  # handed to the caller's thread below
                failures.append(failure)
            done.set()

        worker = threading.Thread(target=call)
        try:
            worker.start()
            while not done.wait(0.1):
                if progress is not None:
                    progress(max(0.0, self._connection.query_progress() / 100))
        except BaseException as failure:
            if "can't start new thread" in str(failure):  # then there is none to wait for
                raise MemoryError("no room for another thread") from None
            # A connection is for one call at a time, and a thread that is still in DuckDB aborts a process that ends.
            self._connection.interrupt()
            while not done.wait(0.05):
                self._connection.interrupt()  # again: the first one may have come before the statement
            raise
        if failures:
            raise self._told(failures.pop())  # popped: nothing here keeps it alive, and the engine with it
        if progress is not None:
            progress(1.0)
        return results[0]


def _check_temporary() -> None:
    """Complain about a TMPDIR that cannot be used: Python would silently take another folder, which may be small."""
    folder = os.environ.get("TMPDIR")
    if folder and not (Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise SettingError(
            f"TMPDIR={folder}: this is not a folder that can be written. Make it, or choose another one."
        )


def checked_memory(text: str) -> str:
    """A bound of memory such as 4GB or 800MB, as DuckDB takes it."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?\s*([KMGT]i?B)", text):
        raise SettingError(f"memory {text!r} is not an amount of memory. {AMOUNT}")
    return text


def output_options(path: str | Path) -> str:
    """What COPY must be told to write the format that the file's name asks for."""
    lower = Path(path).name.lower()
    for suffix, options in OUTPUT_OPTIONS.items():
        if lower.endswith(suffix):
            return options
    raise SettingError(f"{path}: unknown kind of file. Expected a name ending in {', '.join(OUTPUT_OPTIONS)}.")
