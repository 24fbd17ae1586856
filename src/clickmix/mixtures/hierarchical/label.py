"""Labels: what clicks say of each document's relevance, and of its next click.   Model, Cells -> Labels

P(grade g | all clicks of the query) = sum over nodes (u, v) of P(node | query) P(g | pattern, node)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.climb import expected
from clickmix.mixtures.hierarchical.problem import Expected, Model, Problem
from clickmix.types import Floats, Ints

SURE = 0.95  # how often the interval of a label holds the document's grade


@dataclass(frozen=True)
class Labels:
    """Per entry of the cells: mean relevance, and the interval that holds it with a probability of 95 %."""

    relevance: Floats
    low: Floats
    high: Floats


def label(model: Model, cells: Cells) -> Labels:
    """The labels of every (query, pattern)."""
    return labels_of(np.asarray(sum(weight * post for weight, post in looks(*expected(model, cells)))))


def labels_of(grades: Floats) -> Labels:
    """Labels from the probability of each grade, grade x document."""
    x = np.linspace(0, 1, len(grades))
    relevance = np.clip(x @ grades, 0, 1)  # weights of many nodes can add up to a hair above 1
    below = np.cumsum(grades, axis=0)
    low, high = (x[np.minimum((below <= share).sum(axis=0), len(x) - 1)] for share in ((1 - SURE) / 2, (1 + SURE) / 2))
    return Labels(relevance, np.minimum(low, relevance), np.maximum(high, relevance))


def predict(model: Model, cells: Cells, entry: Ints, place: Ints, impressions: Floats, clicks: Floats) -> Floats:
    """P(click) at the next impression of documents, by entry and place, given the cell's own impressions and clicks."""
    problem, seen = expected(model, cells)
    rates, scatter = problem.scattered_rates(model.vector)
    total = np.zeros(len(entry))
    of_query = cells.query[entry] if len(problem.nodes.at) > 1 else np.zeros(len(entry), dtype=np.int64)
    points = problem.nodes.at.shape[1]
    for i, (weight, post) in enumerate(looks(problem, seen)):
        node = problem.nodes.at[of_query, i % points]
        rate = rates[:, place, node]
        rate = problem.family.next_rate(rate, scatter, clicks, impressions)
        total += weight[entry] * (post[:, entry] * rate).sum(axis=0)
    return total


def looks(problem: Problem, seen: Expected) -> list[tuple[Floats, Floats]]:
    """Per node: its weight for each entry's query, and grade x entry their probabilities there."""
    query = problem.cells.query if len(problem.nodes.at) > 1 else np.zeros(len(problem.cells.query), dtype=np.int64)
    return [
        (seen.weight[query, point, v], seen.posterior[:, problem.nodes.of_entry[:, point], v])
        for v in range(len(problem.nodes.v))
        for point in range(problem.nodes.at.shape[1])
    ]
