"""Slow and obvious versions of what datasets/ does at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clickmix.datasets.collection import Split


def letor_rows(text: str) -> list[tuple[int, int, dict[int, float]]]:
    """Grade, query and features of each line."""
    rows = []
    for line in text.split("\n"):
        words = line.partition("#")[0].split()
        if words:
            pairs = [word.split(":") for word in words[2:]]
            features = {int(feature): float(value) for feature, value in pairs}
            rows.append((int(words[0]), int(words[1].removeprefix("qid:")), features))
    return rows


def dense(rows: list[tuple[int, int, dict[int, float]]]) -> NDArray[np.float32]:
    width = max((max(features, default=0) for _, _, features in rows), default=0)
    return np.array([[features.get(i + 1, 0.0) for i in range(width)] for _, _, features in rows], np.float32)


def ndcg_at_10(split: Split, scores: NDArray[np.floating]) -> float:
    """Mean over the queries with a relevant document; gain 2^grade - 1; equal scores in the order of the rows."""
    values = []
    for begin, end in zip(split.offsets[:-1], split.offsets[1:], strict=True):
        grades = split.grade[begin:end].astype(float)
        order = np.argsort(-scores[begin:end], kind="stable")
        ideal = np.sort(grades)[::-1]
        if ideal[0] > 0:
            values.append(_dcg(grades[order][:10]) / _dcg(ideal[:10]))
    return float(np.mean(values))


def _dcg(grades: NDArray[np.float64]) -> float:
    return float(np.sum((2.0**grades - 1) / np.log2(np.arange(2, len(grades) + 2))))
