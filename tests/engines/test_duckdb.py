"""The embedded engine stays on this machine: it loads no extension, and opens no address."""

from __future__ import annotations

import duckdb
import pytest

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
