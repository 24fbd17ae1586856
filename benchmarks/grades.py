"""How often BIC finds the true number of grades: the paper's users, 2M and 8M clicks, 100 seeds each.

python benchmarks/grades.py          seeds 1000 to 1099, which nothing was chosen on
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from typing import Any

from clickmix.groups.observations import Observations
from clickmix.mixtures.neighbours import fit_neighbours
from measuring import write_result
from simulation import simulated

SEEDS = range(1000, 1100)
TRUE = {"binarized": 2, "graded": 5}
SETTINGS = [(clicks, eta, relevance) for clicks in (2_000_000, 8_000_000) for eta in (1, 2) for relevance in TRUE]


def chosen(job: tuple[int, int, str, int]) -> int:
    """The number of grades that BIC chooses for one simulated log."""
    clicks, eta, relevance, seed = job
    log = simulated(eta=eta, clicks=clicks, seed=seed, relevance=relevance)
    groups = [Observations.histogram(*log.histogram(k)) for k in range(20)]
    return fit_neighbours(groups, positions=range(1, 21), contexts=[()] * 20).grades


def measure() -> dict[str, Any]:
    """Per setting: how many of the seeds were right, and what was chosen."""
    jobs = [(*setting, seed) for setting in SETTINGS for seed in SEEDS]
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        found = pool.map(chosen, jobs, chunksize=4)
    rows = []
    for i, (clicks, eta, relevance) in enumerate(SETTINGS):
        numbers = Counter(found[i * len(SEEDS) : (i + 1) * len(SEEDS)])
        right = numbers[TRUE[relevance]]
        rows.append({"clicks": clicks, "eta": eta, "relevance": relevance, "right": right, "chosen": dict(numbers)})
    return {"seeds": len(SEEDS), "rows": rows}


if __name__ == "__main__":
    write_result("grades", "python benchmarks/grades.py", measure())
