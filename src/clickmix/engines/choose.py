"""Which engine runs the log stage: DuckDB unless another is named, or the log lives in one."""

from __future__ import annotations

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.postgres import Postgres
from clickmix.engines.spark import Spark, is_master, is_spark_frame, is_spark_session
from clickmix.errors import SettingError

Engines = DuckDB | Postgres | Spark
ADDRESSES = ("postgresql://", "postgres://")


def choose_engine(engine: object = None, *, log: object = None, memory: str | None = None) -> Engines:
    """The engine of that name, address or session; a Spark frame brings its own session."""
    if engine is None and is_spark_frame(log):
        engine = log.sparkSession  # type: ignore[attr-defined]
    if engine is None or engine == "duckdb":
        return DuckDB(memory=memory)
    if isinstance(engine, (DuckDB, Postgres, Spark)):
        return engine
    if memory is not None:
        raise SettingError(f"memory {memory!r}: a bound for the embedded DuckDB. {_named(engine)} has settings for it.")
    if isinstance(engine, str) and engine.startswith(ADDRESSES):
        return Postgres(engine)
    if is_spark_session(engine) or is_master(engine):
        return Spark(engine)
    raise SettingError(
        f"engine {engine!r}: expected duckdb, spark, a Spark master such as local[2] or spark://host:7077, or an "
        "address such as postgresql://user@host/database."
    )


def embedded(engine: Engines, *, of: str) -> DuckDB:
    """The embedded DuckDB, for what needs every count or every session on this machine."""
    if isinstance(engine, (Postgres, Spark)):
        raise SettingError(
            f"{of} needs all of the log's counts or sessions on this machine, and they would have to leave the engine. "
            "Download the counts or the log, and run it on the files without an engine."
        )
    return engine


def _named(engine: object) -> str:
    return "PostgreSQL" if isinstance(engine, str) and engine.startswith(ADDRESSES) else "Spark"
