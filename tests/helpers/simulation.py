"""Logs with known truth for the tests: every query's list fixed, relevance drawn with a prior for each position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from clickmix.counts.counts import Counts
from clickmix.lab.users import PositionBased

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


def grade_weights(relevance: str) -> np.ndarray[Any, Any]:
    """Grade x position: the share of documents of each grade, of a collection like MSLR-WEB30K."""
    if relevance == "binarized":
        return np.stack([1 - PRIORS, PRIORS])
    weights = np.array([0.52, 0.32, 0.12, 0.02, 0.02])[:, None] * np.exp(6 * np.arange(5)[:, None] * (PRIORS - 0.03))
    return np.asarray(weights / weights.sum(axis=0))


@dataclass(frozen=True)
class Simulated:
    """Queries x positions: relevance, impressions and clicks; end x position the lowest and highest true click rate."""

    relevance: np.ndarray[Any, Any]
    impressions: np.ndarray[Any, Any]
    clicks: np.ndarray[Any, Any]
    rates: np.ndarray[Any, Any]
    weights: np.ndarray[Any, Any]

    @property
    def limit(self) -> np.ndarray[Any, Any]:
        """The Bayes posterior with the true parameters: nothing that must estimate them can be better."""
        x = np.linspace(0, 1, len(self.weights))
        p = (1 - x[:, None]) * self.rates[0] + x[:, None] * self.rates[1]
        skips = self.impressions - self.clicks
        logs = [
            np.log(w) + self.clicks * np.log(rate) + skips * np.log1p(-rate)
            for w, rate in zip(self.weights, p, strict=True)
        ]
        return np.asarray(np.tensordot(x, softmax(logs, axis=0), 1))

    @property
    def prior_only(self) -> np.ndarray[Any, Any]:
        """The mean relevance at each position, which needs no clicks at all."""
        mean = np.linspace(0, 1, len(self.weights)) @ self.weights
        return np.broadcast_to(mean, self.relevance.shape)

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


def simulated(
    *,
    eta: float,
    clicks: int,
    seed: int,
    queries: int = 18_919,
    positions: int = 20,
    relevance: str = "binarized",
) -> Simulated:
    """PBM clicks with the paper's trust bias."""
    rng = np.random.default_rng(seed)
    user = PositionBased.with_eta(eta, positions=positions)
    weights = grade_weights(relevance)[:, :positions]
    drawn = rng.random((queries, positions))
    grade = sum((drawn < share).astype(np.int64) for share in np.cumsum(weights[::-1], axis=0)[:-1])
    truth = grade / (len(weights) - 1)
    counts = user.simulate_counts(truth, clicks=clicks, rng=rng)
    impressions = np.broadcast_to(counts.impressions[:, None], truth.shape)
    ends = np.array([user.beta, user.alpha + user.beta])
    return Simulated(truth, impressions, counts.clicks, ends, weights)


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
