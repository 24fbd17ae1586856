"""The report on a long log: what the section of queries adds to the time, and how many rows leave the engine for it.

The log is that of benchmarks/debias.py: 100M rows, 150,000 queries, 3M cells. Labels are computed before the clock
starts, as the other sections need them too.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from clickmix.corrections.mixture import MixtureCorrection
from clickmix.counts.count import count
from clickmix.engines.duckdb import DuckDB
from clickmix.report.evidence import usual_rates
from clickmix.report.log_numbers import labels_at_hand
from clickmix.report.query_list import QueryList, json_line
from clickmix.report.query_numbers import MOST_BYTES, queries_at_hand, read_queries
from debias import QUERIES, generate
from measuring import SCRATCH, write_result

REPEATS = 3


class Watched(DuckDB):
    """An engine that counts the rows that leave it."""

    left = 0

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Rows, counted."""
        found = super().rows(query)
        self.left += len(found)
        return found


def measure(*, sessions: int = 5_000_000) -> dict[str, Any]:
    """The fastest of a few runs, because a busy machine only adds."""
    log = SCRATCH / f"log-{sessions}.parquet"
    generate(log, sessions)
    engine = Watched(memory="1GB")
    counts = count(log, engine=engine)
    fit = MixtureCorrection().fit(counts)
    usual = usual_rates(fit, [seen.place for group in fit.groups for seen in group.places])
    wall, cpu = [], []
    with labels_at_hand(fit.label(counts)) as labels:
        for _ in range(REPEATS):
            engine.left, start, used = 0, time.perf_counter(), time.process_time()
            with queries_at_hand(counts, labels, min_sessions=1) as table:
                shown = QueryList(read_queries(table), usual).within(MOST_BYTES)
            size = len(json_line(shown.json()).encode())
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - used)
    results = [result for query in shown.queries for result in query.results]
    drawn = len(shown.queries) + len(results) + sum(len(result.positions) for result in results)
    return {
        "rows": sessions * 20,
        "queries": QUERIES,
        "seconds": round(min(wall), 2),
        "processor_seconds": round(min(cpu), 2),
        "queries_shown": len(shown.queries),
        "bytes": size,
        "rows_that_left_the_engine": engine.left,
        "rows_shown": drawn,
    }


if __name__ == "__main__":
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    write_result("report", " ".join(["python benchmarks/report.py", *sys.argv[1:]]), measure(sessions=sessions))
