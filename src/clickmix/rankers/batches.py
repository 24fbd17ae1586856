"""Batches: checked examples in, the documents of some queries at a time out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import InputError
from clickmix.features.matrix import check_features
from clickmix.features.normalisation import Normalisation
from clickmix.features.split import checked_names


class LabelledDocuments(Protocol):
    """What a network learns from: documents, where query q has the rows offsets[q] to offsets[q + 1]."""

    @property
    def features(self) -> NDArray[np.float32]:
        """Documents × features; NaN is a missing value."""

    @property
    def relevance(self) -> NDArray[np.floating]:
        """A number in [0, 1] per document."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each query begins, and the number of documents."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name per feature, or none at all."""


@dataclass(frozen=True)
class Batch:
    """The documents of some queries, one query after the other; `sizes` says how many each has."""

    features: NDArray[np.float32]
    relevance: NDArray[np.float32]
    sizes: NDArray[np.int64]


@dataclass(frozen=True)
class Prepared:
    """Examples with normalised features, ready to be cut into batches."""

    features: NDArray[np.float32]
    relevance: NDArray[np.float32]
    offsets: NDArray[np.int64]

    def batches(self, *, queries: int, rng: np.random.Generator | None = None) -> Iterator[Batch]:
        """All queries with documents, `queries` at a time; in an order drawn from `rng`, or as they are."""
        sizes = np.diff(self.offsets)
        order = np.flatnonzero(sizes)
        if rng is not None:
            order = rng.permutation(order)
        for start in range(0, len(order), queries):
            chosen = order[start : start + queries]
            # Sorted by length, because neighbours of similar length need little padding when a batch is cut again.
            chosen = chosen[np.argsort(sizes[chosen], kind="stable")]
            rows = _rows(self.offsets[chosen], sizes[chosen])
            yield Batch(self.features[rows], self.relevance[rows], sizes[chosen])


def prepare(examples: LabelledDocuments, *, normalisation: Normalisation) -> Prepared:
    """Checked examples (`check_examples`) with their features normalised, in single precision."""
    features = normalisation.apply(np.asarray(examples.features))
    return Prepared(features, np.asarray(examples.relevance, np.float32), np.asarray(examples.offsets, np.int64))


def check_examples(examples: LabelledDocuments, *, name: str) -> None:
    """Raise on features that are not numbers, labels outside [0, 1] and parts that do not fit together."""
    documents = check_features(examples.features, name=name, gaps=True)
    relevance = np.asarray(examples.relevance)
    if relevance.shape != (documents,):
        raise InputError(
            f"{name}: {documents} documents have features, but the labels have shape {relevance.shape}. "
            "Give one label per document."
        )
    wrong = np.flatnonzero(~((relevance >= 0) & (relevance <= 1)))
    if len(wrong):
        raise InputError(
            f"{name}, row {wrong[0] + 1}: the relevance {relevance[wrong[0]]:g} is outside 0 to 1 (rows count from 1). "
            "Clip the labels, or divide grades by the largest."
        )
    offsets = np.asarray(examples.offsets)
    whole = offsets.ndim == 1 and offsets.dtype.kind in "iu" and len(offsets) > 0
    if not (whole and offsets[0] == 0 and offsets[-1] == documents and (np.diff(offsets) >= 0).all()):
        raise InputError(
            f"{name}: the offsets do not cut {documents} documents into queries. "
            f"Expected whole numbers that rise from 0 to {documents}: where each query begins, and the end."
        )
    if documents == 0:
        raise InputError(f"{name}: no documents. Expected at least one query with one document.")


def check_same_features(names: Sequence[str], vali: LabelledDocuments, *, gaps: NDArray[np.bool_]) -> None:
    """Raise unless validation examples have the features `names` of the training examples, in their order."""
    check_features(vali.features, name="vali", width=len(names), gaps=gaps)
    for i, (expected, found) in enumerate(zip(names, checked_names(vali.feature_names, len(names)), strict=True)):
        if expected != found:
            raise InputError(
                f"vali: feature {i + 1} is {found!r}, but in the training examples it is {expected!r}. "
                "Use the same features in the same order, as make_examples(..., names=examples.feature_names) does."
            )


def _rows(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """first[0], first[0] + 1, ... (sizes[0] of them), then the same for the next."""
    begin = np.cumsum(sizes) - sizes
    return np.repeat(first - begin, sizes) + np.arange(sizes.sum())
