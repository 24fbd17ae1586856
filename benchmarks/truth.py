"""Labels against known truth: RMSE of every correction beside the limit, for the paper's users; documents that move.

18,919 queries, top 20, binarized relevance with the share of relevant documents at each position that MSLR-WEB30K has;
position-based users with trust bias. The limit is the Bayes posterior with the true parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickmix.corrections import MixtureCorrection, NoCorrection
from measuring import write_result
from simulation import PRIORS, Simulated, rmse, simulated, spread

SEEDS = range(5)


def labels_of(correction: Any, log: Simulated) -> np.ndarray[Any, Any]:
    """Labels in the shape of the log; a document that was never shown has its prior, for everyone."""
    counts = log.counts()
    labels = correction.fit(counts).label(counts)
    out = np.broadcast_to(PRIORS, log.relevance.shape).copy()
    out[labels.query_id, labels.doc_id % 100 - 1] = labels.relevance
    return out


def measure() -> dict[str, Any]:
    """Median RMSE over five seeds."""
    rows = []
    for clicks in (200_000, 2_000_000, 8_000_000):
        for eta in (1, 2):
            found: dict[str, list[float]] = {}
            for seed in SEEDS:
                log = simulated(eta=eta, clicks=clicks, seed=seed)
                labels = {
                    "click-through rate": labels_of(NoCorrection(), log),
                    "gaussian mixture": labels_of(MixtureCorrection("gaussian"), log),
                    "binomial mixture": labels_of(MixtureCorrection("binomial"), log),
                    "limit": log.limit,
                    "prior only": np.broadcast_to(PRIORS, log.relevance.shape),
                }
                for name, values in labels.items():
                    found.setdefault(name, []).append(rmse(values, log.relevance))
            rows.append({"clicks": clicks, "eta": eta, **{k: round(float(np.median(v)), 4) for k, v in found.items()}})
    return {"seeds": len(SEEDS), "rmse": rows, "documents_that_move": _moving()}


def _moving() -> dict[str, float]:
    """60,000 documents, 3 impressions at each of 5 neighbouring positions: RMSE over that of the limit."""
    import clickmix.corrections.mixture as module

    counts, relevant, limit = spread(0)
    best = rmse(limit, relevant)
    jointly = rmse(MixtureCorrection().fit(counts).label(counts).relevance, relevant) / best
    module.MOVING_FROM = 2.0
    separately = rmse(MixtureCorrection().fit(counts).label(counts).relevance, relevant) / best
    module.MOVING_FROM = 0.1
    return {"jointly": round(jointly, 3), "position_by_position": round(separately, 3)}


if __name__ == "__main__":
    write_result("truth", "python benchmarks/truth.py", measure())
