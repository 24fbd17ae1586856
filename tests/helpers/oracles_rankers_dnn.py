"""Slow and obvious versions of what the DNN ranker computes: one query, one document, one pair at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


def sigmoid_cross_entropy(scores: Floats, relevance: Floats) -> tuple[float, float]:
    total = 0.0
    for s, y in zip(scores, relevance, strict=True):
        probability = 1 / (1 + math.exp(-s))
        total -= y * math.log(probability) + (1 - y) * math.log(1 - probability)
    return total, float(sum(relevance))


def softmax_cross_entropy(scores: Floats, relevance: Floats) -> tuple[float, float]:
    everything = sum(math.exp(s) for s in scores)
    total = -sum(y * math.log(math.exp(s) / everything) for s, y in zip(scores, relevance, strict=True))
    return float(total), float(sum(relevance))


def lambda_loss(scores: Floats, relevance: Floats) -> tuple[float, float]:
    """NDCG-Loss2++ as published, times the ideal DCG, and the ideal DCG."""
    n = len(scores)
    gain = [2 ** (4 * y) - 1 for y in relevance]
    ideal = sum(g / math.log2(1 + p) for p, g in enumerate(sorted(gain, reverse=True), start=1))
    position = {i: p for p, i in enumerate(sorted(range(n), key=lambda i: -scores[i]), start=1)}
    total = 0.0
    for i in range(n):
        for j in range(n):
            if relevance[i] > relevance[j]:
                rho = abs(1 / math.log2(1 + position[i]) - 1 / math.log2(1 + position[j]))
                apart = abs(position[i] - position[j])
                delta = abs(1 / math.log2(1 + apart) - 1 / math.log2(2 + apart))
                cost = math.log2(1 + math.exp(-(scores[i] - scores[j])))
                total += (rho + 10 * delta) * (gain[i] - gain[j]) / ideal * cost
    return total * ideal, float(ideal)


LOSSES: dict[str, Callable[[Floats, Floats], tuple[float, float]]] = {
    "sigmoid": sigmoid_cross_entropy,
    "softmax": softmax_cross_entropy,
    "lambda": lambda_loss,
}


def scores(features: Floats, weights: tuple[Floats, ...]) -> Floats:
    """The network without dropout, in double precision."""
    h = features.astype(np.float64)
    for i in range(0, len(weights) - 2, 2):
        a = h @ weights[i] + weights[i + 1]
        h = np.where(a > 0, a, np.exp(np.minimum(a, 0)) - 1)
    return np.asarray((h @ weights[-2] + weights[-1])[:, 0])
