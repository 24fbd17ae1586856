"""Slow and obvious: the measures of one list in a given order, and their mean over every order the scores allow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import fmean

from clickmix.evaluate import Measure


def measure_of_order(measure: Measure, grades: Sequence[float]) -> float:
    """The measure of documents that stand in this order, by its definition; 0 without relevant documents."""
    top = len(grades) if measure.cutoff is None else measure.cutoff
    relevant = [grade >= measure.grade for grade in grades]
    if measure.name == "dcg":
        return _dcg(measure, grades[:top])
    if measure.name == "ndcg":
        ideal = _dcg(measure, sorted(grades, reverse=True)[:top])
        return _dcg(measure, grades[:top]) / ideal if ideal else 0.0
    if measure.name == "precision":
        return sum(relevant[:top]) / top
    if not any(relevant):
        return 0.0
    if measure.name == "recall":
        return sum(relevant[:top]) / sum(relevant)
    if measure.name == "mrr":
        position = relevant.index(True) + 1
        return 1 / position if position <= top else 0.0
    found = [sum(relevant[:p]) / p for p in range(1, len(relevant) + 1) if relevant[p - 1] and p <= top]
    return sum(found) / sum(relevant)


def mean_over_orders(measure: Measure, scores: Sequence[float], grades: Sequence[float]) -> float:
    """The mean of the measure over all orders of the documents in which no score stands below a lower one."""
    orders = [
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    return fmean(measure_of_order(measure, [grades[document] for document in order]) for order in orders)


def _dcg(measure: Measure, grades: Sequence[float]) -> float:
    gains = [2**grade - 1 if measure.gain == "exponential" else grade for grade in grades]
    return sum(gain / math.log2(1 + position) for position, gain in enumerate(gains, start=1))
