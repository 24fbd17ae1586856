"""The properties of the synthetic collection, measured: python benchmarks/synthetic.py [training queries] [seed]"""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

import numpy as np

from clickmix.lab.collections.synthetic import synthetic_collection
from measuring import write_result
from oracles_datasets import measure as properties


def measure(queries: int = 4000, seed: int = 0) -> dict[str, Any]:
    """What the collection promises, and how long it takes to make."""
    rng = np.random.default_rng(seed)
    start = time.perf_counter()
    collection = synthetic_collection(queries=queries, rng=rng)
    seconds = time.perf_counter() - start
    found = properties(collection, rng=rng)
    ways = {name: getattr(found, name) for name in ("way_to_true_order", "way_to_true_ranker", "gap")}
    rounded = {key: np.round(value, 3).tolist() for key, value in {**dataclasses.asdict(found), **ways}.items()}
    return {"queries": queries, "seed": seed, "seconds_to_make": round(seconds, 1), **rounded}


if __name__ == "__main__":
    write_result("synthetic", "python benchmarks/synthetic.py", measure(*map(int, sys.argv[1:])))
