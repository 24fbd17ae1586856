"""Labels against known truth: RMSE of every correction beside the limit, for the paper's users; documents that move.

18,919 queries, top 20; the shares of grades at each position are like MSLR-WEB30K's; position-based users with trust
bias. The limit is the Bayes posterior with the true parameters. `way` is how far a correction comes from answering the
prior to the limit.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import numpy as np

from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.none import NoCorrection
from measuring import write_result
from simulation import Simulated, rmse, simulated, spread

SEEDS = range(2000, 2005)  # which nothing was chosen on
SETTINGS = [
    (clicks, eta, relevance)
    for clicks in (200_000, 2_000_000, 8_000_000)
    for eta in (1, 2)
    for relevance in ("binarized", "graded")
]
CORRECTIONS = {
    "click-through rate": NoCorrection(),
    "gaussian": MixtureCorrection("gaussian"),
    "binomial": MixtureCorrection("binomial"),
    "binomial, not sharing": MixtureCorrection("binomial", sharing=False),
    "nonparametric": MixtureCorrection("nonparametric"),
    "auto": MixtureCorrection("auto"),
}


def labels_of(correction: Any, log: Simulated) -> tuple[np.ndarray[Any, Any], int]:
    """Labels in the shape of the log, and the number of grades; a document never shown has its prior, for everyone."""
    counts = log.counts()
    fit = correction.fit(counts)
    labels = fit.label(counts)
    out = log.prior_only.copy()
    out[labels.query_id, labels.doc_id % 100 - 1] = labels.relevance
    return out, getattr(fit, "grades", 0)


def affine_labels(log: Simulated) -> np.ndarray[Any, Any]:
    """(rate - beta) / alpha with the true parameters, clipped to 0..1."""
    low, high = log.rates
    return np.asarray(np.clip((log.clicks / np.maximum(log.impressions, 1) - low) / (high - low), 0, 1))


def measure() -> dict[str, Any]:
    """Medians over five seeds."""
    jobs = [(*setting, seed) for setting in SETTINGS for seed in SEEDS]
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        found = pool.map(errors_of, jobs, chunksize=1)
    rows = [_row(setting, found[i * len(SEEDS) : (i + 1) * len(SEEDS)]) for i, setting in enumerate(SETTINGS)]
    return {"seeds": len(SEEDS), "rmse": rows, "documents_that_move": _moving()}


def errors_of(job: tuple[int, int, str, int]) -> tuple[dict[str, float], int]:
    """RMSE of every correction on one simulated log, and how many grades auto chose."""
    clicks, eta, relevance, seed = job
    log = simulated(eta=eta, clicks=clicks, seed=seed, relevance=relevance)
    errors = {
        "affine, true parameters": rmse(affine_labels(log), log.relevance),
        "limit": rmse(log.limit, log.relevance),
        "prior only": rmse(log.prior_only, log.relevance),
    }
    chosen = 0
    for name, correction in CORRECTIONS.items():
        labels, grades = labels_of(correction, log)
        errors[name] = rmse(labels, log.relevance)
        chosen = grades if name == "auto" else chosen
    errors["auto / limit"] = errors["auto"] / errors["limit"]
    errors["way of auto"] = (errors["prior only"] - errors["auto"]) / (errors["prior only"] - errors["limit"])
    return errors, chosen


def _row(setting: tuple[int, int, str], found: list[tuple[dict[str, float], int]]) -> dict[str, Any]:
    clicks, eta, relevance = setting
    medians = {name: round(float(np.median([errors[name] for errors, _ in found])), 4) for name in found[0][0]}
    return {
        "clicks": clicks,
        "eta": eta,
        "relevance": relevance,
        **medians,
        "grades chosen": [chosen for _, chosen in found],
    }


def _moving() -> dict[str, float]:
    """60,000 documents, 3 impressions at each of 5 neighbouring positions: RMSE over that of the limit."""
    counts, relevant, limit = spread(0)
    best = rmse(limit, relevant)
    jointly = rmse(MixtureCorrection().fit(counts).label(counts).relevance, relevant) / best
    separately = rmse(MixtureCorrection(sharing=False).fit(counts).label(counts).relevance, relevant) / best
    return {"jointly": round(jointly, 3), "position_by_position": round(separately, 3)}


if __name__ == "__main__":
    write_result("truth", "python benchmarks/truth.py", measure())
