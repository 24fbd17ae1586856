"""`debias` of 100M rows before and after a change, with a bare GROUP BY beside: python before_after.py OLD/src NEW/src

The log is that of `debias.py`. The three take turns, and the least of each counts, because a busy machine only adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from debias import BARE, OURS, generate
from measuring import SCRATCH, write_result


def timed(script: str, source: str) -> tuple[float, float]:
    """Seconds, and seconds of processor time, of a script with the package in this folder."""
    environment = os.environ | {"PYTHONPATH": source}
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{source} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def measure(before: str, after: str, *, sessions: int = 5_000_000, repeats: int = 5) -> dict[str, Any]:
    """The least seconds of each, and their ratios to the bare GROUP BY and to each other."""
    log, out = SCRATCH / f"log-{sessions}.parquet", SCRATCH / "out.parquet"
    generate(log, sessions)
    scripts = {"bare": (BARE, after), "before": (OURS, before), "after": (OURS, after)}
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in scripts}
    for _ in range(repeats):
        for name, (script, source) in scripts.items():
            runs[name].append(timed(script.format(log=log, out=out), source))
    least = {name: [min(column) for column in zip(*found, strict=True)] for name, found in runs.items()}
    return {
        "rows": sessions * 20,
        **{f"{name}_seconds": round(seconds, 2) for name, (seconds, _) in least.items()},
        **{f"{name}_processor_seconds": round(processor, 2) for name, (_, processor) in least.items()},
        "before_over_bare": round(least["before"][0] / least["bare"][0], 2),
        "after_over_bare": round(least["after"][0] / least["bare"][0], 2),
        "after_over_before": round(least["after"][0] / least["before"][0], 2),
        "processor_seconds_after_over_before": round(least["after"][1] / least["before"][1], 2),
    }


if __name__ == "__main__":
    write_result("before_after", "python benchmarks/before_after.py OLD/src NEW/src", measure(*sys.argv[1:3]))
