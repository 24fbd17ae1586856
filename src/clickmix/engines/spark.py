"""Apache Spark: logs are tables, files and data frames; the cluster runs statements and keeps the results."""

from __future__ import annotations

import contextlib
import secrets
import sys
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from clickmix.engines.dialects import translated
from clickmix.engines.engine import ENGINES, EngineKind, StoredTable, numpy_columns
from clickmix.engines.spark_lists import SparkLists
from clickmix.engines.spark_write import (
    check_folder,
    check_table,
    lost_connections,
    spark_errors,
    write_folder,
    write_table,
)
from clickmix.errors import EngineError, InputError, SettingError, hide_secrets
from clickmix.storage.atomic import record
from clickmix.types import Columns, Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MASTERS = ("local", "yarn", "spark://", "k8s://")
# DuckDB's names of Spark's types; a log has no others.
TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
}
# Spark's names of numpy's kinds.
TAKEN = {"i": "bigint", "u": "bigint", "f": "double", "U": "string"}
# Spark's names of formats, by the ending of a path.
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".ndjson": "json",
    ".jsonl": "json",
    ".json": "json",
    ".orc": "orc",
}
PARTS = "spark.sql.shuffle.partitions"
PARTS_PER_CORE = 8
BROKEN = "_clickmix_broken"
LONGEST_WAIT = 10.0  # seconds, while kept tables are dropped


def _is(value: object, name: str) -> bool:
    """Whether a value is a SparkSession or a DataFrame; does not load Spark to find out."""
    return type(value).__module__.startswith("pyspark.sql") and type(value).__name__ == name


class Spark:
    """An `Engine`: a session that caches kept results in the cluster until the engine is closed."""

    embedded = None
    list_sql = SparkLists()

    def __init__(self, session: object = "spark") -> None:
        self.session: SparkSession = _started(session) if isinstance(session, str) else session
        self._kept: dict[str, DataFrame] = {}
        self._clean = weakref.finalize(self, _drop, self.session, self._kept)

    def tables(self, log: object) -> tuple[StoredTable, ...]:
        """A data frame; or tables of the catalog and files that Spark can read, by name."""
        if _is(log, "DataFrame"):
            return (self._table("the frame", log),)
        names = [log] if isinstance(log, str) or not isinstance(log, (list, tuple)) else list(log)
        shown = [str(part) for part in names]
        for i, part in enumerate(shown):
            if part in shown[:i]:
                raise InputError(f"{part}: given twice. Its clicks would be counted twice; name it once.")
        with self._asking():
            tables = [part for part in shown if self._is_table(part)]
            found = [self._table(f"table {part}", self.session.table(part)) for part in tables]
            for format in dict.fromkeys(map(_format, (part for part in shown if part not in tables))):
                paths = [part for part in shown if part not in tables and _format(part) == format]
                found.append(self._read(format, paths))
        return tuple(found)

    def view(self, statement: str) -> str:
        """A view of a SELECT in Spark's own dialect."""
        with self._asking():
            return self._view(self.session.sql(statement))

    def keep(self, query: str, *, progress: Progress | None = None) -> str:
        """Compute a result of any size, keep it in the cluster, and return the name of its view."""
        with self._asking():
            frame = self._sql(query).persist()
            table = self._view(frame)
            frame.count()  # computes it
        return table

    def forget(self, table: str) -> None:
        with self._asking():
            self.session.catalog.dropTempView(table)
            self._kept.pop(table).unpersist()

    def fetch(self, query: str) -> Columns:
        with self._asking():
            frame = self._sql(query)
            return numpy_columns(_types(frame), frame.collect())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._asking():
            return [tuple(row) for row in self._sql(query).collect()]

    def take(self, columns: Columns) -> str:
        """Send numpy columns to the cluster, and return the name of their view."""
        types = (TAKEN[values.dtype.kind] for values in columns.values())
        schema = ", ".join(f"{key} {type}" for key, type in zip(columns, types, strict=True))
        rows = list(zip(*(values.tolist() for values in columns.values()), strict=True))
        with self._asking():
            return self._view(self.session.createDataFrame(rows, schema).persist())

    def types(self, table: str) -> dict[str, str]:
        with self._asking():
            return _types(self.session.table(table))

    def frame_like(self, frame: object, query: str) -> DataFrame | None:
        """A result of any size as a data frame, computed when used; None unless `frame` is one of Spark's."""
        if not _is(frame, "DataFrame"):
            return None
        with self._asking():
            made = self._sql(query)
        made._clickmix_engine = self  # keeps the tables it reads while the frame exists
        return made

    def check_target(self, target: str, *, log: Sequence[str] = ()) -> None:
        """Refuse a name that is neither a table nor a folder, and a table or folder that must not be replaced."""
        if not target or "'" in target or "`" in target:
            raise SettingError(f"{target!r}: not the name of a table or a folder. Choose another one.")
        if _is_path(target) and not hasattr(self.session, "_jvm"):
            raise SettingError(f"{target}: Spark Connect cannot rename folders. Name a table.")
        with self._asking():
            if _is_path(target):
                check_folder(self.session, target, [part for part in log if not self._is_table(part)])
            else:
                check_table(self.session, target, [part for part in log if self._is_table(part)])

    def write(
        self,
        query: str,
        target: str,
        *,
        optional: Collection[str] = (),
        progress: Progress | None = None,
        note: str = "",
    ) -> int:
        """Write a result of any size: to a folder of files if the target is a path, otherwise to a table.

        It is written under another name and renamed when it is complete; the old one stays until then.
        """
        self.check_target(target)
        with self._asking():
            frame = self._sql(query)
            if _is_path(target):
                rows = write_folder(frame, target, format=_format(target))
            else:
                rows = write_table(frame, target, optional=optional)
        record(target)
        return rows

    def close(self) -> None:
        """Free cached results; the session stays open, because others may use it."""
        self._clean()

    def _sql(self, query: str) -> DataFrame:
        return self.session.sql(translated(query, "spark"))

    def _is_table(self, text: str) -> bool:
        return not _is_path(text) and self.session.catalog.tableExists(text)

    def _read(self, format: str, paths: Sequence[str]) -> StoredTable:
        """Files as a table. CSV is all text; lines that cannot be split into columns are marked."""
        reader = self.session.read.option("columnNameOfCorruptRecord", BROKEN)
        if format == "csv":
            from pyspark.sql.types import StringType

            separator = "\t" if ".tsv" in paths[0].lower() else ","
            reader = reader.options(header=True, sep=separator, quote='"', escape='"', enforceSchema=False)
            schema = reader.csv(list(paths)).schema
            frame = reader.schema(schema.add(BROKEN, StringType())).csv(list(paths))
        else:
            frame = reader.format(format).load(list(paths))
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        return self._table(f"{paths[0]}{more}", frame, untyped=format == "csv")

    def _table(self, shown: str, frame: Any, *, untyped: bool = False) -> StoredTable:
        types = _types(frame)
        broken = BROKEN if types.pop(BROKEN, None) else ""
        return StoredTable(shown, self._view(frame), types, untyped, broken)

    def _view(self, frame: DataFrame) -> str:
        table = f"clickmix_{secrets.token_hex(6)}"
        frame.createOrReplaceTempView(table)
        self._kept[table] = frame
        return table

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn Spark's errors into EngineErrors."""
        try:
            yield
        except lost_connections() as error:  # Spark's process is gone
            raise EngineError(
                f"Spark: the connection was lost: {_first_line(error)}. Run it again.", nothing_written=True
            ) from None
        except spark_errors() as error:
            raise EngineError(f"Spark: {_first_line(error)}.", nothing_written=True) from None


ENGINES.register("spark", help="runs in Spark; logs and outputs are tables of its catalog, or paths.")(
    partial(
        EngineKind,
        title="Spark",
        argument="spark, or a Spark master such as local[2] or spark://host:7077",
        recognises=lambda engine: (
            engine == "spark" or _is(engine, "SparkSession") or (isinstance(engine, str) and engine.startswith(MASTERS))
        ),
        start=lambda engine, _: Spark(engine),
        session_of=lambda log: getattr(log, "sparkSession", None) if _is(log, "DataFrame") else None,
    )
)


def _started(master: str) -> SparkSession:
    """The running session, or a new one with the settings that Spark finds (SPARK_*, spark-defaults, spark-submit)."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise SettingError("Spark needs pyspark. Install it: pip install 'clickmix[spark]'.") from None
    if "@" in master:  # Spark would print it
        raise SettingError(f"engine {hide_secrets(master)!r}: a Spark master has no user and no password.")
    builder = SparkSession.builder.appName("clickmix")
    if master != "spark":
        builder = builder.master(master)
    if not sys.stderr.isatty():
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        new = SparkContext._active_spark_context is None
        session = SparkSession.getActiveSession() or builder.getOrCreate()
        if new and master.startswith("local"):
            _suit_one_machine(session)
        return session
    except spark_errors() as error:
        raise EngineError(
            f"Spark did not start: {_first_line(error)}. It needs Java 17 or later; check JAVA_HOME and the master."
        ) from None


def _suit_one_machine(session: SparkSession) -> None:
    """Cut tables into fewer parts than Spark's 200: with a few cores, handing them out takes longer than the work."""
    if not session.sparkContext.getConf().contains(PARTS):
        session.conf.set(PARTS, min(200, PARTS_PER_CORE * session.sparkContext.defaultParallelism))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].split(" SQLSTATE:")[0].rstrip(".")


def _drop(session: SparkSession, kept: dict[str, DataFrame]) -> None:
    """Drop kept tables over another thread's connection to Spark.

    Python may collect garbage while this thread waits for an answer, and its own connection is busy then.
    """
    thread = threading.Thread(target=_drop_now, args=(session, kept), daemon=True)
    try:
        thread.start()
    except RuntimeError:  # Python is ending, and no thread waits for an answer
        _drop_now(session, kept)
    else:
        thread.join(LONGEST_WAIT)  # not forever: this thread may hold a lock that the other needs


def _drop_now(session: SparkSession, kept: dict[str, DataFrame]) -> None:
    """Drop views and their cached frames; a session that is gone has none."""
    with contextlib.suppress(*spark_errors()):
        for table, frame in kept.items():
            session.catalog.dropTempView(table)
            frame.unpersist()
    kept.clear()


def _is_path(text: str) -> bool:
    """Whether a name is a path: it has a slash, or the ending of a known format."""
    return "/" in text or _ending(text) in FORMATS


def _ending(text: str) -> str:
    return "." + text.lower().rstrip("/").removesuffix(".gz").rpartition(".")[2]


def _format(path: str) -> str:
    """Spark's name of a path's format; Parquet if the path has no known ending."""
    return FORMATS.get(_ending(path), "parquet")


def _types(frame: Any) -> dict[str, str]:
    return {key: _duckdb_type(type) for key, type in frame.dtypes}


def _duckdb_type(type: str) -> str:
    """DuckDB's name of a type, without the fields of objects.

    >>> [_duckdb_type(type) for type in ("bigint", "array<string>", "array<struct<sku:string>>", "decimal(10,0)")]
    ['BIGINT', 'VARCHAR[]', 'STRUCT[]', 'DECIMAL(10,0)']
    """
    if type.startswith("array<"):
        return f"{_duckdb_type(type.removeprefix('array<').removesuffix('>'))}[]"
    return "STRUCT" if type.startswith("struct<") else TYPES.get(type, type.upper())
