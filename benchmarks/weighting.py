"""LambdaMART's query weights: nDCG@10 on the validation queries' grades, for each weighting and kind of user.

The synthetic collection with 1,500 training queries, top 20, clicks in the paper's proportion; labels of the mixture
correction. This is what the default weighting was chosen by; test queries were not looked at.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import clickmix as cm
from clickmix.datasets import Collection, synthetic_collection
from clickmix.evaluate import evaluate
from clickmix.rankers import Examples, LambdaMART, make_examples
from clickmix.rankers.weighting import WEIGHTINGS
from clickmix.simulate import Relevance, Simulation, write_simulation
from measuring import write_result

QUERIES = 1_500
CLICKS_PER_QUERY = 8_000_000 / 18_919
SEEDS = (1, 2, 3)
USERS: tuple[tuple[Relevance, float], ...] = (("binarized", 1.0), ("binarized", 2.0), ("graded", 1.0), ("graded", 2.0))


def examples_of(collection: Collection, relevance: Relevance, eta: float, seed: int) -> Examples:
    """Training examples from people's clicks."""
    settings = Simulation(clicks=round(QUERIES * CLICKS_PER_QUERY), eta=eta, relevance=relevance, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        write_simulation(collection, Path(folder), settings)
        return make_examples(collection.train, cm.debias(Path(folder) / "log.parquet"))


def measure() -> dict[str, Any]:
    """One row per user and seed, with nDCG@10 by weighting."""
    rows = []
    for seed in SEEDS:
        collection = synthetic_collection(queries=QUERIES, rng=np.random.default_rng([seed, 0]))
        vali = collection.vali
        query = vali.query_id[vali.query]
        for relevance, eta in USERS:
            examples = examples_of(collection, relevance, eta, seed)
            ndcg = {}
            for weighting in WEIGHTINGS:
                fitted = LambdaMART(weighting=weighting).fit(examples, seed=seed)
                ndcg[weighting] = evaluate(fitted.score(vali.features), vali.grade, query).mean
            rows.append({"relevance": relevance, "eta": eta, "seed": seed, "ndcg@10": ndcg})
            print(rows[-1], flush=True)
    return {"queries": QUERIES, "rows": rows}


if __name__ == "__main__":
    write_result("weighting", "python benchmarks/weighting.py", measure())
