"""PostgreSQL: logs are tables, the server runs statements, and results become tables in one transaction."""

from __future__ import annotations

import contextlib
import secrets
import weakref
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from clickmix.engines.dialects import translated
from clickmix.engines.engine import ENGINES, EngineKind, StoredTable, numpy_columns, other_columns, same_columns
from clickmix.engines.postgres_lists import PostgresLists
from clickmix.engines.sql import name
from clickmix.errors import EngineError, InputError, SettingError, hide_secrets
from clickmix.storage.atomic import record
from clickmix.types import Columns, Progress

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

# DuckDB's names of PostgreSQL's types; a log has no others.
TYPES = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "numeric": "DECIMAL",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "bpchar": "VARCHAR",
    "uuid": "VARCHAR",
}
# PostgreSQL's names of numpy's kinds.
TAKEN = {"i": "BIGINT", "u": "BIGINT", "f": "DOUBLE PRECISION", "U": "TEXT"}
LONGEST_NAME = 63  # bytes
# A collation that knows the letters of all alphabets; nearly every server is built with it.
LETTERS = "und-x-icu"


class Postgres:
    """An `Engine`: one connection, which keeps results in temporary tables until it is closed."""

    embedded = None
    list_sql = PostgresLists()

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ModuleNotFoundError:
            raise SettingError("PostgreSQL needs psycopg. Install it: pip install 'clickmix[postgres]'.") from None
        self._error: type[Exception] = psycopg.Error
        try:
            self._connection: Connection[Any] = psycopg.connect(
                address, autocommit=True, application_name="clickmix", connect_timeout=10
            )
        except psycopg.Error as error:
            raise _unreachable(address, _first_line(error)) from None
        self._close = weakref.finalize(self, self._connection.close)
        self._run("SET TIME ZONE 'UTC'", translate=False)  # times in context columns have one name everywhere
        (icu,) = self._ask("SELECT count(*) FROM pg_collation WHERE collname = %s", LETTERS)
        self._letters = LETTERS if icu else "default"

    def tables(self, log: object) -> tuple[StoredTable, ...]:
        """The tables or views of a log, by name, with or without schema."""
        names = [log] if isinstance(log, str) else log
        if not isinstance(names, (list, tuple)) or not all(isinstance(part, str) for part in names):
            raise InputError(f"PostgreSQL cannot read a log from a {type(log).__name__}. Name a table, or a list.")
        for part in names:
            self._parts(part)
        found = [self._find(part) for part in names]
        for i, table in enumerate(found):
            if table is None:
                raise InputError(f"{names[i]}: no such table in the database. Write the name as in SQL: schema.table.")
            if table in found[:i]:
                raise InputError(f"{names[i]}: given twice. Its clicks would be counted twice; name it once.")
        return tuple(
            StoredTable(f"table {part}", str(table), self.types(str(table)))
            for part, table in zip(names, found, strict=True)
        )

    def view(self, statement: str) -> str:
        """A temporary view of a SELECT in PostgreSQL's own dialect."""
        view = f"clickmix_{secrets.token_hex(6)}"
        self._run(f"CREATE TEMP VIEW {view} AS {statement}", translate=False)
        return view

    def keep(self, query: str, *, progress: Progress | None = None) -> str:
        """Compute a result of any size, keep it in a temporary table, and return the table's name."""
        table = f"clickmix_{secrets.token_hex(6)}"
        self._run(f"CREATE TEMP TABLE {table} AS {query}")
        self._run(f"ANALYZE {table}", translate=False)
        return table

    def forget(self, table: str) -> None:
        self._run(f"DROP TABLE {table}")

    def fetch(self, query: str) -> Columns:
        with self._asking():
            cursor = self._connection.execute(self._translated(query).encode())
            rows = cursor.fetchall()
        return numpy_columns({column.name: self._type(column) for column in cursor.description or ()}, rows)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._run(query).fetchall()

    def take(self, columns: Columns) -> str:
        """Copy numpy columns into a temporary table, and return its name."""
        table = f"clickmix_{secrets.token_hex(6)}"
        types = (TAKEN[values.dtype.kind] for values in columns.values())
        fields = ", ".join(f'"{key}" {type}' for key, type in zip(columns, types, strict=True))
        self._run(f"CREATE TEMP TABLE {table} ({fields})", translate=False)
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        with self._asking(), self._connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)
        self._run(f"ANALYZE {table}", translate=False)
        return table

    def types(self, table: str) -> dict[str, str]:
        described = self._run(f"SELECT * FROM {table} LIMIT 0").description or ()
        return {column.name: self._type(column) for column in described}

    def frame_like(self, frame: object, query: str) -> None:
        """None: PostgreSQL has no frames."""

    def check_target(self, target: str, *, log: Sequence[str] = ()) -> None:
        """Refuse a table that cannot be made, or that is part of the log."""
        if not target or target.endswith((".parquet", ".csv", ".gz", ".ndjson")) or "/" in target:
            raise SettingError(f"{target}: PostgreSQL writes tables. Name a table, for instance labels.")
        schema, table = self._place(target)
        there = self._find(f"{schema}.{table}")
        if there is not None and there in map(self._find, log):
            raise InputError(f"{target}: would replace a table of the log. Choose another name for the output.")
        if not self._ask("SELECT has_schema_privilege(to_regnamespace(%s), 'CREATE')", schema)[0]:
            raise EngineError(f"{target}: no permission to create tables in schema {schema}.", nothing_written=True)

    def write(
        self,
        query: str,
        target: str,
        *,
        optional: Collection[str] = (),
        progress: Progress | None = None,
        note: str = "",
    ) -> int:
        """Write a result of any size as a table, in one transaction: it replaces the old table, or that stays."""
        self.check_target(target)
        schema, table = self._place(target)
        temporary = f"clickmix_{secrets.token_hex(6)}"
        with self._asking(), self._connection.transaction():
            rows = self._run(f"CREATE TABLE {schema}.{temporary} AS {query}").rowcount
            # From here, runs take turns, and the last one's table stays.
            self._ask("SELECT pg_advisory_xact_lock(hashtext(%s))", f"clickmix {schema}.{table}")
            self.drop_old(target, f"{schema}.{table}", f"{schema}.{temporary}", optional)
            self._run(f"ALTER TABLE {schema}.{temporary} RENAME TO {table}", translate=False)
        record(target)
        return int(rows)

    def close(self) -> None:
        """Close the connection; the server drops its temporary tables."""
        self._close()

    def drop_old(self, target: str, place: str, new: str, optional: Collection[str]) -> None:
        """Drop the table at exactly this place; the target's name alone could mean a table in another schema."""
        old = self._find(place)
        if old is None:
            return
        if not same_columns(self.types(old), self.types(new), optional=optional):
            raise other_columns(target, self.types(old))
        self._run(f"DROP TABLE {old}", translate=False)

    def _find(self, table: str) -> str | None:
        """A table's full name, quoted for SQL; None if there is no such table."""
        (found,) = self._ask(
            "SELECT max(quote_ident(nspname) || '.' || quote_ident(relname)) FROM pg_class "
            "JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE pg_class.oid = to_regclass(%s)",
            table,
        )
        return None if found is None else str(found)

    def _parts(self, table: str) -> list[str]:
        """The parts of a table's name; refuse one that the server would cut, because that could be another table."""
        (parts,) = self._ask("SELECT parse_ident(%s)", table)
        for part in parts:
            if len(part.encode()) > LONGEST_NAME:
                raise InputError(
                    f"{table}: the name {part!r} is too long for PostgreSQL, which would cut it. "
                    f"Choose one of at most {LONGEST_NAME} bytes."
                )
        return list(parts)

    def _place(self, target: str) -> tuple[str, str]:
        """The schema that a new table goes to, and its name there, both quoted for SQL."""
        parts = self._parts(target)
        named = name(parts[-2]) if len(parts) > 1 else None
        (schema,) = self._ask("SELECT coalesce(to_regnamespace(%s)::text, quote_ident(current_schema()))", named)
        if schema is None or (named and schema not in (named, parts[-2])):
            raise InputError(f"{target}: no such schema in the database. Create it first, or choose another name.")
        return schema, name(parts[-1])

    def _ask(self, query: str, *values: object) -> tuple[Any, ...]:
        """The first row of a query about the server itself."""
        with self._asking():
            found = self._connection.execute(query.encode(), values).fetchone()
        return tuple(found or ())

    def _type(self, column: Any) -> str:
        known = self._connection.adapters.types.get(column.type_code)
        if known is None:
            return "OTHER"
        type = TYPES.get(known.name, known.name.upper())
        if known.array_oid == column.type_code:
            return f"{type}[]"
        return f"DECIMAL({column.precision},{column.scale})" if type == "DECIMAL" and column.precision else type

    def _run(self, statement: str, *, translate: bool = True) -> Cursor[Any]:
        with self._asking():
            text = self._translated(statement) if translate else statement
            return self._connection.execute(text.encode())

    def _translated(self, statement: str) -> str:
        return translated(statement, "postgres", letters=self._letters)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn the server's errors into EngineErrors."""
        try:
            yield
        except self._error as error:
            if self._connection.closed or self._connection.broken:
                raise EngineError(
                    f"PostgreSQL: the connection was lost: {_first_line(error)}. Run it again.", nothing_written=True
                ) from None
            raise EngineError(f"PostgreSQL: {_first_line(error)}.", nothing_written=True) from None


ENGINES.register("postgres", help="runs in a PostgreSQL server; logs and outputs are tables.")(
    partial(
        EngineKind,
        title="PostgreSQL",
        argument="postgresql://user@host/database",
        recognises=lambda engine: isinstance(engine, str) and engine.startswith(("postgresql://", "postgres://")),
        start=lambda engine, _: Postgres(str(engine)),
    )
)


def _unreachable(address: str, reason: str) -> EngineError:
    """The error for a server that cannot be reached, without secrets: libpq can quote part of a password as a host."""
    shown = hide_secrets(reason, address=address)
    encode = (
        "" if shown == reason else "; in a password write % as %25, @ as %40, / as %2F, : as %3A and a blank as %20"
    )
    return EngineError(
        f"PostgreSQL cannot be reached: {shown}. Check the address, postgresql://user@host/database{encode}."
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
