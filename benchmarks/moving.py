"""`debias` against a bare GROUP BY of the same log, where documents move, queries differ, or there are contexts.

    python benchmarks/moving.py            20M rows whose documents move, 8M rows in 20 contexts
    python benchmarks/moving.py --small    the same with a tenth of the rows, written nowhere
    python benchmarks/moving.py --growth   how cost grows with rows, contexts and positions

Documents move within blocks of neighbouring positions. People examine position k with probability 1/k. With attention,
they look more in some queries than in others. Times are from call to return in a Python that has loaded what it needs,
the fastest of alternating runs, and beside them processor time, with Python's start. The command, which also checks the
log and predicts held-out clicks, is compared with a script, both with Python's start; growth is that of the command.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from measuring import SCRATCH, clickmix, run, write_result

BARE = """
import resource, time, duckdb
start = time.perf_counter()
connection = duckdb.connect()
connection.execute("SET memory_limit = '{memory}'")
connection.execute(
    "COPY (SELECT {keys}, count(*) AS impressions, sum(clicked) AS clicks "
    "FROM '{log}' GROUP BY {keys}) TO '{out}' (FORMAT parquet)"
)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, time.perf_counter() - start)
"""
OURS = """
import resource, time, duckdb
from clickmix import debias
# A tiny log first, which loads all modules.
debias(duckdb.sql("SELECT range AS query_id, 1 AS doc_id, 1 AS position, range % 2 AS clicked FROM range(99)"))
start = time.perf_counter()
debias("{log}", memory="{memory}"{context}).write("{out}")
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, time.perf_counter() - start)
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


def measure(*, small: bool = False, repeats: int = 2) -> dict[str, Any]:
    """Ratios in one run."""
    tenth = 10 if small else 1
    few, seven = Log(20_000_000 // tenth, 150_000 // tenth, block=4), Log(20_000_000 // tenth, 47_619 // tenth, 21, 7)
    logs = {
        "a few positions": few,
        "seven positions": seven,
        "a few positions, attention": replace(few, attention=0.6),
        "seven positions, attention": replace(seven, attention=0.3),
    }
    figures: dict[str, Any] = {name: _against_bare(log, repeats) for name, log in logs.items()}
    figures["20 contexts"] = _against_none(Log(8_000_000 // tenth, 20_000 // tenth, contexts=20), repeats)
    return figures


def _against_bare(log: Log, repeats: int) -> dict[str, Any]:
    """`debias` and the bare GROUP BY, one after the other; then the command and a script."""
    path, out = log.made(), SCRATCH / "moving-out.parquet"
    bare = BARE.format(log=path, out=out, keys="query_id, doc_id, position", memory=MEMORY)
    ours = OURS.format(log=path, out=out, context="", memory=MEMORY)
    called = _alternating("debias", ours, "bare", bare, repeats)
    words = clickmix("debias", str(path), "-o", str(out), "--memory", MEMORY)
    runs = [(run(words)[0], run([sys.executable, "-c", bare])[0]) for _ in range(repeats)]
    command, script = (min(seconds) for seconds in zip(*runs, strict=True))
    whole = {"command_seconds": command, "bare_script_seconds": script, "command_ratio": command / script}
    return {
        "rows": log.rows,
        "documents": log.queries * log.top,
        **called,
        **{key: round(value, 2) for key, value in whole.items()},
    }


def _against_none(log: Log, repeats: int) -> dict[str, Any]:
    """`debias` of the same log with and without its contexts."""
    path, out = log.made(), SCRATCH / "moving-out.parquet"
    within, without = (
        OURS.format(log=path, out=out, context=context, memory=MEMORY) for context in (', context="device"', "")
    )
    return {"rows": log.rows, "contexts": log.contexts, **_alternating("within", within, "without", without, repeats)}


def _alternating(one: str, script: str, other: str, other_script: str, repeats: int) -> dict[str, float]:
    """The least seconds of both, and their ratios."""
    seen = [(_times(script), _times(other_script)) for _ in range(repeats)]
    (cpu, seconds), (other_cpu, other_seconds) = (
        [min(run[which][i] for run in seen) for i in (0, 1)] for which in (0, 1)
    )
    return {
        f"{one}_seconds": round(seconds, 2),
        f"{other}_seconds": round(other_seconds, 2),
        "ratio": round(seconds / other_seconds, 2),
        f"{one}_processor_seconds": round(cpu, 2),
        f"{other}_processor_seconds": round(other_cpu, 2),
        "ratio_of_processor_seconds": round(cpu / other_cpu, 2),
    }


def _times(script: str) -> tuple[float, float]:
    """Processor seconds and seconds, as a script prints them last."""
    with tempfile.TemporaryFile("w+") as printed:
        run([sys.executable, "-c", script], printed=printed)
        printed.seek(0)
        cpu, seconds = printed.read().split()[-2:]
        return float(cpu), float(seconds)


def growth() -> dict[str, Any]:
    """Seconds and peak megabytes of the command under --memory 1GB, as rows, contexts and positions grow."""
    rows = {10**n: Log(10**n, 10**n // 133, block=4, attention=0.3) for n in (6, 7, 8, 9)}  # the last: 80 GB of disk
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
    parser.add_argument("--growth", action="store_true", help="how cost grows")
    options = parser.parse_args()
    if options.small:
        print(measure(small=True, repeats=1))
    elif options.growth:
        write_result("growth", "python benchmarks/moving.py --growth", growth())
    else:
        write_result("moving", "python benchmarks/moving.py", measure())
