"""Which engine runs the log stage: DuckDB, unless another one is named or the log lives in one."""

from __future__ import annotations

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import ENGINES, Engine, EngineKind
from clickmix.errors import SettingError

DEFAULT = "duckdb"


def choose_engine(engine: object = None, *, log: object = None, memory: str | None = None) -> Engine:
    """The engine with that name, address or session; without one, the engine that the log lives in, or DuckDB."""
    if isinstance(engine, Engine):
        return engine
    if engine is None:
        sessions = (member.make().session_of(log) for member in ENGINES)
        engine = next((session for session in sessions if session is not None), DEFAULT)
    kind = find_kind(engine)
    if memory is not None and not kind.embedded:
        raise SettingError(f"memory {memory!r}: a bound for the embedded DuckDB. {kind.title} has settings for it.")
    return kind.start(engine, memory)


def find_kind(engine: object) -> EngineKind:
    """The kind of engine that an argument means; nothing is started."""
    kinds = [member.make() for member in ENGINES]
    for kind in kinds:
        if kind.recognises(engine):
            return kind
    raise SettingError(f"engine {engine!r}: expected {'; '.join(kind.argument for kind in kinds)}.")


def embedded(engine: Engine, *, of: str) -> DuckDB:
    """The embedded DuckDB, for what needs every count or every session on this machine."""
    if engine.embedded is None:
        raise SettingError(
            f"{of} needs all of the log's counts or sessions on this machine, and they would have to leave the engine. "
            "Download the counts or the log, and run it on the files without an engine."
        )
    return engine.embedded
