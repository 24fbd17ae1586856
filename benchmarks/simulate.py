"""Writing a simulated log, apart from collection and ranker: 8M clicks (over 130M rows) over 18,919 queries."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from clickmix.lab.users import preset, write_sessions
from measuring import SCRATCH, write_result
from simulation import PRIORS

QUERIES = 18_919


def measure(*, clicks: int = 8_000_000) -> dict[str, Any]:
    """Seconds and rows per second."""
    SCRATCH.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    relevance = (rng.random((QUERIES, len(PRIORS))) < PRIORS).astype(float)
    documents = np.arange(relevance.size).reshape(relevance.shape)
    start = time.perf_counter()
    chunks = preset("pbm-eta1").simulate_chunks(relevance, clicks=clicks, rng=rng)
    rows = write_sessions(chunks, SCRATCH / "simulated.parquet", query_id=np.arange(QUERIES), doc_id=documents)
    seconds = time.perf_counter() - start
    return {"clicks": clicks, "rows": rows, "seconds": round(seconds, 1), "rows_per_second": round(rows / seconds)}


if __name__ == "__main__":
    write_result("simulate", "python benchmarks/simulate.py", measure())
