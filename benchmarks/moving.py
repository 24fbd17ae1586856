"""`debias` against a bare GROUP BY of the same log, where documents move, queries differ, or there are contexts.

    python benchmarks/moving.py            20M rows whose documents move, 8M rows in 20 contexts, how cost grows
    python benchmarks/moving.py --small    the same with a tenth of the rows, without how cost grows

Documents move within blocks of neighbouring positions. People examine position k with probability 1/k. With attention,
they look more in some queries than in others. Times are from call to return in a Python that has loaded what it needs,
the fastest of alternating runs; growth is that of the command, with peak memory.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from measuring import SCRATCH, clickmix, run, run_script, write_result

BARE = """
import time, duckdb
start = time.perf_counter()
connection = duckdb.connect()
connection.execute("SET memory_limit = '{memory}'")
connection.execute(
    "COPY (SELECT {keys}, count(*) AS impressions, sum(clicked) AS clicks "
    "FROM '{log}' GROUP BY {keys}) TO '{out}' (FORMAT parquet)"
)
print(time.perf_counter() - start)
"""
OURS = """
import time
from clickmix import debias
start = time.perf_counter()
debias("{log}", memory="{memory}"{context}).write("{out}")
print(time.perf_counter() - start)
"""
MEMORY = "4GB"


@dataclass(frozen=True)
class Log:
    """Lists of `top` documents for so many queries; documents move within blocks of positions."""

    rows: int
    queries: int
    top: int = 20
    block: int = 1
    attention: float = 0.0
    contexts: int = 1

    @property
    def path(self) -> Path:
        """Where it lies, once it has been made."""
        shape = f"{self.rows}-{self.queries}-{self.top}-{self.block}-{self.attention}-{self.contexts}"
        return SCRATCH / f"moving-{shape}.parquet"

    def made(self) -> Path:
        """Make the log, unless it has been made."""
        if self.path.exists():
            return self.path
        self.path.parent.mkdir(exist_ok=True)
        connection = duckdb.connect()
        connection.execute("SET threads = 2; SELECT setseed(0.5)")
        moved = f"(position - 1) // {self.block} * {self.block} + (position - 1 + turn) % {self.block} + 1"
        uniform = "(hash({}) % 1000000 + 1) / 1000001"
        normal = f"sqrt(-2 * ln({uniform.format('query_id')})) * cos(2 * pi() * {uniform.format('-query_id - 1')})"
        connection.execute(
            f"""COPY (
                WITH sessions AS (SELECT range AS session_id, range % 1000003 AS turn,
                                         CAST(floor({self.queries} * pow(random(), 2)) AS INTEGER) AS query_id,
                                         CAST(floor({self.contexts} * pow(random(), 1.5)) AS SMALLINT) AS device
                                  FROM range({self.rows // self.top})),
                shown AS (SELECT *, {moved} AS base FROM sessions,
                                 (SELECT CAST(range AS SMALLINT) AS position FROM range(1, {self.top} + 1))),
                documents AS (SELECT *, CAST(query_id * {self.top} + base AS INTEGER) AS doc_id,
                                     exp({self.attention} * {normal} - {self.attention**2 / 2})
                                     * pow(position, -0.6 - 0.8 * (device + 1) / {self.contexts}) AS examined
                              FROM shown)
                SELECT session_id, query_id, doc_id, position, device,
                       CAST(random() < least(examined, 1) * CASE WHEN hash(doc_id) % 1000 < 400 / sqrt(base)
                            THEN 0.95 ELSE 0.6 / (position + 1) END AS TINYINT) AS clicked
                FROM documents
            ) TO '{self.path}.part' (FORMAT parquet)"""
        )
        Path(f"{self.path}.part").rename(self.path)
        return self.path


def measure(*, small: bool = False, repeats: int = 5) -> dict[str, Any]:
    """Ratios in one run, and how cost grows."""
    tenth = 10 if small else 1
    logs = {
        "a few positions": Log(20_000_000 // tenth, 150_000 // tenth, block=4),
        "seven positions": Log(20_000_000 // tenth, 47_619 // tenth, top=21, block=7),
        "a few positions, attention": Log(20_000_000 // tenth, 150_000 // tenth, block=4, attention=0.3),
        "seven positions, attention": Log(20_000_000 // tenth, 47_619 // tenth, top=21, block=7, attention=0.3),
        "frozen": Log(8_000_000 // tenth, 20_000 // tenth),
    }
    figures: dict[str, Any] = {name: compared(log, repeats=repeats) for name, log in logs.items()}
    figures["20 contexts"] = in_contexts(Log(8_000_000 // tenth, 20_000 // tenth, contexts=20), repeats=repeats)
    if not small:
        figures["growth"] = growth()
    return figures


def compared(log: Log, *, repeats: int) -> dict[str, Any]:
    """`debias` and the bare GROUP BY, one after the other."""
    path, out = log.made(), SCRATCH / "moving-out.parquet"
    keys, bare, ours = "query_id, doc_id, position", [], []
    for _ in range(repeats):
        bare.append(run_script(BARE.format(log=path, out=out, keys=keys, memory=MEMORY))[0])
        ours.append(run_script(OURS.format(log=path, out=out, context="", memory=MEMORY))[0])
    ((cells, documents),) = duckdb.execute(
        f"SELECT count(*), count(DISTINCT (query_id, doc_id)) FROM (SELECT DISTINCT {keys} FROM '{path}')"
    ).fetchall()
    return {
        "rows": log.rows,
        "cells": cells,
        "documents": documents,
        "bare_group_by_seconds": round(min(bare), 2),
        "debias_seconds": round(min(ours), 2),
        "ratio": round(min(ours) / min(bare), 2),
    }


def in_contexts(log: Log, *, repeats: int) -> dict[str, Any]:
    """The same log with and without its contexts."""
    path, out = log.made(), SCRATCH / "moving-out.parquet"
    without, within = [], []
    for _ in range(repeats):
        without.append(run_script(OURS.format(log=path, out=out, context="", memory=MEMORY))[0])
        within.append(run_script(OURS.format(log=path, out=out, context=', context="device"', memory=MEMORY))[0])
    return {
        "rows": log.rows,
        "contexts": log.contexts,
        "without_seconds": round(min(without), 2),
        "within_seconds": round(min(within), 2),
        "ratio": round(min(within) / min(without), 2),
    }


def growth() -> dict[str, Any]:
    """Seconds and peak megabytes of the command under --memory 1GB, as rows, contexts and positions grow."""
    rows = {n: Log(n, n // 133, block=4, attention=0.3) for n in (1_000_000, 10_000_000, 100_000_000)}
    contexts = {n: Log(4_000_000, 4_000, contexts=n) for n in (1, 5, 20, 50, 200)}
    positions = {n: Log(4_000_000, 40_000 * 10 // n, top=n, block=2) for n in (10, 100, 1_000)}
    return {
        "rows": {str(n): _command(log) for n, log in rows.items()},
        "contexts": {str(n): _command(log, "--context", "device") for n, log in contexts.items()},
        "positions": {str(n): _command(log) for n, log in positions.items()},
    }


def _command(log: Log, *options: str) -> dict[str, float]:
    out = SCRATCH / "moving-out.parquet"
    seconds, megabytes = run(clickmix("debias", str(log.made()), "-o", str(out), "--memory", "1GB", *options))
    return {"seconds": round(seconds, 1), "peak_megabytes": round(megabytes)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="debias against a bare GROUP BY where documents move.")
    parser.add_argument("--small", action="store_true", help="a tenth of the rows, written nowhere")
    if parser.parse_args().small:
        print(measure(small=True, repeats=1))
    else:
        write_result("moving", "python benchmarks/moving.py", measure())
