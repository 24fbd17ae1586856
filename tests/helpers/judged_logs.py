"""Counts of a log with position bias, and grades that its clicks mean, or do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickmix.counts.counts import Counts

Columns = dict[str, Any]


def judged_log(*, queries: int = 300, documents: int = 10, sessions: int = 60, seed: int = 0) -> tuple[Counts, Columns]:
    """Documents at two neighbouring positions each, clicked by relevance and position; the grade follows relevance.

    Production knows nothing of relevance, so labels can only be better.
    """
    rng = np.random.default_rng(seed)
    query, doc = (axis.ravel() for axis in np.meshgrid(np.arange(queries), np.arange(documents), indexing="ij"))
    relevance = rng.choice([0.1, 0.4, 0.9], len(query), p=[0.6, 0.25, 0.15])
    position = doc + 1
    cells = []
    for at in (position, np.where(position < documents, position + 1, position - 1)):
        shown = 1 + rng.poisson(sessions / 2, len(query))
        cells.append((query, doc, at, shown, rng.binomial(shown, relevance * 0.8 / at**0.7)))
    columns = [np.concatenate(parts) for parts in zip(*cells, strict=True)]
    judgments = {"query_id": query, "doc_id": doc, "grade": np.rint(4 * relevance)}
    return Counts.from_arrays(*columns), judgments


def exposed_log(*, queries: int = 100, documents: int = 8, seed: int = 0) -> tuple[Counts, Columns]:
    """Clicks that have nothing to do with relevance, and an engine that shows relevant documents more often."""
    rng = np.random.default_rng(seed)
    query, doc = (axis.ravel() for axis in np.meshgrid(np.arange(queries), np.arange(documents), indexing="ij"))
    relevant = rng.random(len(query)) < 0.4
    shown = np.where(rng.random(len(query)) < np.where(relevant, 0.9, 0.1), 60, 20)
    clicks = rng.binomial(shown, rng.choice([0.1, 0.5], len(query)))
    grades = {"query_id": query, "doc_id": doc, "grade": relevant.astype(float)}
    return Counts.from_arrays(query, doc, doc + 1, shown, clicks), grades


def shuffled(judgments: Columns, *, seed: int = 1) -> Columns:
    """The same documents with grades that have nothing to do with them."""
    return judgments | {"grade": np.random.default_rng(seed).permutation(judgments["grade"])}


def first_queries(judgments: Columns, queries: int) -> Columns:
    """The judgments of a few queries."""
    return {key: values[judgments["query_id"] < queries] for key, values in judgments.items()}
