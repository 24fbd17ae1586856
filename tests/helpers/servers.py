"""The engines the tests run against: a local Spark, and a PostgreSQL server in a temporary folder (or a given one)."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from broken_system import build_library

ADDRESS = "CLICKMIX_TEST_POSTGRES"  # the address of a server whose database may be written to
SPARK_SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Compiling takes longer than running on so few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@contextlib.contextmanager
def spark_session() -> Iterator[Any]:
    """A local session with little memory, its tables in a temporary folder."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java: Spark needs 17 or later")
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'clickmix[spark]'")
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # pyspark's own, while it is loaded
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]").config("spark.sql.warehouse.dir", f"{folder}/tables")
        for key, value in SPARK_SETTINGS.items():
            builder = builder.config(key, value)
        with _breakable_disk(Path(folder)):
            session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@contextlib.contextmanager
def _breakable_disk(folder: Path) -> Iterator[None]:
    """Start Spark so that tests can fill its disk: see failing_calls.c. FULL_DISK stays set, for them to find."""
    if shutil.which("cc") is None:
        yield
        return
    os.environ["FULL_DISK"] = str(folder / "disk")
    (folder / "disk").mkdir()
    os.environ["LD_PRELOAD"] = str(build_library(folder))
    try:
        yield
    finally:
        del os.environ["LD_PRELOAD"]


@contextlib.contextmanager
def running_server(*, own: bool = False, **environment: str) -> Iterator[str]:
    """The address of a server: the given one, or one that lives in a temporary folder and speaks through a socket.

    One's `own` is for tests that crash it; it gets these variables in its environment.
    """
    if os.environ.get(ADDRESS) and not own:
        yield os.environ[ADDRESS]
        return
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'clickmix[postgres]'")
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [
        str(Path(found).parent) for found in [shutil.which("initdb")] if found
    ]
    if not programs:
        pytest.skip(f"no PostgreSQL server: install one, or give an address in {ADDRESS}")
    folder = tempfile.mkdtemp(prefix="clickmix-pg-")
    user = _ordinary_user(folder)

    def run(program: str, *words: str) -> None:
        command = [f"{programs[-1]}/{program}", "-D", f"{folder}/data", *words]
        subprocess.run(
            command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=os.environ | environment
        )

    run("initdb", "--no-sync", "-U", "tester", "-A", "trust", "-E", "UTF8")
    settings = f"-k {folder} -c listen_addresses='' -c fsync=off -c shared_buffers=16MB"
    run("pg_ctl", "start", "-w", "-l", f"{folder}/log", "-o", settings)
    try:
        yield f"postgresql://tester@/postgres?host={folder}"
    finally:
        run("pg_ctl", "stop", "-m", "immediate")
        shutil.rmtree(folder)


def _ordinary_user(folder: str) -> str | None:
    """PostgreSQL does not run as root: then the folder goes to another user."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    user = "postgres" if "postgres" in known else "nobody"
    shutil.chown(folder, user)
    return user


@dataclass(frozen=True)
class Database:
    """An address whose unqualified names belong to one schema, and a connection to look from outside."""

    address: str
    schema: str
    connection: Any

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement, give its rows."""
        cursor = self.connection.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []

    def create(self, table: str, columns: Mapping[str, list[Any]], types: Mapping[str, str] | None = None) -> str:
        """Make a table; types are guessed from the first values."""
        guessed = {key: "bigint" if isinstance(values[0], int) else "text" for key, values in columns.items()}
        described = ", ".join(f'"{key}" {type}' for key, type in (guessed | dict(types or {})).items())
        self.run(f"CREATE TABLE {table} ({described})")
        with self.connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in zip(*columns.values(), strict=True):
                copy.write_row(row)
        return table

    def tables(self) -> list[str]:
        """All tables of the schema, in order."""
        found = self.run(f"SELECT tablename FROM pg_tables WHERE schemaname = '{self.schema}' ORDER BY 1")
        return [name for (name,) in found]


@contextlib.contextmanager
def fresh_schema(address: str) -> Iterator[Database]:
    """An empty schema, dropped in the end."""
    import psycopg

    schema = f"test_{secrets.token_hex(4)}"
    joined = f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3D{schema}"
    with psycopg.connect(joined, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        try:
            yield Database(joined, schema, connection)
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
