"""How many impressions labels need: the paper's n = Omega(...) and "n >= 15" made concrete, position by position.

The paper's users with binarized relevance; errors are expected values, summed exactly. Then, for its 18,919 queries and
for 300, how far the predicted error of labels is from the measured one; and where it fails: many relevant documents,
few impressions, severe bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import clickmix as cm
from clickmix.lab.users import PositionBased
from measuring import write_result
from simulation import PRIORS, rmse, simulated

POSITIONS = (1, 2, 5, 10, 20)
PAPERS = 15  # the paper: "we find n >= 15 to be a suitable value"
TARGETS = (0.1, 0.05)
LOGS = ((18_919, 200_000), (18_919, 2_000_000), (300, 3_000), (300, 30_000))  # queries and clicks
SEEDS = (0, 1, 2)


def needs(eta: float, position: int) -> dict[str, Any]:
    """One position: its rates, the paper's quantity, error and separation with 15 impressions, and what it needs."""
    user, k = PositionBased.with_eta(eta, positions=20), position - 1
    low, high, share = float(user.beta[k]), float(user.beta[k] + user.alpha[k]), float(PRIORS[k])
    mixture = cm.Mixture("binomial", cm.Verdict.OVERLAPPING, (1 - share, share), (low, high))
    omega = max(low * (1 - low), high * (1 - high)) / (high - low) ** 2
    error = cm.expected_error(mixture, PAPERS)
    needed = {str(target): cm.impressions_for(mixture, target=target) for target in TARGETS}
    return {
        "eta": eta,
        "position": position,
        "rates": [round(low, 6), round(high, 6)],
        "relevant": share,
        "omega": round(omega, 2),
        "error_of_15": round(error, 4),
        "separation_of_15": round(1 - error**2 / (share * (1 - share)), 3),
        "impressions_needed": needed,
        "constant": round((needed["0.1"] or np.nan) / omega, 1),
    }


def predicted(eta: float, queries: int, clicks: int) -> dict[str, Any]:
    """Predicted and measured error of the labels of logs with so many queries and clicks, one per seed."""
    rows = []
    for seed in SEEDS:
        log = simulated(eta=eta, clicks=clicks, seed=seed, queries=queries)
        counts = log.counts()
        fitted = cm.MixtureCorrection().fit(counts)
        labels = fitted.label(counts)
        truth = log.relevance[labels.query_id, labels.doc_id % 100 - 1]
        rows.append([round(fitted.error, 4), round(rmse(labels.relevance, truth), 4)])
    return {"eta": eta, "queries": queries, "clicks": clicks, "predicted_and_measured": rows}


def hopeless(*, queries: int = 300, positions: int = 10, impressions: int = 5) -> list[list[float]]:
    """Predicted, measured, and the error of the prior alone where rates cannot be known from so few clicks."""
    user, prior, rows = PositionBased.with_eta(2.0, positions=positions), np.linspace(0.4, 0.1, positions), []
    place = np.tile(np.arange(positions), queries)
    document = np.arange(len(place))
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        truth = rng.random(len(place)) < prior[place]
        clicks = rng.binomial(impressions, user.beta[place] + user.alpha[place] * truth)
        shown = np.full(len(place), impressions)
        counts = cm.Counts.from_arrays(document // positions, document, place + 1, shown, clicks)
        fitted = cm.MixtureCorrection().fit(counts)
        errors = fitted.error, rmse(fitted.label(counts).relevance, truth), rmse(prior[place], truth)
        rows.append([round(error, 4) for error in errors])
    return rows


def measure() -> dict[str, Any]:
    """A row per position and eta; predicted errors by eta and clicks."""
    return {
        "rows": [needs(eta, position) for eta in (1.0, 2.0) for position in POSITIONS],
        "predicted": [predicted(eta, *log) for log in LOGS for eta in (1.0, 2.0)],
        "hopeless": hopeless(),
    }


if __name__ == "__main__":
    write_result("sure", "python benchmarks/sure.py", measure())
