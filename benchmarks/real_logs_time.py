"""How long the command takes on real logs: labels, checks and held-out evidence, with Python's start.

    python benchmarks/real_logs_time.py DATA     DATA/NAME/impressions.csv.gz

The fastest of alternating runs; beside them a script with DuckDB's bare GROUP BY, and groups by what is above.
"""

from __future__ import annotations

import sys
from pathlib import Path

from measuring import SCRATCH, clickmix, run, write_result
from real_logs import LOGS

RUNS = 7
SCRIPT = """
import duckdb
duckdb.execute(
    "COPY (SELECT query_id, doc_id, position, count(*) AS impressions, sum(clicked) AS clicks "
    "FROM read_csv('{log}') GROUP BY ALL) TO '{out}' (FORMAT parquet)"
)
"""


def seconds(log: Path) -> dict[str, float]:
    """Seconds of each way, by name."""
    out = str(SCRATCH / "real-logs-time.parquet")
    debias = clickmix("debias", str(log), "-o", out)
    ways = {
        "debias": debias,
        "debias --examination dcm": [*debias, "--examination", "dcm"],
        "debias --examination ubm": [*debias, "--examination", "ubm"],
        "GROUP BY": [sys.executable, "-c", SCRIPT.format(log=log, out=out)],
    }
    runs = [{name: run(command)[0] for name, command in ways.items()} for _ in range(RUNS)]
    return {name: round(min(each[name] for each in runs), 2) for name in ways}


if __name__ == "__main__":
    SCRATCH.mkdir(exist_ok=True)
    logs = {name: Path(sys.argv[1]) / folder / "impressions.csv.gz" for name, folder in LOGS.items()}
    found = {name: seconds(log) for name, log in logs.items()}
    write_result("real_logs_time", "python benchmarks/real_logs_time.py DATA", found)
