"""How many impressions labels need: the paper's n = Omega(...) and "n >= 15" made concrete, position by position.

The paper's users with binarized relevance. Nothing is simulated: errors are expected values, summed exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import clickmix as cm
from clickmix.clicks import PositionBased
from measuring import write_result
from simulation import PRIORS

POSITIONS = (1, 2, 5, 10, 20)
PAPERS = 15  # the paper: "we find n >= 15 to be a suitable value"
TARGETS = (0.1, 0.05)


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


def measure() -> dict[str, Any]:
    """A row per position and eta."""
    return {"rows": [needs(eta, position) for eta in (1.0, 2.0) for position in POSITIONS]}


if __name__ == "__main__":
    write_result("sure", "python benchmarks/sure.py", measure())
