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
            if exists:
                session.sql(f"ALTER TABLE {old} RENAME TO {target}")
            raise
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
    token, parent, last = secrets.token_hex(6), path.getParent(), path.getName()
    temporary, old = (_path(session, f"{parent}/.{last}.{token}.{end}") for end in ("tmp", "old"))
    observed, counted = _counting(frame)
    try:
        options = {"header": "true", "quote": '"', "escape": '"'} if format == "csv" else {}
        counted.write.format(format).options(**options).save(temporary.toString())
        if files.exists(path) and not files.rename(path, old):
            raise EngineError(f"{target}: cannot be replaced. Nothing was written.")
        if not files.rename(temporary, path):
            files.rename(old, path)
            raise EngineError(f"{target}: cannot be written. What was there stays.")
        files.delete(old, True)
    except BaseException:
        with contextlib.suppress(*spark_errors()):
            files.delete(temporary, True)
        raise
    return int(observed.get["rows"])


def _path(session: SparkSession, text: str) -> Any:
    return session._jvm.org.apache.hadoop.fs.Path(text)


def _counting(frame: DataFrame) -> tuple[Any, DataFrame]:
    """A frame that counts its rows while they are written."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observed = Observation()
    return observed, frame.observe(observed, count(lit(1)).alias("rows"))
