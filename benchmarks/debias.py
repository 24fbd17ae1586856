"""`clickmix debias` against a bare GROUP BY of DuckDB on the same file; memory for N and 10 N rows; a day merged.

The log is generated once: 5,000,000 sessions of 20 results over 150,000 queries, 100M rows, 3M cells.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import duckdb

from measuring import SCRATCH, clickmix, run, write_result

QUERIES = 150_000
BARE = """
import duckdb
connection = duckdb.connect()
connection.execute("SET memory_limit = '1GB'")
connection.execute(
    "COPY (SELECT query_id, doc_id, position, count(*) AS impressions, sum(clicked) AS clicks "
    "FROM '{log}' GROUP BY query_id, doc_id, position) TO '{out}' (FORMAT parquet)"
)
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
    bare, ours = [], []
    for _ in range(repeats):
        bare.append(run([sys.executable, "-c", BARE.format(log=log, out=out)]))
        ours.append(run(clickmix("debias", str(log), "-o", str(out), "--memory", "1GB")))
    small = run(clickmix("debias", str(tenth), "-o", str(out), "--memory", "1GB"))
    counts = SCRATCH / "counts.parquet"
    run(clickmix("counts", str(tenth), "-o", str(counts)))
    merged = run(clickmix("counts", "--merge", str(counts), str(log)))
    refit = run(clickmix("debias", str(counts), "-o", str(out)))
    seconds, bare_seconds = (min(second for second, _ in runs) for runs in (ours, bare))
    in_pairs = [second / bare_second for (second, _), (bare_second, _) in zip(ours, bare, strict=True)]
    megabytes, bare_megabytes = (max(memory for _, memory in runs) for runs in (ours, bare))
    return {
        "rows": sessions * 20,
        "cells": QUERIES * 20,
        "debias_over_bare_group_by": round(seconds / bare_seconds, 2),
        "debias_over_bare_group_by_in_pairs": [round(q, 2) for q in statistics.quantiles(in_pairs, n=4)],
        "debias_seconds": round(seconds, 2),
        "bare_group_by_seconds": round(bare_seconds, 2),
        "debias_peak_megabytes": round(megabytes),
        "bare_group_by_peak_megabytes": round(bare_megabytes),
        "peak_megabytes_for_a_tenth_of_the_rows": round(small[1]),
        "seconds_for_a_tenth_of_the_rows": round(small[0], 2),
        "seconds_to_merge_the_rows_into_counts": round(merged[0], 2),
        "seconds_to_refit_and_label_from_counts": round(refit[0], 2),
    }


if __name__ == "__main__":
    write_result("debias", "python benchmarks/debias.py", measure())
