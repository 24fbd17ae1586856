"""What one release makes of a real log; `real_logs.py` runs it with the `src` folder of an earlier one.

python benchmarks/real_logs_release.py labels LOG labels.parquet
python benchmarks/real_logs_release.py bits LOG bits.npy          bits of held-out clicks, by split and query
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import clickmix as cm
from clickmix.corrections.click_rates import PlacedCells
from clickmix.counts.counts import Counts
from clickmix.engines.duckdb import DuckDB

SPLITS = range(5)
LEAST_RATE = 1e-5

Floats = np.ndarray[Any, np.dtype[np.float64]]


def parts_of(log: Path, scratch: Path, *, seed: int, lists: Any = False) -> tuple[Counts, PlacedCells, PlacedCells]:
    """Three quarters of the sessions as counts and as cells, and the cells of the rest."""
    engine, parts = DuckDB(), []
    for part, sessions in (("seen", "<> 3"), ("asked", "= 3")):
        file = scratch / f"{part}.parquet"
        chosen = f"hash(concat(CAST(session_id AS VARCHAR), ' {seed}')) % 4 {sessions}"
        duckdb.sql(f"COPY (SELECT * FROM '{log}' WHERE {chosen}) TO '{file}'")
        parts.append(cm.count(file, engine=engine, lists=lists))
    seen, asked = _placed_cells(*parts)
    return parts[0], seen, asked


def _placed_cells(*parts: Counts) -> Any:
    """The cells of parts of a log, whose documents have the same numbers in all of them."""
    try:  # where an earlier release has it
        module = importlib.import_module("clickmix.judging.held_out.cells")
    except ModuleNotFoundError:
        module = importlib.import_module("clickmix.corrections.click_rates")
    return module.placed_cells(*parts)


def bits_of(rates: Floats, asked: PlacedCells) -> tuple[Floats, Floats]:
    """Bits and impressions of the held-out clicks of each query."""
    p = np.clip(rates, LEAST_RATE, 1 - LEAST_RATE)
    bits = -(asked.clicks * np.log2(p) + (asked.impressions - asked.clicks) * np.log2(1 - p))
    query, queries = asked.query[asked.document], int(asked.query.max()) + 1
    spent, shown = (np.bincount(query, values, queries) for values in (bits, asked.impressions))
    return np.asarray(spent, dtype=np.float64), np.asarray(shown, dtype=np.float64)


def write_labels(log: Path, output: Path) -> None:
    """The labels of the log."""
    counts = cm.count(log)
    cm.MixtureCorrection().fit(counts).label(counts).write(output)


def write_bits(log: Path, output: Path) -> None:
    """The bits of every split."""
    bits = []
    for seed in SPLITS:
        training, seen, asked = parts_of(log, output.parent, seed=seed)
        rates = cm.MixtureCorrection().fit(training).click_rates(seen, asked.hidden())
        bits.append(bits_of(np.asarray(rates), asked)[0])
    np.save(output, np.array(bits))


if __name__ == "__main__":
    write = {"labels": write_labels, "bits": write_bits}[sys.argv[1]]
    write(Path(sys.argv[2]), Path(sys.argv[3]))
