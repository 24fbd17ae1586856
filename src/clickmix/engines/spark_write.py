"""A Spark frame -> a table of the catalog, or a folder of files: written under another name, renamed when whole."""

from __future__ import annotations

import contextlib
import secrets
import sys
from typing import TYPE_CHECKING, Any

from clickmix.engines.engine import SAME_COLUMNS
from clickmix.errors import EngineError, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SWAPS = 10  # tries to put a folder in place while other runs do the same


def spark_errors() -> tuple[type[BaseException], ...]:
    """All that Spark raises; nothing if it was never loaded."""
    if "pyspark" not in sys.modules:
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError, ConnectionError)


def write_table(frame: DataFrame, target: str) -> int:
    """Write a table of the catalog; an old one with the same columns stays until the new one is whole."""
    session = frame.sparkSession
    schema, dot, _ = target.rpartition(".")
    temporary, old = (f"{schema}{dot}clickmix_{secrets.token_hex(6)}" for _ in range(2))
    exists = session.catalog.tableExists(target)
    if exists and session.table(target).columns[:SAME_COLUMNS] != frame.columns[:SAME_COLUMNS]:
        raise InputError(
            f"{target}: stands there with other columns ({', '.join(session.table(target).columns)}) and "
            "would be lost. Drop it first, or choose another name. Nothing was written."
        )
    observed, counted = _counting(frame)
    try:
        counted.write.saveAsTable(temporary)
        if exists:
            session.sql(f"ALTER TABLE {target} RENAME TO {old}")
        try:
            session.sql(f"ALTER TABLE {temporary} RENAME TO {target}")
        except BaseException:
            if exists and not session.catalog.tableExists(target):  # else another run put its labels there meanwhile
                session.sql(f"ALTER TABLE {old} RENAME TO {target}")
            raise
        finally:
            session.sql(f"DROP TABLE IF EXISTS {old}")
    except BaseException:
        with contextlib.suppress(*spark_errors()):
            session.sql(f"DROP TABLE IF EXISTS {temporary}")
        raise
    return int(observed.get["rows"])


def write_folder(frame: DataFrame, target: str, *, format: str) -> int:
    """Write a folder of files; an old one stays until the new one is whole."""
    session = frame.sparkSession
    given = _path(session, target.rstrip("/"))
    files = given.getFileSystem(session._jsc.hadoopConfiguration())
    path = files.makeQualified(given)
    temporary = _hidden(session, path, "tmp")
    observed, counted = _counting(frame)
    try:
        options = {"header": "true", "quote": '"', "escape": '"'} if format == "csv" else {}
        counted.write.format(format).options(**options).save(temporary.toString())
        if not any(_put_in_place(session, files, temporary, path) for _ in range(SWAPS)):
            raise EngineError(f"{target}: cannot be replaced. What was there stays.")
    except BaseException:
        with contextlib.suppress(*spark_errors()):
            files.delete(temporary, True)
        raise
    return int(observed.get["rows"])


def _put_in_place(session: SparkSession, files: Any, made: Any, path: Any) -> bool:
    """Give a folder the name of another one, which goes; whether it worked. Another run may be doing the same."""
    old = _hidden(session, path, "old")
    moved = files.exists(path) and _renamed(files, path, old)
    if not files.exists(path) and _renamed(files, made, path):
        inside = session._jvm.org.apache.hadoop.fs.Path(path, made.getName())
        if not files.exists(inside):
            files.delete(old, True)
            return True
        _renamed(files, inside, made)  # the other run was faster by a hair: ours was moved into its folder
    if moved and files.exists(path):
        files.delete(old, True)  # the other run's labels are newer
    elif moved:
        _renamed(files, old, path)
    return False


def _renamed(files: Any, one: Any, other: Any) -> bool:
    with contextlib.suppress(*spark_errors()):  # it was there a moment ago
        return bool(files.rename(one, other))
    return False


def _hidden(session: SparkSession, path: Any, end: str) -> Any:
    """A name nobody has, beside a folder."""
    return _path(session, f"{path.getParent()}/.{path.getName()}.{secrets.token_hex(6)}.{end}")


def _path(session: SparkSession, text: str) -> Any:
    return session._jvm.org.apache.hadoop.fs.Path(text)


def _counting(frame: DataFrame) -> tuple[Any, DataFrame]:
    """A frame that counts its rows while they are written."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observed = Observation()
    return observed, frame.observe(observed, count(lit(1)).alias("rows"))
