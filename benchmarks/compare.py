"""How long `clickmix compare` takes on a million rows, and what it says of real logs with judgments.

python benchmarks/compare.py [FOLDER]      FOLDER/NAME/impressions.csv.gz, FOLDER/NAME/judgments.csv.gz where there are
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import clickmix as cm
import measuring
from clickmix.engines.duckdb import DuckDB

QUERIES, SESSIONS, POSITIONS = 2_000, 100_000, 10


def million_rows(path: Path, *, seed: int = 0) -> Path:
    """Sessions of ten results; documents move by a few positions, popular queries are asked more often."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, QUERIES + 1) ** 0.8
    query = rng.choice(QUERIES, SESSIONS, p=popularity / popularity.sum())
    order = np.argsort(np.arange(POSITIONS) + 2 * rng.random((SESSIONS, POSITIONS)), axis=1)
    relevance = np.where(rng.random((QUERIES, POSITIONS)) < 0.3, 0.9, 0.2)
    position = np.arange(1, POSITIONS + 1)
    clicked = rng.random((SESSIONS, POSITIONS)) < relevance[query[:, None], order] / position**0.8
    columns = {
        "session_id": np.repeat(np.arange(SESSIONS), POSITIONS),
        "query_id": np.repeat(query, POSITIONS),
        "doc_id": order.ravel(),
        "position": np.tile(position, SESSIONS),
        "clicked": clicked.ravel().astype(np.int8),
    }
    engine = DuckDB()
    engine.register("rows", columns)
    path.parent.mkdir(exist_ok=True)
    engine.write("SELECT * FROM rows", str(path))
    return path


def watched(seconds: dict[str, float]) -> Callable[[str], None]:
    """A stage that notes the time each stage took, by its name."""
    last: list[Any] = ["", time.perf_counter()]

    def stage(title: str) -> None:
        now = time.perf_counter()
        if last[0]:
            seconds[last[0]] = round(seconds.get(last[0], 0.0) + now - last[1], 2)
        last[:] = [title, now]

    return stage


def timed() -> dict[str, Any]:
    """Wall and processor seconds of a comparison on a million rows, and where they went."""
    log = million_rows(measuring.SCRATCH / "compare.parquet")
    stages: dict[str, float] = {}
    stage = watched(stages)
    wall, cpu = time.perf_counter(), time.process_time()
    found = cm.compare(str(log), stage=stage)
    str(found)
    stage("")
    return {
        "rows": SESSIONS * POSITIONS,
        "seconds": round(time.perf_counter() - wall, 1),
        "processor_seconds": round(time.process_time() - cpu, 1),
        "stages": stages,
    }


def real(folder: Path) -> dict[str, Any]:
    """The comparison on every log of a folder that has judgments beside it, or none."""
    figures = {}
    for log in sorted(folder.glob("*/impressions.csv.gz")):
        judgments = log.with_name("judgments.csv.gz")
        found = cm.compare(str(log), judgments=str(judgments) if judgments.is_file() else None)
        document = found.results.json()
        figures[log.parent.name] = {
            key: document[key] for key in ("answer", "answer_sentence", "advice", "judged_queries", "corrections")
        }
    return figures


def measure(folder: str = "") -> dict[str, Any]:
    """All figures."""
    return {"million": timed()} | ({"logs": real(Path(folder))} if folder else {})


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else ""
    command = f"python benchmarks/compare.py{' FOLDER' if given else ''}"
    measuring.write_result("compare", command, measure(given))
