"""How long every correction takes on sessions of ten, beside DuckDB's bare GROUP BY of the same file.

The log is generated once: dependent-click users, 20,000 queries of popularity 1 / rank^.8, each with 20 documents and
four lists of ten, so that documents move. Corrections on counts are timed from the file to written labels. Those on
result lists are timed from counts by list and clicks to written labels; grouping the sessions into these counts comes
once for all of them, and its time is beside. All times are wall-clock seconds, the least of a few rounds in which every
correction has a turn; CPU seconds are beside, which other programs on the machine disturb less.

    python benchmarks/peers_time.py                       # 10,000,000 sessions
    python benchmarks/peers_time.py --sessions 1000000 --repeats 1 --mixture
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import clickmix as cm
from clickmix.corrections.correction import CORRECTIONS, needs_lists
from clickmix.lab.users import DependentClick, User
from clickmix.lab.users.dcm import paper_dependent_click
from measuring import SCRATCH, write_result

QUERIES, DOCUMENTS, LISTS, LENGTH = 20_000, 20, 4, 10
ON_COUNTS = ("none", "coec", "ctr-smoothed", "coec-smoothed", "ctr-then-rank", "intervention", "pbm")
ON_LISTS = ("sdbn", "ubm", "dcm", "dbn")


def generate(path: Path, sessions: int) -> None:
    """Write the log, some sessions at a time."""
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    lists = np.stack([rng.permuted(np.tile(np.arange(DOCUMENTS), (QUERIES, 1)), axis=1) for _ in range(LISTS)], axis=1)
    documents = (np.arange(QUERIES)[:, None, None] * DOCUMENTS + lists[:, :, :LENGTH]).reshape(-1, LENGTH)
    relevance = np.where(rng.random(QUERIES * DOCUMENTS) < 0.2, 1.0, 0.0)[documents]
    popularity = np.repeat(np.arange(1, QUERIES + 1) ** -0.8, LISTS)
    user: User = paper_dependent_click(top=LENGTH)
    assert isinstance(user, DependentClick)
    parts = path.with_suffix(".parts")
    parts.mkdir(exist_ok=True)
    first = 0
    for number, some in enumerate(user.simulate_chunks(relevance, sessions=sessions, weights=popularity, rng=rng)):
        n = len(some)
        columns = {
            "session_id": np.repeat(np.arange(first, first + n), LENGTH),
            "query_id": np.repeat(some.seen // LISTS, LENGTH).astype(np.int32),
            "doc_id": documents[some.seen].ravel().astype(np.int32),
            "position": np.tile(np.arange(1, LENGTH + 1, dtype=np.int16), n),
            "clicked": np.ascontiguousarray(some.clicks).ravel().astype(np.int8),
        }
        connection = duckdb.connect()
        connection.register("columns", columns)
        connection.execute(f"COPY (SELECT * FROM columns) TO '{parts}/{number:05}.parquet' (FORMAT parquet)")
        first += n
    duckdb.execute(f"COPY (SELECT * FROM '{parts}/*.parquet') TO '{path}.part' (FORMAT parquet)")
    Path(f"{path}.part").rename(path)
    for part in parts.iterdir():
        part.unlink()
    parts.rmdir()


def timed(actions: dict[str, Callable[[], Any]], *, repeats: int) -> dict[str, dict[str, float]]:
    """The least wall-clock and CPU seconds of each, over rounds in which each has a turn: a busy hour is shared."""
    found: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for name, action in actions.items():
            wall, cpu = time.perf_counter(), time.process_time()
            action()
            took = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            found[name] = {kind: round(min(s, found.get(name, took)[kind]), 2) for kind, s in took.items()}
            print(name, found[name], flush=True)
    return found


def bare(log: Path, out: Path) -> None:
    """DuckDB's GROUP BY, written to a file."""
    duckdb.connect().execute(
        "COPY (SELECT query_id, doc_id, position, count(*) AS impressions, sum(clicked) AS clicks "
        f"FROM '{log}' GROUP BY query_id, doc_id, position) TO '{out}' (FORMAT parquet)"
    )


def debias(log: Path, name: str, out: Path) -> None:
    """From the file to written labels."""
    cm.debias(str(log), correction=name).write(out)


def label_lists(counts: cm.Counts, name: str, out: Path) -> None:
    """From counts by list and clicks to written labels."""
    correction = CORRECTIONS.make(name)
    assert needs_lists(correction) == "clicks"
    correction.fit(counts).label(counts).write(out)


def measure(*, sessions: int = 10_000_000, repeats: int = 3, mixture: bool = False) -> dict[str, Any]:
    """Seconds of all corrections; of the mixture, too, where asked for, once."""
    log, out = SCRATCH / f"sessions-{sessions}.parquet", SCRATCH / "out.parquet"
    generate(log, sessions)
    actions: dict[str, Callable[[], Any]] = {"bare": lambda: bare(log, out)}
    actions |= {name: partial(debias, log, name, out) for name in ON_COUNTS}
    counted = timed(actions, repeats=repeats)
    group_by = counted.pop("bare")
    for took in counted.values():
        took["times the GROUP BY"] = round(took["seconds"] / group_by["seconds"], 2)
        took["times its cpu"] = round(took["cpu"] / group_by["cpu"], 2)
    if mixture:
        counted |= timed({"mixture": partial(debias, log, "mixture", out)}, repeats=1)
    kept: list[cm.Counts] = []
    grouping = timed({"grouping": lambda: kept.append(cm.count(str(log), lists="clicks"))}, repeats=1)["grouping"]
    (counts,) = kept
    ((cells, lists),) = counts.engine.rows(f"SELECT count(*), count(DISTINCT list) FROM {counts.by_list}")
    print(cells, lists, flush=True)
    listed = timed({name: partial(label_lists, counts, name, out) for name in ON_LISTS}, repeats=repeats)
    return {
        "sessions": sessions,
        "rows": sessions * LENGTH,
        "bare GROUP BY": group_by,
        "corrections on counts, from the file": counted,
        "grouping of sessions": grouping,
        "lists with their clicks": lists,
        "corrections on lists, from counts by list": listed,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--mixture", action="store_true")
    given = parser.parse_args()
    command = f"python benchmarks/peers_time.py --sessions {given.sessions} --repeats {given.repeats}"
    command += " --mixture" * given.mixture
    write_result("peers_time", command, measure(**vars(given)))
