"""`debias` against a bare GROUP BY of DuckDB on the same file; memory for N and 10 N rows; a day merged.

The log is generated once: 5,000,000 sessions of 20 results over 150,000 queries, 100M rows, 3M cells. Both are timed
twice: from call to return in a Python that has loaded what they need, and as a user at a shell sees them, the command
against a script, with Python's start, the loading of libraries and what is printed.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import duckdb

from measuring import SCRATCH, clickmix, run, run_script, write_result

QUERIES = 150_000
BARE = """
import time, duckdb
start = time.perf_counter()
connection = duckdb.connect()
connection.execute("SET memory_limit = '1GB'")
connection.execute(
    "COPY (SELECT query_id, doc_id, position, count(*) AS impressions, sum(clicked) AS clicks "
    "FROM '{log}' GROUP BY query_id, doc_id, position) TO '{out}' (FORMAT parquet)"
)
print(time.perf_counter() - start)
"""
OURS = """
import time, duckdb
from clickmix import debias
# A tiny log first, which loads all modules.
debias(duckdb.sql("SELECT range AS query_id, 1 AS doc_id, 1 AS position, range % 2 AS clicked FROM range(99)"))
start = time.perf_counter()
debias("{log}", memory="1GB").write("{out}")
print(time.perf_counter() - start)
"""


def generate(path: Path, sessions: int) -> None:
    """Position-based users with trust bias; a document in twenty is relevant. Every query is seen equally often."""
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    connection = duckdb.connect()
    connection.execute("SET threads = 2; SELECT setseed(0.5)")
    connection.execute(
        f"""
        COPY (
            SELECT session_id, query_id, query_id * 20 + position AS doc_id, position,
                   CAST(random() < CASE WHEN hash(query_id * 20 + position) % 20 = 0
                                        THEN (0.99 - position / 100.0) / position
                                        ELSE 0.65 / least(position, 10) / position END AS TINYINT) AS clicked
            FROM (SELECT range AS session_id, CAST((range * 7919) % {QUERIES} AS INTEGER) AS query_id
                  FROM range({sessions})),
                 (SELECT CAST(range AS INTEGER) AS position FROM range(1, 21))
        ) TO '{path}.part' (FORMAT parquet)"""
    )
    Path(f"{path}.part").rename(path)


def measure(*, sessions: int = 5_000_000, repeats: int = 15) -> dict[str, Any]:
    """The fastest of alternating runs, because a busy machine only adds; medians of pairs beside, to see how busy."""
    log, tenth, out = (
        SCRATCH / f"log-{sessions}.parquet",
        SCRATCH / f"log-{sessions // 10}.parquet",
        SCRATCH / "out.parquet",
    )
    generate(log, sessions)
    generate(tenth, sessions // 10)
    bare, ours, command = [], [], []
    for _ in range(repeats):
        bare.append(run_script(BARE.format(log=log, out=out)))
        ours.append(run_script(OURS.format(log=log, out=out)))
        command.append(run(clickmix("debias", str(log), "-o", str(out), "--memory", "1GB")))
    small = run(clickmix("debias", str(tenth), "-o", str(out), "--memory", "1GB"))
    counts = SCRATCH / "counts.parquet"
    run(clickmix("counts", str(tenth), "-o", str(counts)))
    merged = run(clickmix("counts", "--merge", str(counts), str(log)))
    refit = run(clickmix("debias", str(counts), "-o", str(out)))
    return {
        "rows": sessions * 20,
        "cells": QUERIES * 20,
        **_compared("debias", [inside for inside, _, _ in ours], "bare_group_by", [inside for inside, _, _ in bare]),
        **_compared("command", [whole for whole, _ in command], "bare_script", [whole for _, whole, _ in bare]),
        "command_peak_megabytes": round(max(megabytes for _, megabytes in command)),
        "bare_script_peak_megabytes": round(max(megabytes for _, _, megabytes in bare)),
        "peak_megabytes_for_a_tenth_of_the_rows": round(small[1]),
        "seconds_for_a_tenth_of_the_rows": round(small[0], 2),
        "seconds_to_merge_the_rows_into_counts": round(merged[0], 2),
        "seconds_to_refit_and_label_from_counts": round(refit[0], 2),
    }


def _compared(one: str, seconds: list[float], other: str, other_seconds: list[float]) -> dict[str, Any]:
    """The fastest of each and their ratio, and the quartiles of the ratios in pairs."""
    in_pairs = [a / b for a, b in zip(seconds, other_seconds, strict=True)]
    return {
        f"{one}_seconds": round(min(seconds), 2),
        f"{other}_seconds": round(min(other_seconds), 2),
        f"{one}_over_{other}": round(min(seconds) / min(other_seconds), 2),
        f"{one}_over_{other}_in_pairs": [round(q, 2) for q in statistics.quantiles(in_pairs, n=4)],
    }


if __name__ == "__main__":
    write_result("debias", "python benchmarks/debias.py", measure())
