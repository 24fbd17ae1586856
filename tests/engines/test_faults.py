"""Servers that die, connections that are cut, disks that are full, Ctrl-C: the old table or the new one, one line."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import clickmix as cm
from broken_system import build_library
from clickmix.engines.engine import choose_engine
from clickmix.engines.postgres import Postgres
from commands import COMMAND, ENVIRONMENT
from logs import small_log, write
from oracle import run_command
from servers import SPARK_SETTINGS, Database, fresh_schema, running_server

pytestmark = pytest.mark.xdist_group("engines")
LOG = small_log(rows=300)
LOST = "clickmix: PostgreSQL: the connection was lost: "


def debias(database: Database) -> list[str]:
    """The words of a command that replaces the labels."""
    return ["debias", "clicks", "-o", "labels", "--correction", "none", "--engine", database.address]


def load(database: Database) -> None:
    """A log, and labels from an earlier run."""
    database.create("clicks", LOG)
    run_command(debias(database))
    database.run("UPDATE labels SET relevance = 0.125")


def state(database: Database) -> str:
    """Whether the labels are old or new; all other tables must be as before."""
    assert database.tables() == ["clicks", "labels"]
    values = database.run("SELECT DISTINCT relevance FROM labels")
    return "old" if values == [(0.125,)] else "new"


@pytest.fixture
def loaded(database: Database) -> Database:
    load(database)
    return database


def cut_server_side(database: Database, connection: Any) -> None:
    database.run(f"SELECT pg_terminate_backend({connection.info.backend_pid})")


def cut_cable(database: Database, connection: Any) -> None:
    with socket.socket(fileno=os.dup(connection.fileno())) as cable:
        cable.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("cut", [cut_server_side, cut_cable])
def test_a_connection_that_is_lost_at_any_statement(
    loaded: Database, monkeypatch: pytest.MonkeyPatch, cut: Callable[[Database, Any], None]
) -> None:
    """Before the 1st statement, the 2nd, and so on, until the command has fewer."""
    import psycopg

    execute = psycopg.Connection.execute
    for point in range(1, 200, 3):
        loaded.run("UPDATE labels SET relevance = 0.125")
        made = 0

        def counted(connection: Any, *words: Any, **settings: Any) -> Any:
            nonlocal made
            if connection is not loaded.connection:
                made += 1
                if made == point:  # noqa: B023
                    cut(loaded, connection)
            return execute(connection, *words, **settings)

        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "execute", counted)
            ended = run_command(debias(loaded))
        if made < point:
            assert (ended.code, state(loaded)) == (0, "new")
            break
        assert ended.problem == ""
        assert (ended.code, state(loaded)) == (2, "old")
        assert ended.err.startswith(LOST)
        assert ended.err.endswith(" Run it again. Nothing was written.\n")
    else:
        pytest.fail("the command never ended")


@pytest.fixture(scope="module")
def own_server() -> Iterator[tuple[str, Path]]:
    """A server of its own, whose disk is full while there is a file `full` in a folder."""
    folder = Path(tempfile.mkdtemp(prefix="clickmix-disk-"))
    folder.chmod(0o755)
    library = build_library(folder)
    disk = folder / "disk"
    disk.mkdir()
    if os.getuid() == 0:
        shutil.chown(disk, "postgres")
    try:
        with running_server(own=True, LD_PRELOAD=str(library), FULL_DISK=str(disk)) as address:
            yield address, disk
    finally:
        shutil.rmtree(folder)


def test_a_full_disk_of_the_server(own_server: tuple[str, Path]) -> None:
    address, disk = own_server
    with fresh_schema(address) as database:
        database.run(f"CREATE TABLESPACE small LOCATION '{disk}'")
        placed = database.address.replace("options=", "options=-cdefault_tablespace%3Dsmall%20-ctemp_tablespaces%3D%20")
        load(database)
        words = [placed if word == database.address else word for word in debias(database)]
        (disk / "full").touch()
        ended = run_command(words)
        assert (ended.problem, ended.code, state(database)) == ("", 2, "old")
        assert "No space left on device" in ended.err
        assert ended.err.endswith("Nothing was written.\n")
        (disk / "full").unlink()
        assert (run_command(words).code, state(database)) == (0, "new")
        database.run("DROP TABLE labels")
        database.run("DROP TABLESPACE small")


def test_a_backend_that_is_killed_takes_the_server_down(
    own_server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL restarts after such a death; what was not committed is gone."""
    import psycopg

    address, _ = own_server
    with psycopg.connect(address, autocommit=True) as first:
        first.execute("CREATE SCHEMA killed")
    words = f"{address}&options=-csearch_path%3Dkilled"
    with psycopg.connect(words, autocommit=True) as connection:
        database = Database(words, "killed", connection)
        load(database)
    written = cm.debias("clicks", engine=words, correction="none")
    drop = Postgres.drop_old

    def dying(engine: Any, *given: Any, **settings: Any) -> None:
        os.kill(engine.rows("SELECT pg_backend_pid() AS pid")[0][0], signal.SIGKILL)
        drop(engine, *given, **settings)

    monkeypatch.setattr(Postgres, "drop_old", dying)
    with pytest.raises(cm.EngineError) as caught:
        written.write("labels")
    assert str(caught.value).startswith(LOST.removeprefix("clickmix: "))
    monkeypatch.undo()
    with _reconnected(words) as connection:
        assert state(Database(words, "killed", connection)) == "old"
        connection.execute("DROP SCHEMA killed CASCADE")


def _reconnected(address: str) -> Any:
    import psycopg

    for _ in range(1200):
        try:
            return psycopg.connect(address, autocommit=True)
        except psycopg.OperationalError:  # the server is starting up again
            time.sleep(0.1)
    raise AssertionError("the server did not come back")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_server_works(loaded: Database, number: signal.Signals) -> None:
    loaded.run("BEGIN; LOCK TABLE clicks IN ACCESS EXCLUSIVE MODE")
    process = subprocess.Popen([*COMMAND, *debias(loaded)], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    while not loaded.run("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    loaded.run("COMMIT")
    assert (process.returncode, err) == (128 + number, "clickmix: stopped. Nothing was written.\n")
    assert state(loaded) == "old"
    for _ in range(2400):
        if not loaded.run("SELECT 1 FROM pg_stat_activity WHERE application_name = 'clickmix' AND state = 'active'"):
            return
        time.sleep(0.05)
    pytest.fail("the server still works for a command that has ended")


@pytest.mark.parametrize("target", ["labels.parquet", "labels"])
def test_a_full_disk_of_spark(spark: Any, tmp_path: Path, target: str) -> None:
    if "FULL_DISK" not in os.environ:
        pytest.skip("no C compiler: the tests build a library that makes calls fail")
    disk = Path(os.environ["FULL_DISK"])
    engine = choose_engine(spark)
    name = str(disk / target) if "." in target else f"on_disk.{target}"
    spark.sql(f"CREATE DATABASE IF NOT EXISTS on_disk LOCATION 'file:{disk}/tables'")
    try:
        engine.write("SELECT 1 AS a", name)
        (disk / "full").touch()
        with pytest.raises(cm.EngineError) as caught:
            engine.write("SELECT 2 AS a", name)
        (disk / "full").unlink()
        assert str(caught.value).startswith("Spark: ")
        assert str(caught.value).endswith(" Nothing was written.")
        assert "\n" not in str(caught.value)
        assert engine.rows(f"SELECT a FROM {engine.tables(name)[0].name}") == [(1,)]
        tables = [row.tableName for row in spark.sql("SHOW TABLES IN on_disk").collect() if not row.isTemporary]
        assert tables == ([] if "." in target else ["labels"])
        left = sorted(path.name for path in disk.iterdir())
        assert left == sorted({"tables", *([target] if "." in target else [])})
        assert sorted(path.name for path in (disk / "tables").iterdir()) == ([] if "." in target else ["labels"])
    finally:
        (disk / "full").unlink(missing_ok=True)
        spark.sql("DROP DATABASE on_disk CASCADE")
        shutil.rmtree(disk / "labels.parquet", ignore_errors=True)


# Sends a signal to itself, or kills its executor or Spark's own process, while Spark writes.
DISTURBED = """
    import os, pathlib, signal, sys, threading, warnings
    warnings.simplefilter("ignore")
    from clickmix.cli import main
    from clickmix.engines import spark_write
    counting = spark_write.counting
    def disturb(java):
        if "NUMBER" in os.environ:
            os.kill(os.getpid(), int(os.environ["NUMBER"]))
        if "DRIVER" in os.environ:
            os.kill(java, signal.SIGKILL)
        for process in pathlib.Path("/proc").glob("[0-9]*/stat"):
            if "EXECUTOR" in os.environ and process.read_text().rsplit(")", 1)[1].split()[1] == str(java):
                os.kill(int(process.parent.name), signal.SIGKILL)
                pathlib.Path("killed").touch()
    def slow(frame):
        from pyspark.sql import functions
        observed, counted = counting(frame)
        threading.Timer(1.5, disturb, [frame.sparkSession.sparkContext._gateway.proc.pid]).start()
        wait = functions.expr(f"reflect('java.lang.Thread', 'sleep', {os.environ['WAIT']}L)")
        # Always true, in a way that Spark does not see: it would leave the waiting out.
        return observed, counted.where(functions.coalesce(functions.length(wait), functions.lit(0)) >= 0)
    spark_write.counting = slow
    main()
"""


def disturbed(folder: Path, master: str, **how: str) -> subprocess.CompletedProcess[str]:
    """Replace labels in a process of its own, whose Spark ends with it."""
    write(folder / "log.parquet", LOG)
    (folder / "labels.parquet").mkdir()
    (folder / "labels.parquet" / "part-0.parquet").write_bytes(b"old")
    (folder / "conf").mkdir()
    settings = "".join(f"{key} {value}\n" for key, value in SPARK_SETTINGS.items())
    executor = f"spark.executor.extraJavaOptions {SPARK_SETTINGS['spark.driver.extraJavaOptions']}\n"
    (folder / "conf" / "spark-defaults.conf").write_text(f"{settings}{executor}spark.executor.memory 512m\n")
    words = ["debias", "log.parquet", "-o", "labels.parquet", "--engine", master, "--correction", "none"]
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DISTURBED), *words],
        cwd=folder,
        env=ENVIRONMENT | {"SPARK_CONF_DIR": str(folder / "conf")} | how,
        capture_output=True,
        text=True,
        check=False,
    )


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Our own lines among Spark's."""
    return [line for line in done.stderr.splitlines() if line.startswith("clickmix: ")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_spark_writes(spark: Any, tmp_path: Path, number: signal.Signals) -> None:
    done = disturbed(tmp_path, "local[1]", WAIT="100", NUMBER=str(int(number)))
    assert done.returncode == 128 + number
    assert told(done) == ["clickmix: stopped. Nothing was written."]
    assert (tmp_path / "labels.parquet" / "part-0.parquet").read_bytes() == b"old"
    time.sleep(1)  # whatever Spark still does
    assert sorted(file.name for file in tmp_path.iterdir()) == ["conf", "labels.parquet", "log.parquet"]


def test_an_executor_that_is_killed_while_it_writes(spark: Any, tmp_path: Path) -> None:
    """Spark starts another one, which does the work again."""
    done = disturbed(tmp_path, "local-cluster[1,1,512]", WAIT="20", EXECUTOR="yes")
    assert (tmp_path / "killed").exists()
    assert (done.returncode, told(done)) == (0, []), done.stderr[-2000:]
    expected = cm.debias(tmp_path / "log.parquet", correction="none")
    found = spark.read.parquet(str(tmp_path / "labels.parquet")).orderBy("query_id", "doc_id").collect()
    assert [row.relevance for row in found] == expected.relevance.tolist()
    assert not list(tmp_path.glob(".*"))


def test_a_spark_that_dies_while_it_writes(spark: Any, tmp_path: Path) -> None:
    """Nobody is left to remove the files of the job, but they are hidden, and the old labels stay."""
    done = disturbed(tmp_path, "local[1]", WAIT="100", DRIVER="yes")
    (line,) = told(done)
    assert (done.returncode, line.endswith(" Nothing was written.")) == (2, True), done.stderr[-2000:]
    assert line.startswith("clickmix: Spark: the connection was lost: ")
    assert (tmp_path / "labels.parquet" / "part-0.parquet").read_bytes() == b"old"
    seen = sorted(file.name for file in tmp_path.iterdir() if not file.name.startswith("."))
    assert seen == ["conf", "labels.parquet", "log.parquet"]
