"""A Spark frame -> a table of the catalog or a folder of files: written under another name, renamed when complete."""

from __future__ import annotations

import contextlib
import secrets
import sys
import threading
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from clickmix.engines.engine import other_columns, same_columns
from clickmix.errors import EngineError, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAIT, WAITS = 0.1, 300  # seconds between looks at a job, and how many looks at one that was cancelled
SWAPS = 10  # attempts to put a folder in place while other runs do the same


def spark_errors() -> tuple[type[BaseException], ...]:
    """All errors that Spark raises; empty if it was never loaded."""
    if "pyspark" not in sys.modules:
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError, ConnectionError)


def lost_connections() -> tuple[type[BaseException], ...]:
    """The errors that say Spark's process is gone; empty if Spark was never loaded."""
    if "py4j" not in sys.modules:
        return (ConnectionError,)
    from py4j.protocol import Py4JNetworkError

    return (ConnectionError, Py4JNetworkError)


def write_table(frame: DataFrame, target: str, *, optional: Collection[str]) -> int:
    """Write a table of the catalog; an old one, with the same columns except optional ones, stays until it is done."""
    session = frame.sparkSession
    schema, dot, _ = target.rpartition(".")
    temporary, old = (f"{schema}{dot}clickmix_{secrets.token_hex(6)}" for _ in range(2))
    exists = session.catalog.tableExists(target)
    if exists and not same_columns(session.table(target).columns, frame.columns, optional=optional):
        raise other_columns(target, session.table(target).columns)
    observed, counted = counting(frame)
    try:
        _run(session, temporary, lambda: counted.write.saveAsTable(temporary))
        if exists:
            session.sql(f"ALTER TABLE {target} RENAME TO {old}")
        try:
            session.sql(f"ALTER TABLE {temporary} RENAME TO {target}")
        except BaseException:
            if exists:
                _put_back(session, old, target)
            raise
        session.sql(f"DROP TABLE IF EXISTS {old}")
    except BaseException:
        with contextlib.suppress(*spark_errors()):
            session.sql(f"DROP TABLE IF EXISTS {temporary}")
            _remove_files(session, temporary)
        raise
    return int(observed.get["rows"])


def _run(session: SparkSession, tag: str, write: Callable[[], None]) -> None:
    """Write in another thread. On a signal, cancel its jobs and wait for it; otherwise it writes while we clean up."""
    from pyspark import InheritableThread

    failures: list[BaseException] = []
    done = threading.Event()

    def call() -> None:
        try:
            session.sparkContext.addJobTag(tag)
            write()
        except BaseException as failure:  # raised in the caller's thread below
            failures.append(failure)
        done.set()

    thread = InheritableThread(target=call)
    thread.daemon = True
    thread.start()
    try:
        while not done.wait(WAIT):
            pass
    except BaseException:
        for _ in range(WAITS):  # several times, because the job may not have begun
            with contextlib.suppress(*spark_errors()):
                session.sparkContext.cancelJobsWithTag(tag)
            if done.wait(WAIT):
                break
        raise
    if failures:
        raise failures.pop()


def _remove_files(session: SparkSession, table: str) -> None:
    """Remove the files that a failed job wrote for a table that is not in the catalog yet."""
    schema, _, name = table.rpartition(".")
    folder = session.catalog.getDatabase(schema or session.catalog.currentDatabase()).locationUri
    files, path = _qualified(session, f"{folder}/{name}")
    files.delete(path, True)


def _put_back(session: SparkSession, old: str, target: str) -> None:
    """Give the old table its name back, unless another run has written there; if that fails, say where the table is."""
    with contextlib.suppress(*spark_errors()):
        if not session.catalog.tableExists(target):
            with contextlib.suppress(*spark_errors()):  # another run may have taken the name just now
                session.sql(f"ALTER TABLE {old} RENAME TO {target}")
        if session.catalog.tableExists(target):
            session.sql(f"DROP TABLE IF EXISTS {old}")
            return
    raise EngineError(
        f"{target}: could not be replaced, and the old table is now called {old}. Nothing is lost; put it back with "
        f"ALTER TABLE {old} RENAME TO {target}, and run this again."
    ) from None


def check_table(session: SparkSession, target: str, log: Iterable[str]) -> None:
    """Refuse a table of the log, however it is named."""
    taken = [_full_name(session, table) for table in log]
    if session.catalog.tableExists(target) and _full_name(session, target) in taken:
        raise InputError(f"{target}: would replace a table of the log. Choose another name for the output.")


def _full_name(session: SparkSession, table: str) -> str:
    found = session.catalog.getTable(table)
    return ".".join([found.catalog or "", *(found.namespace or ()), found.name]).lower()


def check_folder(session: SparkSession, target: str, log: Iterable[str]) -> None:
    """Refuse a folder with files that Spark did not write, and one that is part of the log or contains part of it."""
    files, path = _qualified(session, target)
    for part in log:
        in_log, given = _qualified(session, part)
        for status in in_log.globStatus(given) or ():
            if _is_in(path, status.getPath()) or _is_in(status.getPath(), path):
                raise InputError(f"{target}: would replace part of the log. Choose another path for the output.")
    strange = [status.getPath().getName() for status in _inside(files, path) if not _is_sparks(status, path)]
    if strange:
        raise InputError(
            f"{target}: Spark did not write this folder, which holds {strange[0]!r} and would be lost. Choose a new "
            "path, for instance one ending in labels.parquet."
        )


def _is_in(inner: Any, outer: Any) -> bool:
    """Whether a path is another one or is below it."""
    return f"{inner.toString()}/".startswith(f"{outer.toString().rstrip('/')}/")


def _inside(files: Any, path: Any) -> list[Any]:
    """The contents of a folder; empty if it is not a folder, or another run has just moved it away."""
    try:
        return list(files.listStatus(path)) if files.exists(path) and files.getFileStatus(path).isDirectory() else []
    except spark_errors():
        if files.exists(path):
            raise
        return []


def _is_sparks(status: Any, folder: Any) -> bool:
    """Whether this is a file that Spark leaves in its folders, or a folder that clickmix could not rename."""
    name = str(status.getPath().getName())
    if status.isDirectory():
        return name.startswith(f".{folder.getName()}.") and name.endswith(".tmp")
    return name.startswith(("part-", "_", "."))


def write_folder(frame: DataFrame, target: str, *, format: str) -> int:
    """Write a folder of files; an old one stays until the new one is complete."""
    session = frame.sparkSession
    files, path = _qualified(session, target)
    temporary = _hidden(session, path, "tmp")
    observed, counted = counting(frame)
    try:
        options = {"header": "true", "quote": '"', "escape": '"'} if format == "csv" else {}
        writer = counted.write.format(format).options(**options)
        _run(session, temporary.getName(), lambda: writer.save(temporary.toString()))
        if not any(_put_in_place(session, files, temporary, path) for _ in range(SWAPS)):
            raise EngineError(f"{target}: cannot be replaced. What was there stays.")
    except BaseException:
        with contextlib.suppress(*spark_errors()):
            files.delete(temporary, True)
        raise
    return int(observed.get["rows"])


def _put_in_place(session: SparkSession, files: Any, made: Any, path: Any) -> bool:
    """Rename a folder over another one, and return whether it worked: another run may be doing the same."""
    old = _hidden(session, path, "old")
    moved = files.exists(path) and _renamed(files, path, old)
    if not files.exists(path) and _renamed(files, made, path):
        inside = session._jvm.org.apache.hadoop.fs.Path(path, made.getName())
        if not files.exists(inside):
            files.delete(old, True)
            return True
        _renamed(files, inside, made)  # another run was faster, and this folder was moved into its folder
    if moved and files.exists(path):
        files.delete(old, True)  # the other run's folder is newer
    elif moved:
        _renamed(files, old, path)
    return False


def _renamed(files: Any, one: Any, other: Any) -> bool:
    with contextlib.suppress(*spark_errors()):  # it was there a moment ago
        return bool(files.rename(one, other))
    return False


def _hidden(session: SparkSession, path: Any, end: str) -> Any:
    """A new name in the same parent folder."""
    return _path(session, f"{path.getParent()}/.{path.getName()}.{secrets.token_hex(6)}.{end}")


def _qualified(session: SparkSession, text: str) -> tuple[Any, Any]:
    """The file system of a path, and its full name there."""
    given = _path(session, text.rstrip("/") or "/")
    files = given.getFileSystem(session._jsc.hadoopConfiguration())
    return files, files.makeQualified(given)


def _path(session: SparkSession, text: str) -> Any:
    return session._jvm.org.apache.hadoop.fs.Path(text)


def counting(frame: DataFrame) -> tuple[Any, DataFrame]:
    """A frame that counts its rows while they are written."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observed = Observation()
    return observed, frame.observe(observed, count(lit(1)).alias("rows"))
