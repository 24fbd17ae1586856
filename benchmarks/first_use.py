"""From nothing to a report: a new environment, `pip install` of the wheel, `clickmix debias` with its report.

Packages are in pip's cache, as an install before the timed one leaves them. Seconds depend on what else the machine
does; seconds of the processor do not. Also the size of the environment, and of the one that `make demo` makes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clickmix.lab.simulate import write_columns
from measuring import write_result

ROOT = Path(__file__).parents[1]
QUERIES, POSITIONS, SESSIONS = 500, 10, 100
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def timed(*command: str | Path) -> dict[str, float]:
    """Seconds of a command, and seconds of the processor."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(map(str, command))} failed")
    seconds = {"seconds": time.perf_counter() - start, "processor seconds": usage.ru_utime + usage.ru_stime}
    return {name: round(value, 1) for name, value in seconds.items()}


def environment(folder: Path, *packages: str) -> list[Sequence[str | Path]]:
    """The commands that make an environment with some packages."""
    return [
        (sys.executable, "-m", "venv", folder),
        (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages),
    ]


def megabytes(folder: Path) -> int:
    """The disk that a folder takes, as `du -sm` says."""
    return int(subprocess.run(["du", "-sm", folder], check=True, capture_output=True, text=True).stdout.split()[0])


def write_log(path: Path) -> None:
    """A shop's log of half a million impressions."""
    rng = np.random.default_rng(0)
    shape = (QUERIES, SESSIONS, POSITIONS)
    query, _, position = (axis.ravel() for axis in np.indices(shape))
    relevant = (rng.random((QUERIES, POSITIONS)) < 0.3)[query, position]
    clicked = rng.random(query.size) < np.where(relevant, 0.9, 0.2) / (1 + position)
    columns = {"query_id": query, "doc_id": query * POSITIONS + position, "position": position + 1, "clicked": clicked}
    write_columns({name: values.astype(np.int64) for name, values in columns.items()}, path)


def measure(folder: Path) -> dict[str, Any]:
    """The steps of a first use, one after the other."""
    timed(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    write_log(folder / "clicks.parquet")
    for command in environment(folder / "before", str(wheel)):
        timed(*command)
    make, install = environment(folder / "new", str(wheel))
    program, report = folder / "new" / "bin" / "clickmix", folder / "report.html"
    debias = (program, "debias", folder / "clicks.parquet", "-o", folder / "labels.parquet", "--report", report)
    steps = {"python -m venv": timed(*make), "pip install": timed(*install), "clickmix debias --report": timed(*debias)}
    totals = {kind: round(sum(step[kind] for step in steps.values()), 1) for kind in ("seconds", "processor seconds")}
    for command in environment(folder / "demo", f"{ROOT}[lightgbm]"):
        timed(*command)
    sizes = {"after pip install": megabytes(folder / "new"), "for make demo": megabytes(folder / "demo")}
    return {"steps": steps, "in all": totals, "impressions": QUERIES * SESSIONS * POSITIONS, "megabytes": sizes}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_result("first-use", "python benchmarks/first_use.py", measure(Path(folder)))
