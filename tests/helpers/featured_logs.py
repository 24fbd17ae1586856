"""Counts of a log whose documents have features that tell relevance."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

import clickmix as cm

QUERIES, TOP, LISTED = 300, 8, 10  # of the ten documents of a query, eight are shown
FEW = 4  # impressions of a document


@dataclasses.dataclass(frozen=True)
class World:
    """Users that the model describes, who saw each document a few times; two of three features tell relevance."""

    counts: cm.Counts
    relevance: np.ndarray
    features: pa.Table
    log: pa.Table

    def error(self, labels: Any) -> float:
        """The error of the labels of documents that were shown."""
        shown = labels.impressions > 0
        off = labels.relevance - self.relevance[labels.query_id, labels.doc_id]
        return float(np.sqrt(np.mean(off[shown] ** 2)))


def world(
    *,
    seed: int = 0,
    queries: int = QUERIES,
    grades: int = 2,
    moving: bool = False,
    context: bool = False,
    answers: float = 0.0,
) -> World:
    """Such a world; a share of relevant documents `answers` on the page, and is clicked like others."""
    rng = np.random.default_rng(seed)
    query, document = np.indices((queries, LISTED)).reshape(2, -1)
    told = rng.normal(size=(3, len(query)))
    score = 1.5 * told[0] * np.sign(told[1]) - 1.2 + 0.4 * rng.normal(size=len(query))
    relevance = np.clip(np.floor(grades * (1 / (1 + np.exp(-3 * score)))), 0, grades - 1) / (grades - 1)
    clicked = relevance * (rng.random(len(query)) >= answers) if answers else relevance
    shown = np.flatnonzero(document < TOP)
    cells = []
    for step in range(2 if moving else 1):
        for device in range(2 if context else 1):
            n = 1 + rng.poisson(FEW, len(shown))
            position = 1 + (document[shown] + step) % TOP
            rate = (0.08 + 0.5 * clicked[shown]) / np.sqrt(position) * (0.8 if device else 1)
            cells.append(
                (query[shown], document[shown], position, n, rng.binomial(n, rate), np.full(len(shown), device))
            )
    columns = [np.concatenate(parts) for parts in zip(*cells, strict=True)]
    names = ("query_id", "doc_id", "position", "impressions", "clicks", "device")
    log = pa.table(dict(zip(names, [*columns[:5], np.where(columns[5], "phone", "desk")], strict=True)))
    features = pa.table({"query_id": query, "doc_id": document, "size": told[0], "sign": told[1], "noise": told[2]})
    counts = cm.count(log, context=("device",) if context else ())
    return World(counts, relevance.reshape(queries, LISTED), features, log)
