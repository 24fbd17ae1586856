"""Logs with known truth for the tests: every query's list fixed, relevance drawn with a prior for each position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from clickmix.clicks import PositionBased
from clickmix.counts import Counts

# P(relevant) at positions 1 to 20, binarized, of a collection like MSLR-WEB30K
PRIORS = np.array(
    [
        "0.149",
        "0.091",
        "0.074",
        "0.060",
        "0.053",
        "0.050",
        "0.047",
        "0.041",
        "0.040",
        "0.037",
        "0.036",
        "0.037",
        "0.037",
        "0.036",
        "0.036",
        "0.033",
        "0.029",
        "0.031",
        "0.029",
        "0.0285",
    ],
    dtype=float,
)


@dataclass(frozen=True)
class Simulated:
    """Queries x positions: relevance, impressions and clicks; per position the two true click rates."""

    relevance: np.ndarray[Any, Any]
    impressions: np.ndarray[Any, Any]
    clicks: np.ndarray[Any, Any]
    rates: np.ndarray[Any, Any]

    @property
    def limit(self) -> np.ndarray[Any, Any]:
        """The Bayes posterior with the true parameters: nothing that must estimate them can be better."""
        p0, p1 = self.rates
        skips = self.impressions - self.clicks
        evidence = self.clicks * np.log(p1 / p0) + skips * np.log((1 - p1) / (1 - p0))
        return np.asarray(expit(logit(PRIORS[: len(p0)]) + evidence))

    def histogram(self, k: int) -> tuple[np.ndarray[Any, Any], ...]:
        """Distinct (impressions, clicks) at position k + 1, with the number of documents."""
        shown = self.impressions[:, k] > 0
        pairs = np.stack([self.impressions[shown, k], self.clicks[shown, k]], axis=1)
        distinct, documents = np.unique(pairs, axis=0, return_counts=True)
        return distinct[:, 0], distinct[:, 1], documents

    def counts(self) -> Counts:
        """As counts; document ids are queries x 100 + position."""
        queries, positions = self.relevance.shape
        q, k = (
            column.ravel() for column in np.meshgrid(np.arange(queries), np.arange(1, positions + 1), indexing="ij")
        )
        return Counts.from_arrays(q, q * 100 + k, k, self.impressions.ravel(), self.clicks.ravel())


def simulated(*, eta: float, clicks: int, seed: int, queries: int = 18_919, positions: int = 20) -> Simulated:
    """PBM clicks with the paper's trust bias."""
    rng = np.random.default_rng(seed)
    user = PositionBased.with_eta(eta, positions=positions)
    relevance = rng.random((queries, positions)) < PRIORS[:positions]
    counts = user.simulate_counts(relevance.astype(float), clicks=clicks, rng=rng)
    impressions = np.broadcast_to(counts.impressions[:, None], relevance.shape)
    return Simulated(relevance, impressions, counts.clicks, np.array([user.beta, user.alpha + user.beta]))


def spread(
    seed: int, *, documents: int = 60_000, each: int = 3
) -> tuple[Counts, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Documents with `each` impressions at each of five neighbouring positions: counts, truth, the limit's labels."""
    rng = np.random.default_rng(seed)
    user = PositionBased.with_eta(1, positions=20)
    middle = rng.integers(3, 19, documents)
    prior = 2 * PRIORS[middle - 1]
    relevant = rng.random(documents) < prior
    position = middle[:, None] + np.arange(-2, 3)
    p0, p1 = user.beta[position - 1], (user.alpha + user.beta)[position - 1]
    clicks = rng.binomial(each, np.where(relevant[:, None], p1, p0))
    limit = expit(logit(prior) + (clicks * np.log(p1 / p0) + (each - clicks) * np.log((1 - p1) / (1 - p0))).sum(axis=1))
    document = np.repeat(np.arange(documents), 5)
    counts = Counts.from_arrays(
        document // 20, document, position.ravel(), np.full(5 * documents, each), clicks.ravel()
    )
    return counts, relevant, limit


def rmse(labels: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((labels - truth) ** 2)))
