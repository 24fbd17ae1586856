"""Fitting all positions of an 8M-click log (18,919 queries, top 20), against scikit-learn on the same rates."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from clickmix.corrections import MixtureCorrection
from measuring import write_result
from simulation import simulated


def measure(*, clicks: int = 8_000_000) -> dict[str, Any]:
    """Seconds, and how many times faster than scikit-learn."""
    from sklearn.mixture import GaussianMixture

    figures: dict[str, Any] = {"clicks": clicks}
    for eta in (1, 2):
        log = simulated(eta=eta, clicks=clicks, seed=0)
        counts = log.counts()
        rates = log.clicks / np.maximum(log.impressions, 1)
        start = time.perf_counter()
        for k in range(rates.shape[1]):
            GaussianMixture(2, random_state=0).fit(rates[:, k : k + 1])
        theirs = time.perf_counter() - start
        for mixture in ("binomial", "gaussian"):
            seconds = min(_seconds(mixture, counts) for _ in range(3))
            figures[f"eta_{eta}_{mixture}_seconds"] = round(seconds, 3)
            figures[f"eta_{eta}_{mixture}_times_faster_than_scikit_learn"] = round(theirs / seconds, 1)
    return figures


def _seconds(mixture: str, counts: Any) -> float:
    start = time.perf_counter()
    MixtureCorrection(mixture).fit(counts)
    return time.perf_counter() - start


if __name__ == "__main__":
    write_result("fitting", "python benchmarks/fitting.py", measure())
