"""DuckDB, embedded: runs statements in this process within a memory limit, and writes results to files."""

from __future__ import annotations

import _thread
import contextlib
import errno
import itertools
import os
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from clickmix.engines.duckdb_lists import DuckDBLists
from clickmix.engines.engine import ENGINES, EngineKind, StoredTable
from clickmix.engines.sql import checked_text, listed, literal
from clickmix.errors import SettingError
from clickmix.storage.atomic import check_writable, replacing, write_failure
from clickmix.storage.packed import temporary_is_full
from clickmix.types import Columns, Progress

NOTE = "clickmix"
DISTRUSTED = "statistics_propagation"
AMOUNT = "Write for instance 4GB or 800MB."
Result = TypeVar("Result")
# The options of COPY, by the ending of the file's name.
OUTPUT_OPTIONS: Mapping[str, str] = {
    ".parquet": "FORMAT parquet, ROW_GROUP_SIZE 122880",
    ".csv": "FORMAT csv, HEADER true",
    ".csv.gz": "FORMAT csv, HEADER true, COMPRESSION gzip",
    ".ndjson": "FORMAT json",
    ".ndjson.gz": "FORMAT json, COMPRESSION gzip",
}

_open: weakref.WeakSet[DuckDB] = weakref.WeakSet()


def remove_folders() -> None:
    """Remove the temporary folders of all engines; for a process that ends without running finalizers."""
    for engine in list(_open):
        engine._clean()


class DuckDB:
    """An `Engine`: one embedded database, which spills tables larger than `memory` to a temporary folder."""

    def __init__(self, *, memory: str | None = None, threads: int | None = None) -> None:
        # For data that does not fit in memory, and for unpacked files; removed with the engine.
        self.folder = _temporary_folder()
        self._clean = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        _open.add(self)
        self._connection = duckdb.connect()
        self._numbers = itertools.count(1)
        self._connection.execute(f"SET temp_directory = {literal(str(self.folder))}")
        # Download nothing: everything needed is built in.
        self._connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        # Read and write only files of this machine, and load no extension.
        self._connection.execute("SET allowed_directories = ['/']; SET enable_external_access = false")
        # DuckDB draws its own progress bar in some sessions; a caller who asks for progress draws one instead. In a
        # notebook without ipywidgets there is no bar, and DuckDB refuses to switch it off.
        if self._connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
            self._connection.execute("SET enable_progress_bar = false")
        # Times in context columns have the same name in every time zone.
        self._connection.execute("SET TimeZone = 'UTC'")
        # The order of rows in tables means nothing; every result is ordered explicitly.
        self._connection.execute("SET preserve_insertion_order = false")
        # The statistics of a Parquet file may be wrong, or ignore NaN. DuckDB would trust them, drop checks that seem
        # needless, and squeeze values into types that seem wide enough.
        self._connection.execute(f"SET disabled_optimizers = {literal(DISTRUSTED)}")
        # A log's files are opened several times: for their columns, for notes, and to read them.
        self._connection.execute("SET parquet_metadata_cache = true")
        if memory is not None:
            try:
                self._connection.execute(f"SET memory_limit = {literal(checked_memory(memory))}")
            except duckdb.Error:
                raise SettingError(f"memory {memory!r} is too large a number. {AMOUNT}") from None
        if threads is not None:
            self._connection.execute(f"SET threads = {int(threads)}")

    @property
    def embedded(self) -> DuckDB:
        """This engine itself."""
        return self

    def new_name(self, word: str) -> str:
        """A name for a table that no other table of this engine has.

        >>> engine = DuckDB()
        >>> engine.new_name("pages"), engine.new_name("pages")
        ('pages_1', 'pages_2')
        """
        return f"{word}_{next(self._numbers)}"

    @property
    def list_sql(self) -> DuckDBLists:
        """DuckDB's lists."""
        return DuckDBLists()

    def view(self, statement: str) -> str:
        """A view of a SELECT, under a new name."""
        view = self.new_name("view")
        self.run(f"CREATE TEMP VIEW {view} AS {statement}")
        return view

    def tables(self, log: object) -> tuple[StoredTable, ...]:
        """Empty: logs in DuckDB are files and frames."""
        return ()

    def run(self, statement: str, *, progress: Progress | None = None) -> None:
        """Execute a statement; `progress` is called with the share done, a few times a second."""
        if progress is not None:  # the caller draws the bar
            self._connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        self._watched(lambda: self._connection.execute(statement), progress)

    def keep(self, query: str, *, progress: Progress | None = None) -> str:
        """Compute a result of any size, keep it in a temporary table, and return the table's name."""
        table = self.new_name("kept")
        try:
            self.run(f"CREATE TEMP TABLE {table} AS {query}", progress=progress)
        except MemoryError:
            # DuckDB needs some memory for every block of a temporary table, but none for those of a database file.
            self.run(f"ATTACH IF NOT EXISTS {literal(str(self.folder / 'kept.duckdb'))} AS kept_in_file")
            table = f"kept_in_file.{table}"
            self.run(f"CREATE TABLE {table} AS {query}", progress=progress)
        return table

    def forget(self, table: str) -> None:
        self.run(f"DROP TABLE {table}")

    def fetch(self, query: str) -> Columns:
        """Fetch a result as numpy columns, with None for a missing text and a mask for missing numbers."""
        return self._watched(lambda: dict(self._connection.execute(query).fetchnumpy()))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._watched(lambda: self._connection.execute(query).fetchall())

    def take(self, columns: Columns) -> str:
        """Make numpy columns readable as a table, and return its name."""
        table = self.new_name("taken")
        self.register(table, columns)
        return table

    def check_target(self, target: str, *, log: Sequence[str] = ()) -> None:
        """Refuse a file that cannot be written, or whose name has no known ending; `log` does not matter."""
        output_options(target)
        checked_text(target)
        check_writable(target)

    def write(
        self,
        query: str,
        target: str | Path,
        *,
        key: Sequence[str] = (),
        otherwise: str = "",
        optional: Collection[str] = (),
        progress: Progress | None = None,
        note: str = "",
    ) -> int:
        """Write a result of any size to a file, whole or not at all, and return its number of rows.

        With a `key`, rows must be sorted by it. If two rows have the same key, `otherwise` is written instead: looking
        at the file is faster than asking first. Only Parquet has a place for `note`. A file with any columns is
        replaced.
        """
        options = output_options(checked_text(str(target)))
        if note and "parquet" in options:
            options += f", KV_METADATA {{{NOTE}: {literal(note)}}}"
        with replacing(target) as temporary:
            try:
                # Several threads would cut the rows into files and row groups differently from run to run.
                with self.in_order():
                    can_look = "parquet" in options
                    rows = self._copy(query if not key or can_look else otherwise, temporary, options, progress)
                    if key and can_look and self._twice(temporary, key):
                        rows = self._copy(otherwise, temporary, options, progress)
            except duckdb.IOException as error:
                raise write_failure(target, str(error)) from None
        return rows

    def _copy(self, query: str, file: Path, options: str, progress: Progress | None) -> int:
        # Only tables of this engine are copied, and their statistics are right.
        self._connection.execute("SET disabled_optimizers = ''")
        try:
            self.run(f"COPY ({query}) TO {literal(str(file))} ({options})", progress=progress)
            ((rows,),) = self._connection.fetchall()
        finally:
            with contextlib.suppress(duckdb.FatalException):
                self._connection.execute(f"SET disabled_optimizers = {literal(DISTRUSTED)}")
        return int(rows)

    def _twice(self, file: Path, key: Sequence[str]) -> bool:
        """Whether two neighbouring rows of a Parquet file have the same key."""
        same = " AND ".join(f"{column} = lag({column}) OVER ()" for column in key)
        rows = f"SELECT {same} AS again FROM read_parquet({literal(str(file))})"
        return bool(self.rows(f"SELECT 1 FROM ({rows}) WHERE again LIMIT 1"))

    @contextlib.contextmanager
    def in_order(self) -> Iterator[None]:
        """Keep rows in the order of their files and results."""
        self._connection.execute("SET preserve_insertion_order = true")
        try:
            yield
        finally:
            with contextlib.suppress(duckdb.FatalException):  # the connection was lost, and the first error says why
                self._connection.execute("SET preserve_insertion_order = false")

    def register(self, name: str, frame: object) -> None:
        """Make a frame, or a dictionary of numpy columns, readable as a table."""
        self._connection.register(name, frame)

    def frame_like(self, frame: object, query: str) -> Any:
        """A result as a relation of the caller's DuckDB, if `frame` is such a relation; otherwise None."""
        if not isinstance(frame, duckdb.DuckDBPyRelation):
            return None
        # DuckDB finds the variable by name, unless the caller has a table of that name. So the name is unusual.
        _clickmix_result = dict(self.fetch(query))
        return frame.query("_clickmix_frame", f"SELECT {listed(_clickmix_result)} FROM _clickmix_result")

    def types(self, table: str) -> dict[str, str]:
        """The columns of a table expression with their SQL types."""
        return {row[0]: str(row[1]) for row in self.rows(f"DESCRIBE SELECT * FROM {table}")}

    def notes(self, files: str) -> list[tuple[str, str]]:
        """(file, note) for each of these Parquet files that has a note; `files` is a reader's first argument."""
        # Keys and values of other tools can be any bytes; a note is text, unless the file is damaged.
        found = self.rows(
            f"SELECT file_name, value FROM parquet_kv_metadata({files}) WHERE key = encode({literal(NOTE)})"
        )
        return [(str(file), bytes(note).decode(errors="replace")) for file, note in found]

    def close(self) -> None:
        """Free memory and remove temporary files."""
        self._connection.close()
        self._clean()

    def _translated(self, failure: BaseException) -> BaseException:
        """The error to raise for one of DuckDB's; too little memory and a full temporary folder get their own.

        DuckDB has one type for every failed write, and one for both memory and the temporary folder: only its message
        says which.
        """
        message = str(failure)
        no_room = isinstance(failure, duckdb.IOException) and os.strerror(errno.ENOSPC) in message
        if no_room and str(self.folder) in message:
            return temporary_is_full(self.folder)
        if isinstance(failure, duckdb.OutOfMemoryException):
            if "max_temp_directory_size" in message:
                return temporary_is_full(self.folder)
            return MemoryError(message.splitlines()[0])
        return failure

    def _watched(self, work: Callable[[], Result], progress: Progress | None = None) -> Result:
        """Work in another thread, so that this one can report progress and react to Ctrl-C at once."""
        results: list[Result] = []
        failures: list[BaseException] = []
        # A signal can raise an exception between any two steps of this thread. Within threading.Thread or Event, that
        # can make it wait forever. Starting a bare thread, taking a bare lock and appending are one step each.
        begun: list[bool] = []
        stopped: list[bool] = []
        ended: list[bool] = []
        done = _thread.allocate_lock()
        done.acquire()

        def call() -> None:
            begun.append(True)
            try:
                if not stopped:
                    results.append(work())
            except BaseException as failure:  # raised in the caller's thread below
                failures.append(failure)
            ended.append(True)
            done.release()

        try:
            try:
                _thread.start_new_thread(call, ())
            except RuntimeError:
                raise MemoryError("no room for another thread") from None
            while not done.acquire(timeout=0.1):
                if progress is not None:
                    progress(max(0.0, self._connection.query_progress() / 100))
        except BaseException:
            # A connection takes one call at a time, and a thread still in DuckDB would abort the process as it ends. A
            # thread that begins only now does nothing.
            stopped.append(True)
            while begun and not ended:
                self._connection.interrupt()  # again and again: the first may come before the statement
                time.sleep(0.01)
            raise
        if failures:
            raise self._translated(failures.pop())  # pop, so that nothing here keeps it and the engine alive
        if progress is not None:
            progress(1.0)
        return results[0]


ENGINES.register(
    "duckdb", help="runs in this process and reads files (Parquet, CSV, NDJSON) and frames; --memory limits it."
)(
    partial(
        EngineKind,
        title="DuckDB",
        argument="duckdb",
        recognises=lambda engine: engine == "duckdb",
        start=lambda _, memory: DuckDB(memory=memory),
        embedded=True,
    )
)


def _temporary_folder() -> Path:
    """A new folder in TMPDIR. If that cannot be used, fail: Python would silently use another, which may be small."""
    given = os.environ.get("TMPDIR")
    try:
        return Path(tempfile.mkdtemp(prefix="clickmix-", dir=given or None)).absolute()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise temporary_is_full(Path(given or tempfile.gettempdir())) from None
        raise SettingError(
            f"TMPDIR={given or ''}: not a folder that can be written to. Create it, or choose another one."
        ) from None


def checked_memory(text: str) -> str:
    """A memory limit such as 4GB or 800MB; refuse anything else."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?\s*([KMGT]i?B)", text):
        raise SettingError(f"memory {text!r} is not an amount of memory. {AMOUNT}")
    return text


def output_options(path: str | Path) -> str:
    """The options of COPY for the format of a file, by its name."""
    lower = Path(path).name.lower()
    for suffix, options in OUTPUT_OPTIONS.items():
        if lower.endswith(suffix):
            return options
    raise SettingError(f"{path}: unknown kind of file. Expected a name ending in {', '.join(OUTPUT_OPTIONS)}.")
