"""`clickmix debias` on logs of 10M, 100M and 1B rows within 1 GB of memory; Spark against DuckDB on the same logs.

Every log is 20 results a session over 1,500,000 queries: 30M cells (query, document, position) from 30M rows on. It is
generated once, in files of 5M sessions, as far as the disk allows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import duckdb

from measuring import SCRATCH, clickmix, run, write_result

QUERIES = 1_500_000
POSITIONS = 20
SESSIONS_PER_FILE = 5_000_000
BYTES_PER_ROW = 6  # of the log; a log may take half of what is free, the rest is for what DuckDB puts aside
SPARK_SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "16",  # as one would on one machine; the default is 200
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def generate(rows: int) -> Path:
    """A folder with a log: position-based users with trust bias, a document in twenty relevant."""
    folder = SCRATCH / f"log-{rows}"
    folder.mkdir(parents=True, exist_ok=True)
    sessions = rows // POSITIONS
    for start in range(0, sessions, SESSIONS_PER_FILE):
        file = folder / f"{start}.parquet"
        if not file.exists():
            _write(file, start, min(start + SESSIONS_PER_FILE, sessions))
    return folder


def _write(file: Path, start: int, stop: int) -> None:
    connection = duckdb.connect()
    seed = start // SESSIONS_PER_FILE / 1000  # other people in every file
    connection.execute(f"SET threads = 2; SET memory_limit = '2GB'; SELECT setseed({seed})")
    connection.execute(
        f"""
        COPY (
            SELECT query_id, query_id * {POSITIONS} + position AS doc_id, position,
                   CAST(random() < CASE WHEN hash(query_id * {POSITIONS} + position) % 20 = 0
                                        THEN (0.99 - position / 100.0) / position
                                        ELSE 0.65 / least(position, 10) / position END AS TINYINT) AS clicked
            FROM (SELECT CAST((range * 7919) % {QUERIES} AS INTEGER) AS query_id FROM range({start}, {stop})),
                 (SELECT CAST(range AS INTEGER) AS position FROM range(1, {POSITIONS + 1}))
        ) TO '{file}.part' (FORMAT parquet)"""
    )
    Path(f"{file}.part").rename(file)


def fits(rows: int) -> bool:
    """Whether the disk has room for a log of so many rows, or it is there."""
    SCRATCH.mkdir(exist_ok=True)
    there = (SCRATCH / f"log-{rows}").exists()
    return there or rows * BYTES_PER_ROW < shutil.disk_usage(SCRATCH).free / 2


def by_duckdb(rows: int) -> dict[str, Any]:
    """Seconds and peak memory of debias within 1 GB."""
    log, out = generate(rows), SCRATCH / "out.parquet"
    seconds, megabytes = run(clickmix("debias", str(log), "-o", str(out), "--memory", "1GB"))
    return {
        "rows": rows,
        "cells": min(rows, QUERIES * POSITIONS),
        "seconds": round(seconds, 1),
        "rows_per_second": round(rows / seconds),
        "peak_megabytes": round(megabytes),
    }


def by_spark(rows: int) -> dict[str, Any]:
    """Seconds of the same by Spark on all cores of this machine, with its start; labels as a folder of Parquet."""
    log, out, settings = generate(rows), SCRATCH / "out-spark.parquet", SCRATCH / "spark"
    settings.mkdir(exist_ok=True)
    (settings / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in SPARK_SETTINGS.items()))
    os.environ["SPARK_CONF_DIR"] = str(settings.resolve())
    seconds, _ = run(clickmix("debias", str(log), "-o", str(out), "--engine", "local[*]"))
    return {"rows": rows, "seconds": round(seconds, 1), "rows_per_second": round(rows / seconds)}


def measure(
    *,
    rows: tuple[int, ...] = (10_000_000, 100_000_000, 1_000_000_000),
    spark: tuple[int, ...] = (10_000_000, 100_000_000),
) -> dict[str, Any]:
    """Each size in turn; those that do not fit the disk are named."""
    small = [size for size in rows if fits(size)]
    duckdb_runs = [by_duckdb(size) for size in small]
    spark_runs = [by_spark(size) for size in spark if size in small]
    seconds = {run["rows"]: run["seconds"] for run in duckdb_runs}
    return {
        "duckdb": duckdb_runs,
        "spark": spark_runs,
        "spark_over_duckdb": {str(run["rows"]): round(run["seconds"] / seconds[run["rows"]], 1) for run in spark_runs},
        "rows_that_do_not_fit_the_disk": [size for size in rows if size not in small],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000, 100_000_000, 1_000_000_000])
    parser.add_argument("--spark-rows", type=int, nargs="*", default=[10_000_000, 100_000_000])
    chosen = parser.parse_args()
    figures = measure(rows=tuple(chosen.rows), spark=tuple(chosen.spark_rows))
    write_result("engines", " ".join(["python benchmarks/engines.py", *sys.argv[1:]]), figures)
