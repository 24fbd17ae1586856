"""Fits of the logs that are hardest to fit: a million cells, each with its own number of impressions.

No two documents of a position have the same impressions, so that nothing can be counted together. `many_documents` has
20 positions, as pages have; `long_pages` 1,000 and `endless_pages` 10,000, each document on one of them; in
`moving_documents` each of 1,000 documents was shown on all of 1,000 positions. Each fit runs in a process of its own.

    python benchmarks/hostile_logs.py [mixture ...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from clickmix import Counts
from measuring import run_script, write_result

LOGS = {"many_documents": 20, "long_pages": 1_000, "endless_pages": 10_000, "moving_documents": 1_000}
FIT = """
import sys, time
sys.path.insert(0, "{here}")
from hostile_logs import hostile_log
from clickmix import MixtureCorrection
counts = hostile_log("{name}", cells={cells})
start = time.perf_counter()
MixtureCorrection({mixture}).fit(counts)
print(time.perf_counter() - start)
"""


def hostile_log(name: str, *, cells: int = 1_000_000) -> Counts:
    """One of LOGS, with so many cells: a document in ten is relevant, and clicks fall with the position."""
    places, moving = LOGS[name], name == "moving_documents"
    rng = np.random.default_rng(0)
    documents = cells // places
    position = np.tile(np.arange(1, places + 1), documents)
    document = np.repeat(np.arange(documents), places) if moving else np.arange(cells)
    impressions = 1 + np.argsort(rng.random((places, documents)), axis=1).T.ravel()
    relevant = (rng.random(cells) < 0.1) if not moving else (rng.random(documents) < 0.1)[document]
    clicks = rng.binomial(impressions, np.where(relevant, 0.9, 0.27) / np.sqrt(position))
    return Counts.from_arrays(document // 10, document, position, impressions, clicks)


def measure(*mixtures: str, cells: int = 1_000_000) -> dict[str, Any]:
    """Seconds and peak megabytes of each fit; `default` is what a fit without options does."""
    figures: dict[str, Any] = {"cells": cells}
    here = Path(__file__).parent
    for mixture in mixtures or ("default",):
        for name in LOGS:
            given = "" if mixture == "default" else repr(mixture)
            seconds, _, megabytes = run_script(FIT.format(here=here, name=name, cells=cells, mixture=given))
            figures[f"{mixture}_{name}"] = {"seconds": round(seconds, 1), "peak_megabytes": round(megabytes)}
            print(mixture, name, figures[f"{mixture}_{name}"], flush=True)
    return figures


if __name__ == "__main__":
    write_result("hostile_logs", "python benchmarks/hostile_logs.py", measure(*sys.argv[1:]))
