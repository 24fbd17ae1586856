"""Engines: what runs the SQL, what it must be able to do, and how it is chosen.

Statements are written once, in DuckDB's SQL; other engines translate them. To add an engine, write one file that
registers an `EngineKind` in `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from clickmix.errors import InputError, SettingError
from clickmix.registry import Family
from clickmix.types import Columns, Progress

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB
    from clickmix.engines.sql import ListSql


@dataclass(frozen=True)
class StoredTable:
    """A table of an engine: what the user calls it, its name in SQL, and its columns with DuckDB's type names."""

    shown: str
    name: str
    types: dict[str, str]
    # Whether it is read from CSV, where everything is text.
    untyped: bool = False
    # The column that is not NULL for lines that could not be split into columns.
    broken: str = ""


@runtime_checkable
class Engine(Protocol):
    """Runs statements where the log is; only `fetch`, `rows` and `take` move data."""

    @property
    def embedded(self) -> DuckDB | None:
        """The DuckDB in this process, which reads files and frames; None if the engine runs elsewhere."""

    @property
    def list_sql(self) -> ListSql:
        """How the engine writes SQL over list columns."""

    def view(self, statement: str) -> str:
        """Make a view of a SELECT in the engine's dialect, until the engine is closed; return its name."""

    def tables(self, log: object) -> tuple[StoredTable, ...]:
        """The tables of a log. Empty for an embedded engine, whose logs are files and frames."""

    def keep(self, query: str, *, progress: Progress | None = None) -> str:
        """Compute a result of any size, keep it for this session, and return its table's name."""

    def forget(self, table: str) -> None:
        """Drop a table that was kept."""

    def fetch(self, query: str) -> Columns:
        """A result small enough for memory, as numpy columns."""

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """A very small result, as rows."""

    def take(self, columns: Columns) -> str:
        """Keep numpy columns of integers, reals and texts as a table for this session, and return its name."""

    def types(self, table: str) -> dict[str, str]:
        """The columns of a table, with DuckDB's names of their types."""

    def frame_like(self, frame: object, query: str) -> Any:
        """A result as the same kind of frame, if `frame` is one of the engine's; otherwise None."""

    def check_target(self, target: str, *, log: Sequence[str] = ()) -> None:
        """Refuse a target that cannot be written or is part of the log, before an hour of work."""

    def write(
        self,
        query: str,
        target: str,
        *,
        optional: Collection[str] = (),
        progress: Progress | None = None,
        note: str = "",
    ) -> int:
        """Write a result of any size, whole or not at all, and return its number of rows.

        An old table is replaced only if it has the same columns, apart from `optional` ones. `note` is stored with the
        result if its format has a place for it.
        """

    def close(self) -> None:
        """Free the engine's resources."""


@dataclass(frozen=True)
class EngineKind:
    """How an engine is chosen and started.

    `title` is its name in messages, and `argument` says what to write to choose it. `recognises` says whether an engine
    argument means it, and `start` takes that argument. `session_of` is the engine argument that a log brings with it,
    or None. An `embedded` one runs in this process: it also takes a memory limit, and can add to counts files.
    """

    title: str
    argument: str
    recognises: Callable[[object], bool]
    start: Callable[[object, str | None], Engine]
    session_of: Callable[[object], object] = lambda log: None
    embedded: bool = False


ENGINES: Family[EngineKind] = Family("engine", "clickmix.engines", first="duckdb")


def numpy_columns(types: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Columns:
    """Rows as numpy columns; `types` are the columns with DuckDB's names of their types."""
    import numpy as np  # here, because reading a log does not need it

    def kind(type: str) -> str:
        if type in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"):
            return "int64"
        real = type in ("FLOAT", "DOUBLE") or (type.startswith("DECIMAL") and not type.endswith("]"))
        return "float64" if real else "object"

    columns = zip(*rows, strict=True) if rows else [() for _ in types]
    named = zip(types.items(), columns, strict=True)
    return {column: np.array(values, dtype=kind(type)) for (column, type), values in named}


def same_columns(old: Iterable[str], new: Iterable[str], *, optional: Collection[str] = ()) -> bool:
    """Whether two tables have the same columns in the same order, apart from optional ones.

    >>> same_columns(["query_id", "relevance"], ["query_id", "relevance", "low"], optional=["low", "high"])
    True
    """
    one, other = ([column for column in columns if column not in optional] for columns in (old, new))
    return one == other


def other_columns(target: str, columns: Iterable[str]) -> InputError:
    """The error for a table that must not be replaced, because it has other columns."""
    return InputError(
        f"{target}: this table has other columns ({', '.join(columns)}) and would be lost. Drop it first, or choose "
        "another name.",
        nothing_written=True,
    )


DEFAULT = "duckdb"


def choose_engine(engine: object = None, *, log: object = None, memory: str | None = None) -> Engine:
    """The engine with that name, address or session; without one, the engine of the log's frame, or DuckDB."""
    if isinstance(engine, Engine):
        return engine
    if engine is None and hasattr(type(log), "columns"):  # a frame may bring its session
        sessions = (member.make().session_of(log) for member in ENGINES)
        engine = next((session for session in sessions if session is not None), None)
    engine = DEFAULT if engine is None else engine
    kind = find_kind(engine)
    if memory is not None and not kind.embedded:
        raise SettingError(f"memory {memory!r}: limits only the embedded DuckDB. {kind.title} has its own settings.")
    return kind.start(engine, memory)


def find_kind(engine: object) -> EngineKind:
    """The kind of engine that an argument means; starts nothing."""
    for member in ENGINES:
        if (kind := member.make()).recognises(engine):
            return kind
    raise SettingError(f"engine {engine!r}: expected {'; '.join(member.make().argument for member in ENGINES)}.")


def embedded(engine: Engine, *, of: str) -> DuckDB:
    """The embedded DuckDB, for steps that need every count or every session on this machine."""
    if engine.embedded is None:
        raise SettingError(
            f"{of} needs all of the log's counts or sessions on this machine, but they are in the engine. Download the "
            "counts or the log, and run it on the files without an engine."
        )
    return engine.embedded
