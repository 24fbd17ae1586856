"""The verdict on a log: how often it is right, over 100 logs of each kind, clean or with a planted violation.

Logs of 2,000 queries, top 10, 100 sessions a query where the kind does not say otherwise: tests/violations.py. Also how
far predicted label errors are from measured ones, and how often `low` to `high` holds the true grade.
"""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import clickmix as cm
from clickmix.judging.checks import checked
from measuring import write_result
from simulation import rmse
from violations import CLEAN, PLANTED, SUBTLE, mixture_for

SEEDS = 100
KINDS = {"clean": CLEAN, "planted": PLANTED, "subtle": SUBTLE}


def judged(group: str, kind: str, seed: int) -> dict[str, Any]:
    """One log: its verdict, the violations found, predicted and measured error, coverage."""
    log = KINDS[group][kind](seed)
    fitted = checked(cm.MixtureCorrection(mixture_for(kind)).fit(log.counts), log.counts)
    labels = fitted.label(log.counts)
    verdict, truth = cm.judge(fitted), log.truth(labels)
    low, high = labels.columns["low"], labels.columns["high"]
    return {
        "verdict": str(verdict.judgement),
        "found": [str(check.violation) for check in verdict.found],
        "times": verdict.times,
        "expected": fitted.error,
        "measured": rmse(labels.relevance, truth),
        "held": float(np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9))),
    }


def summed_up(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of verdicts and violations; medians of the rest."""
    times = [row["times"] for row in rows if row["times"] is not None]
    return {
        "verdicts": dict(Counter(row["verdict"] for row in rows)),
        "found": dict(Counter(name for row in rows for name in row["found"])),
        "times_more_data": round(median(times), 2) if times else None,
        "expected_error": round(median(row["expected"] for row in rows), 4),
        "measured_error": round(median(row["measured"] for row in rows), 4),
        "expected_over_measured": [
            round(float(q), 3)
            for q in np.quantile([row["expected"] / row["measured"] for row in rows], [0.05, 0.5, 0.95])
        ],
        "interval_holds_truth": round(median(row["held"] for row in rows), 4),
    }


def measure(*, seeds: int = SEEDS) -> dict[str, Any]:
    """By kind of log."""
    figures: dict[str, Any] = {"seeds": seeds}
    with ProcessPoolExecutor(2) as pool:
        for group, kinds in KINDS.items():
            figures[group] = {}
            for kind in kinds:
                figures[group][kind] = summed_up(list(pool.map(partial(judged, group, kind), range(seeds))))
                print(group, kind, figures[group][kind], file=sys.stderr, flush=True)
    return figures


if __name__ == "__main__":
    write_result("verdicts", "python benchmarks/verdicts.py", measure())
