"""The logs that are hardest to fit: a million cells, each with its own number of impressions.

No two documents of a position have the same impressions, so that nothing can be counted together. `many_documents` has
20 positions, as pages have; `long_pages` 1,000 and `endless_pages` 10,000, each document on one of them; in
`moving_documents` each of 1,000 documents was shown on all of 1,000 positions. In `unlike_queries` the ten documents of
a query are looked at more or less than others; `many_contexts` has 20 positions in 1,000 contexts. `clickmix debias`
runs on each, with all that it loads, checks and prints; what counts is the time of processors.

    python benchmarks/hostile_logs.py
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np

from clickmix import Counts
from measuring import SCRATCH, clickmix, write_result

LOGS = {
    "many_documents": 20,
    "long_pages": 1_000,
    "endless_pages": 10_000,
    "moving_documents": 1_000,
    "unlike_queries": 20,
    "many_contexts": 20_000,
}
POSITIONS = 20  # of each context
ATTENTION = 0.4  # deviation of the queries' effect on clicking


def hostile_log(name: str, *, cells: int = 1_000_000) -> Counts:
    """One of LOGS, with so many cells: a document in ten is relevant, and clicks fall with the position."""
    places, moving = LOGS[name], name == "moving_documents"
    rng = np.random.default_rng(0)
    documents = cells // places
    position = np.tile(np.arange(1, places + 1), documents)
    document = np.repeat(np.arange(documents), places) if moving else np.arange(cells)
    impressions = 1 + np.argsort(rng.random((places, documents)), axis=1).T.ravel()
    relevant = (rng.random(cells) < 0.1) if not moving else (rng.random(documents) < 0.1)[document]
    query = document // 10
    context = (position - 1) // POSITIONS
    position = (position - 1) % POSITIONS + 1 if name == "many_contexts" else position
    looked = np.exp(rng.normal(-0.2, ATTENTION, query[-1] + 1))[query] if name == "unlike_queries" else 1.0
    clicks = rng.binomial(impressions, np.minimum(looked * np.where(relevant, 0.9, 0.27) / np.sqrt(position), 1))
    columns = {"context": context} if name == "many_contexts" else {}
    return Counts.from_arrays(query, document, position, impressions, clicks, **columns)


def debias(path: Path) -> dict[str, float]:
    """Processor seconds and peak megabytes of `clickmix debias`."""
    context = ("--context", "context") if path.stem == "many_contexts" else ()
    words = clickmix("debias", str(path), *context, "-o", str(path.with_suffix(".labels.parquet")))
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{path} was not fitted")
    return {
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_megabytes": round(usage.ru_maxrss / 1024),
    }


def measure(*, cells: int = 1_000_000) -> dict[str, object]:
    """What each log takes."""
    SCRATCH.mkdir(exist_ok=True)
    paths = {name: SCRATCH / f"{name}.parquet" for name in LOGS}
    for name, path in paths.items():
        hostile_log(name, cells=cells).write(path)
    return {"cells": cells} | {name: debias(path) for name, path in paths.items()}


if __name__ == "__main__":
    write_result("hostile_logs", "python benchmarks/hostile_logs.py", measure())
