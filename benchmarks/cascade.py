"""Cascade clicks: labels with groups by what stands above, beside groups by position and AC under PBM.

The paper's DCM and UBM users, lists of ten, binarized and graded relevance with the shares of MSLR-WEB30K; as many
clicks per query as in the paper (8M for 18,919). Five runs each; means with 95 % intervals, differences paired. And in
how many of 100 logs of 4,000 sessions clicks are found to depend on each other.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

import clickmix as cm
from clickmix.judging.dependence import click_dependence
from measuring import write_result  # which makes the logs of the tests importable

# isort: split
from cascades import POSITIONS, Cascade, cascade, shares, simulated_sessions
from simulation import rmse

SEEDS = range(5)
LOGS = 100
QUERIES = 4_000
CLICKS = 8_000_000 * QUERIES // 18_919
MATCHING, BY_POSITION, AFFINE = "mixture, by what stands above", "mixture, by position", "AC under PBM, told"
TOLD = "mixture told how many grades, by position"

Floats = np.ndarray[Any, Any]


def measure() -> dict[str, Any]:
    """RMSE of labels for each user and kind of relevance."""
    settings = [(user, kind) for kind in ("binarized", "graded") for user in ("dcm", "ubm")]
    users = ("pbm-eta1", "pbm-eta2", "dcm", "ubm")
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        found = pool.map(errors_of, [(*setting, seed) for setting in settings for seed in SEEDS], chunksize=1)
        depend = pool.map(depends, [(user, seed) for user in users for seed in range(LOGS)], chunksize=5)
    return {
        "queries": QUERIES,
        "clicks": CLICKS,
        "runs": len(SEEDS),
        "rmse": [_row(*setting, found[i * len(SEEDS) : (i + 1) * len(SEEDS)]) for i, setting in enumerate(settings)],
        f"clicks found to depend on each other, of {LOGS}": {
            user: sum(depend[i * LOGS : (i + 1) * LOGS]) for i, user in enumerate(users)
        },
    }


def depends(job: tuple[str, int]) -> bool:
    """Whether the clicks of a small simulated log are found to depend on each other."""
    user, seed = job
    return click_dependence(simulated_sessions(user, seed=seed)).found


def _row(user: str, kind: str, runs: list[Mapping[str, float]]) -> dict[str, Any]:
    errors = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    return {
        "user": user,
        "relevance": kind,
        **{name: _interval(values) for name, values in errors.items()},
        "better than by position": _interval(errors[BY_POSITION] - errors[MATCHING]),
        "better than by position, told": _interval(errors[TOLD] - errors[MATCHING]),
        "better than AC": _interval(errors[AFFINE] - errors[MATCHING]),
    }


def errors_of(job: tuple[str, str, int]) -> Mapping[str, float]:
    """RMSE of each kind of labels on one simulated log."""
    user, kind, seed = job
    log = cascade(user, queries=QUERIES, clicks=CLICKS, seed=seed, kind=kind)
    counts = log.counts()
    return {
        "click-through rate": log.rmse(cm.debias(counts, correction="none")),
        AFFINE: rmse(_affine(log), log.relevance),
        BY_POSITION: log.rmse(cm.debias(counts)),
        TOLD: log.rmse(cm.MixtureCorrection("graded", grades=len(_grades(kind))).fit(counts).label(counts)),
        MATCHING: log.rmse(cm.debias(counts, examination=user)),
        "limit, all above known": rmse(_limit(log, kind), log.relevance),
        "prior only": rmse(np.broadcast_to(shares(kind) @ _grades(kind), log.relevance.shape), log.relevance),
    }


def _grades(kind: str) -> Floats:
    grades = shares(kind).shape[1]
    return np.asarray(np.arange(grades) / (grades - 1))


def _affine(log: Cascade) -> Floats:
    """AC told the best line there is under PBM: true click probabilities on true relevance, position by position."""
    probabilities = log.user.click_probabilities(log.relevance)
    labels = np.empty_like(log.relevance)
    for k in range(POSITIONS):
        alpha, beta = np.polyfit(log.relevance[:, k], probabilities[:, k], 1)
        labels[:, k] = np.clip((log.clicks[:, k] / log.impressions - beta) / alpha, 0, 1)
    return labels


def _limit(log: Cascade, kind: str) -> Floats:
    """Bayes posterior from a document's own clicks with the true user and the true relevance of all above it."""
    labels, grades = np.empty_like(log.relevance), _grades(kind)
    for k in range(POSITIONS):
        rates = np.stack([_rate_if(log, k, grade) for grade in grades], axis=1)
        skips = log.impressions - log.clicks[:, k]
        log_odds = np.log(shares(kind)[k]) + log.clicks[:, k, None] * np.log(rates) + skips[:, None] * np.log1p(-rates)
        posterior = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
        labels[:, k] = posterior @ grades / posterior.sum(axis=1)
    return labels


def _rate_if(log: Cascade, k: int, grade: float) -> Floats:
    changed = log.relevance.copy()
    changed[:, k] = grade
    return np.asarray(log.user.click_probabilities(changed)[:, k])


def _interval(values: Floats) -> list[float]:
    """Mean and half of the 95 % interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return [round(float(values.mean()), 4), round(float(half), 4)]


if __name__ == "__main__":
    write_result("cascade", "python benchmarks/cascade.py", measure())
