"""Small splits and labels for the tests of rankers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clickmix.features import Examples, LeftOut, Split

Columns = tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.float64]]


def split(*, sizes: list[int], width: int = 3, seed: int = 0, text: bool = False) -> Split:
    """Random features and grades 0 to 4; queries and documents numbered from 1, as numbers or as text."""
    rng = np.random.default_rng(seed)
    documents = sum(sizes)
    query_id, doc_id = np.arange(1, len(sizes) + 1), np.arange(1, documents + 1)
    if text:
        query_id, doc_id = query_id.astype(np.str_), doc_id.astype(np.str_)
    grade = rng.integers(0, 5, size=documents).astype(np.int8)
    features = rng.standard_normal((documents, width)).astype(np.float32)
    features[:, 0] += grade  # something to learn
    return Split(query_id, np.concatenate(([0], np.cumsum(sizes))), doc_id, grade, features)


def all_labels(given: Split) -> Columns:
    """A label between 0 and 1 for every document: its grade and a little noise."""
    noise = np.random.default_rng(1).random(given.documents)
    return given.query_id[given.query], np.asarray(given.doc_id), (given.grade + noise) / 5


def examples(given: Split, relevance: NDArray[np.float64]) -> Examples:
    """All documents of the split with these labels."""
    return Examples(given.query_id, given.offsets, given.features, relevance, LeftOut())
