"""The embedded engine: no extension, no address, tables that memory has no room for, and Ctrl-C."""

from __future__ import annotations

import contextlib
import itertools
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import pytest

import clickmix as cm
from clickmix.engines.duckdb import DuckDB


@pytest.mark.parametrize(
    "statement",
    [
        "LOAD httpfs",
        "SELECT * FROM read_csv('https://127.0.0.1:1/log.csv')",
        "SELECT * FROM read_parquet('s3://bucket/log.parquet')",
        "COPY (SELECT 1) TO 's3://bucket/log.parquet'",
        "ATTACH 'postgres://127.0.0.1:1/clicks'",
        "SET enable_external_access = true",
    ],
)
def test_nothing_is_fetched_or_loaded(statement: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        DuckDB().run(statement)
    assert any(word in str(caught.value).lower() for word in ("disabled", "permission", "cannot")), caught.value


def test_no_extension_is_installed_or_loaded_by_itself() -> None:
    for setting in ("autoinstall_known_extensions", "autoload_known_extensions", "enable_external_access"):
        assert DuckDB().rows(f"SELECT current_setting('{setting}')") == [(False,)]


def test_a_table_goes_to_a_file_if_a_temporary_one_takes_too_much_memory() -> None:
    engine = DuckDB(memory="15MB", threads=2)
    rows = "SELECT range AS query_id, range * 7 AS doc_id, hash(range) AS impressions FROM range(30000000)"
    with pytest.raises(MemoryError):
        engine.run(f"CREATE TEMP TABLE too_large AS {rows}")
    table = engine.keep(rows)
    assert engine.rows(f"SELECT count(*), sum(doc_id - 7 * query_id) FROM {table}") == [(30_000_000, 0)]
    file = engine.folder / "kept.duckdb"
    assert file.stat().st_size > 100_000_000
    engine.close()
    assert not file.exists()


def test_labels_are_the_same_if_no_temporary_table_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.parquet"
    duckdb.execute(
        "COPY (SELECT range % 500 AS query_id, 'd' || range % 7 AS doc_id, 1 + range % 7 AS position, "
        "CAST(hash(range) % (range % 7 + 2) = 0 AS INT) AS clicked, [3, 1][1 + range % 2] AS impressions "
        f"FROM range(20000)) TO '{log}' (FORMAT parquet)"
    )
    run, refused = DuckDB.run, []

    def cramped(self: DuckDB, statement: str, **options: Any) -> None:
        if statement.startswith("CREATE TEMP TABLE"):
            refused.append(statement)
            raise MemoryError("no room")
        run(self, statement, **options)

    cm.debias(log).write(tmp_path / "usual.parquet")
    monkeypatch.setattr(DuckDB, "run", cramped)
    cm.debias(log).write(tmp_path / "cramped.parquet")
    assert refused
    assert (tmp_path / "cramped.parquet").read_bytes() == (tmp_path / "usual.parquet").read_bytes()


def test_a_statement_that_is_interrupted_at_any_step_ends_and_leaves_the_engine_usable() -> None:
    """Steps before, during and after the statement; one that never ends is still running at the last."""
    engine = DuckDB()
    before = signal.signal(signal.SIGALRM, too_late)
    try:
        steps = interrupts(engine, "SELECT 42", most=5000)
        assert 50 < steps < 5000
        endless = "SELECT count(*) FROM range(1000000000000) AS t(i) WHERE sqrt(i) < 0"
        assert interrupts(engine, endless, most=steps) == steps
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def interrupts(engine: DuckDB, query: str, *, most: int) -> int:
    """How many steps into a query it could be interrupted."""
    for last in range(1, most + 1):
        signal.alarm(20)
        try:
            with interrupt_after(last):
                engine.rows(query)
        except KeyboardInterrupt:
            assert engine.rows("SELECT 1 + 1") == [(2,)]
        else:
            return last - 1
    return most


def too_late(number: int, frame: FrameType | None) -> None:
    raise AssertionError("the statement did not end")


@contextlib.contextmanager
def interrupt_after(last: int) -> Iterator[None]:
    """Raise KeyboardInterrupt once this thread has made so many steps, each a bytecode."""
    steps = itertools.count(1)

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode" and next(steps) == last:
            raise KeyboardInterrupt
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(outer)
