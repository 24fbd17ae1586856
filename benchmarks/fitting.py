"""Fitting all positions of an 8M-click log (18,919 queries, top 20), against scikit-learn on the same rates.

Two components, the paper's mixture position by position, are what scikit-learn fits, too. The corrections do more: they
read the log, compare models by held-out clicks, and let neighbours share strength. How that
grows with the number of groups: pages ten and fifty times as long, and twenty contexts of twenty positions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from clickmix import Counts
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.groups.observations import Observations
from clickmix.mixtures.single import fit_group
from measuring import least_seconds, write_result
from simulation import simulated


def measure(*, clicks: int = 8_000_000) -> dict[str, Any]:
    """Seconds, and how many times faster than scikit-learn."""
    figures: dict[str, Any] = {"clicks": clicks}
    for eta in (1, 2):
        log = simulated(eta=eta, clicks=clicks, seed=0)
        counts = log.counts()
        rates = log.clicks / np.maximum(log.impressions, 1)
        theirs = least_seconds(partial(_scikit_learn, rates))
        groups = [Observations.histogram(*log.histogram(k)) for k in range(20)]
        alone = least_seconds(partial(_two_components, groups))
        figures[f"eta_{eta}_two_components_seconds"] = round(alone, 3)
        figures[f"eta_{eta}_two_components_times_faster_than_scikit_learn"] = round(theirs / alone, 1)
        for mixture in ("binomial", "gaussian", "auto"):
            seconds = least_seconds(partial(MixtureCorrection(mixture).fit, counts))
            figures[f"eta_{eta}_{mixture}_seconds"] = round(seconds, 3)
            figures[f"eta_{eta}_{mixture}_times_faster_than_scikit_learn"] = round(theirs / seconds, 1)
    for positions, contexts in ((20, 1), (200, 1), (1000, 1), (20, 20)):
        seconds = least_seconds(partial(MixtureCorrection().fit, _page(positions, contexts)))
        figures[f"auto_seconds_of_{contexts}_contexts_of_{positions}_positions"] = round(seconds, 3)
    return figures


def _page(positions: int, contexts: int, *, queries: int = 2_000) -> Counts:
    """A document in ten is relevant; the queries are shared out among the contexts."""
    rng = np.random.default_rng(0)
    query, position = np.repeat(np.arange(queries), positions), np.tile(np.arange(1, positions + 1), queries)
    impressions = 1 + rng.poisson(20, len(query))
    rates = np.where(rng.random(len(query)) < 0.1, 0.9, 0.27) / np.sqrt(position)
    clicks = rng.binomial(impressions, rates)
    return Counts.from_arrays(
        query, query * positions + position, position, impressions, clicks, device=(query % contexts).astype(str)
    )


def _two_components(groups: list[Observations]) -> None:
    for group in groups:
        fit_group(group, "binomial", grades=2)


def _scikit_learn(rates: np.ndarray[Any, Any]) -> None:
    from sklearn.mixture import GaussianMixture

    for k in range(rates.shape[1]):
        GaussianMixture(2, random_state=0).fit(rates[:, k : k + 1])


if __name__ == "__main__":
    write_result("fitting", "python benchmarks/fitting.py", measure())
