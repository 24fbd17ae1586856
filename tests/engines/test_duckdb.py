"""The embedded engine loads no extension, opens no address, and keeps tables that memory has no room for."""

from __future__ import annotations

from pathlib import Path
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
