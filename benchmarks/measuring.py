"""What the benchmarks share: running a command and taking its time and peak memory, writing results."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from clickmix import __version__
from clickmix.storage.atomic import write_atomically

# The simulated logs of the tests serve the benchmarks too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

RESULTS = Path(__file__).parent / "results"
SCRATCH = Path("bench")  # ignored by git: generated logs and what is written from them


def run(command: Sequence[str], *, printed: IO[str] | None = None) -> tuple[float, float]:
    """Seconds and peak megabytes of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=printed or subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def run_script(script: str) -> tuple[float, float, float]:
    """The seconds that a Python script prints last, those it took with Python's start and end, and peak megabytes."""
    with tempfile.TemporaryFile("w+") as printed:
        whole, megabytes = run([sys.executable, "-c", script], printed=printed)
        printed.seek(0)
        return float(printed.read().split()[-1]), whole, megabytes


def least_seconds(action: Callable[[], Any], *, repeats: int = 5) -> float:
    """The least of some runs: the rest is what else the machine was doing."""
    runs = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        runs.append(time.perf_counter() - start)
    return min(runs)


def clickmix(*arguments: str) -> list[str]:
    """The command of the environment that runs the benchmark."""
    return [str(Path(sys.executable).with_name("clickmix")), *arguments]


def write_result(name: str, command: str, figures: dict[str, Any]) -> None:
    """Write figures with the machine and versions they belong to."""
    RESULTS.mkdir(exist_ok=True)
    result = {
        "command": command,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {"clickmix": __version__} | {package: version(package) for package in ("duckdb", "numpy", "scipy")},
        "figures": figures,
    }
    text = json.dumps(result, indent=1, sort_keys=True) + "\n"
    write_atomically(RESULTS / f"{name}.json", text.encode())
    print(f"{name}: {json.dumps(figures, indent=1)}", flush=True)
