"""The verdict on a log: how often it is right, over 100 logs of each kind, clean or with a planted violation.

    python benchmarks/verdicts.py                          every kind
    python benchmarks/verdicts.py dcm robots-3% --logs 20  some of them, fewer logs of each
Logs of 200,000 impressions: benchmarks/verdict_logs.py. A line per log goes to bench/verdicts.jsonl. Logs that are
there are not judged again, so a run can be stopped and taken up later; the result sums up all lines.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from statistics import median
from typing import Any

import numpy as np

import clickmix as cm
from clickmix.judging.checks import checked
from clickmix.mixtures.hierarchical.choose import name_of
from measuring import SCRATCH, write_result
from verdict_logs import CLEAN, NAMES, UNEQUAL, make

FIRST_SEED, LOGS = 2000, 100
LINES = SCRATCH / "verdicts.jsonl"
SAY_NOTHING = ("no-signal",)  # clean kinds where `do not use` is the right verdict


def judged(kind: str, seed: int) -> dict[str, Any]:
    """One log: its verdict, the violations found, and errors of labels."""
    log = make(kind, seed=seed)
    world, counts = log.world, log.world.counts()
    start = time.process_time()
    fitted = cm.MixtureCorrection().fit(counts)
    seconds = time.process_time() - start
    fitted = checked(fitted, counts)
    labels, verdict = fitted.label(counts), cm.judge(fitted)
    low, high = labels.columns["low"], labels.columns["high"]
    return {
        "kind": kind,
        "seed": seed,
        "model": name_of(fitted.model.model) if fitted.model else "none",
        "verdict": str(verdict.judgement),
        "found": {str(check.violation): check.moved for check in verdict.found},
        "times": None if verdict.times in (None, np.inf) else verdict.times,
        "movement": log.movement,
        "expected": fitted.error,
        "measured": world.error(labels.relevance),
        "limit": world.error(world.limit),
        "held": float(np.mean((low <= world.truth + 1e-9) & (world.truth <= high + 1e-9))),
        "fit_seconds": seconds,
    }


def flagged(row: dict[str, Any]) -> bool:
    """Whether a verdict speaks against a log: `usable` with a caveat, or `do not use` where clicks say something."""
    caveat = row["verdict"] == "usable" and bool(row["found"])
    return caveat or (row["verdict"] == "do not use" and row["kind"] not in SAY_NOTHING)


def summed_up(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of verdicts, violations and models; medians of the rest."""
    times = [row["times"] for row in rows if row["times"] is not None]
    middle = {
        name: round(median(row[name] for row in rows), 4) for name in ("movement", "limit", "measured", "expected")
    }
    return {
        "logs": len(rows),
        "flagged": sum(map(flagged, rows)),
        "with_a_violation": sum(bool(row["found"]) for row in rows),
        "verdicts": dict(Counter(row["verdict"] for row in rows)),
        "found": dict(Counter(name for row in rows for name in row["found"])),
        "models": dict(Counter(row["model"] for row in rows)),
        "median": middle,
        "measured_over_limit": round(median(row["measured"] / row["limit"] for row in rows), 4),
        "times_more_data": round(median(times), 2) if times else None,
        "expected_over_measured": [
            round(float(q), 3)
            for q in np.quantile([row["expected"] / row["measured"] for row in rows], [0.05, 0.5, 0.95])
        ],
        "interval_holds_truth": round(median(row["held"] for row in rows), 4),
        "fit_cpu_seconds": round(median(row["fit_seconds"] for row in rows), 2),
    }


def measure(kinds: Sequence[str] = NAMES, *, logs: int = LOGS) -> dict[str, Any]:
    """Judge the logs that have no line yet; sum up all that have, by kind."""
    LINES.parent.mkdir(exist_ok=True)
    rows = [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []
    done = {(row["kind"], row["seed"]) for row in rows}
    seeds = range(FIRST_SEED, FIRST_SEED + logs)
    todo = [(kind, seed) for seed in seeds for kind in kinds if (kind, seed) not in done]
    with ProcessPoolExecutor(os.cpu_count()) as pool, LINES.open("a") as lines:
        for future in as_completed([pool.submit(judged, *each) for each in todo]):
            rows.append(future.result())
            lines.write(json.dumps(rows[-1]) + "\n")
            lines.flush()
    groups: dict[str, Any] = {"clean": {}, "planted": {}}
    for kind in NAMES:
        own = sorted((row for row in rows if row["kind"] == kind), key=lambda row: int(row["seed"]))
        if own:
            groups["clean" if kind in CLEAN or kind in UNEQUAL else "planted"][kind] = summed_up(own)
    return {"first_seed": FIRST_SEED} | groups


def main() -> None:
    """Judge logs of the kinds of the command line."""
    parser = argparse.ArgumentParser(description="Counts verdicts on simulated logs.")
    parser.add_argument("kinds", nargs="*", metavar="kind", help=f"of {', '.join(NAMES)}; all without it")
    parser.add_argument("--logs", type=int, default=LOGS, help="of each kind")
    options = parser.parse_args()
    unknown = sorted(set(options.kinds) - set(NAMES))
    if unknown:
        parser.error(f"kind {unknown[0]!r}: expected one of {', '.join(NAMES)}.")
    figures = measure(options.kinds or NAMES, logs=options.logs)
    write_result("verdicts", " ".join(["python benchmarks/verdicts.py", *sys.argv[1:]]), figures)


if __name__ == "__main__":
    main()
