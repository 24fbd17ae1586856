"""`debias` of 20M impressions as result lists against the same impressions as rows: time, processor time, memory.

The log is that of `debias.py`, a fifth as long: 1,000,000 lists of 20 results. All are run in turn, and the fastest
of each counts, because a busy machine only adds. Processor time is user and system time together.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import duckdb

from debias import generate
from measuring import SCRATCH, clickmix, write_result

FORMS = {
    "rows": "",
    "lists": "list(clicked ORDER BY position) AS clicked",
    "lists_with_clicked_ids": "coalesce(list(doc_id ORDER BY position) FILTER (clicked = 1), []) AS clicked_ids",
}


def written(rows: Path, form: str) -> Path:
    """The log of rows as result lists."""
    path = SCRATCH / f"{form}-{rows.name}"
    if not path.exists():
        documents = "list(doc_id ORDER BY position) AS doc_ids"
        query = f"SELECT query_id, {documents}, {FORMS[form]} FROM '{rows}' GROUP BY session_id, query_id"
        duckdb.sql(f"COPY ({query}) TO '{path}.part' (FORMAT parquet)")
        Path(f"{path}.part").rename(path)
    return path


def timed(log: Path, output: Path) -> tuple[float, float, float]:
    """Seconds, seconds of processor time and peak megabytes of one `debias`."""
    start = time.perf_counter()
    process = subprocess.Popen(
        clickmix("debias", str(log), "-o", str(output), "--memory", "1GB"), stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"debias {log} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(*, lists: int = 1_000_000, repeats: int = 7) -> dict[str, Any]:
    """Each form of the log, with its ratio to rows; the labels must be the same bytes."""
    rows = SCRATCH / f"log-{lists}.parquet"
    generate(rows, lists)
    logs = {form: rows if form == "rows" else written(rows, form) for form in FORMS}
    runs: dict[str, list[tuple[float, float, float]]] = {form: [] for form in FORMS}
    for _ in range(repeats):
        for form, log in logs.items():
            runs[form].append(timed(log, SCRATCH / f"labels-{form}.parquet"))
    expected = (SCRATCH / "labels-rows.parquet").read_bytes()
    best = {form: [min(column) for column in zip(*found, strict=True)] for form, found in runs.items()}
    return {
        "impressions": lists * 20,
        "forms": {
            form: {
                "seconds": round(best[form][0], 2),
                "processor_seconds": round(best[form][1], 2),
                "peak_megabytes": round(max(megabytes for _, _, megabytes in runs[form])),
                "seconds_over_rows": round(best[form][0] / best["rows"][0], 2),
                "processor_seconds_over_rows": round(best[form][1] / best["rows"][1], 2),
                "same_labels": (SCRATCH / f"labels-{form}.parquet").read_bytes() == expected,
            }
            for form in FORMS
        },
    }


if __name__ == "__main__":
    write_result("result_lists", "python benchmarks/result_lists.py", measure())
