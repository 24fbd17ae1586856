"""Training examples: a features split and labels, joined by query and document.   labels -> examples -> ranker

Documents and queries that cannot teach an order are left out and counted: documents without a label, queries with fewer
than two labelled documents, and queries whose labels are all equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import InputError, several
from clickmix.features.ids import Ids, comparable, id_kind
from clickmix.features.label_columns import LabelColumns, read_labels
from clickmix.features.matrix import check_features
from clickmix.features.split import GroupedByQuery, Split, checked_names
from clickmix.features.tables import open_features
from clickmix.types import Floats, Ints

EXAMPLES_SHOWN = 2  # examples from each side, if a join fails


@dataclass(frozen=True)
class LeftOut:
    """What is not among the examples: labels whose document has no features, and documents and queries by the rule.

    If most labels match no document, the join may have failed, and `unmatched` shows ids of both sides.

    >>> LeftOut(documents_without_label=3).documents_without_label
    3
    """

    labels_without_document: int = 0
    documents_without_label: int = 0
    queries_without_label: int = 0
    queries_with_one_label: int = 0
    queries_with_equal_labels: int = 0
    unmatched: str = ""

    @property
    def queries(self) -> int:
        """How many queries in all."""
        return self.queries_without_label + self.queries_with_one_label + self.queries_with_equal_labels

    def __str__(self) -> str:
        """What was left out, in a sentence; and examples of ids if they may not match."""
        counts = {
            "without a label": (self.documents_without_label, "document", "documents"),
            "without any label": (self.queries_without_label, "query", "queries"),
            "with one labelled document": (self.queries_with_one_label, "query", "queries"),
            "whose labels are all equal": (self.queries_with_equal_labels, "query", "queries"),
            "whose document has no features": (self.labels_without_document, "label", "labels"),
        }
        parts = [f"{several(*counted)} {which}" for which, counted in counts.items() if counted[0]]
        summary = f"Left out: {', '.join(parts)}." if parts else "Nothing was left out."
        return f"{summary} {self.unmatched}" if self.unmatched else summary


@dataclass(frozen=True, eq=False)
class Examples(GroupedByQuery):
    """Labelled documents, query by query: query i has the rows offsets[i] to offsets[i + 1].

    Every query has two documents or more, and labels that differ. A feature that is NaN is missing.

    >>> from clickmix.features import make_examples
    >>> features = (["q", "q", "q"], ["a", "b", "c"], [[0.1], [0.9], [0.5]])
    >>> examples = make_examples(features, (["q", "q"], ["a", "b"], [0.0, 1.0]))
    >>> examples.relevance.tolist(), examples.left_out.documents_without_label
    ([0.0, 1.0], 1)
    """

    query_id: Ids
    offsets: Ints
    features: NDArray[np.float32]
    relevance: Floats
    left_out: LeftOut
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature_names", checked_names(self.feature_names, self.features.shape[1]))
        for array in (self.query_id, self.offsets, self.features, self.relevance):
            array.setflags(write=False)


def make_examples(features: Any, labels: Any, *, names: Sequence[str] = ()) -> Examples:
    """Join features in any layout that `open_features` reads with labels in any that `read_labels` reads.

    `names` are the features to use, in this order, for instance those of the training examples.

    >>> features = (["q", "q"], ["a", "b"], [[0.1], [0.9]])
    >>> make_examples(features, (["q", "q"], ["a", "b"], [0.0, 1.0])).relevance.tolist()
    [0.0, 1.0]
    """
    split, columns = open_features(features, names=names), read_labels(labels)
    relevance, used = _joined(split, columns)
    unmatched = _unmatched(split, columns, without_label=np.isnan(relevance), used=used)
    return _kept(split, relevance, labels_without_document=int((~used).sum()), unmatched=unmatched)


def grade_examples(split: Split, *, largest_grade: int) -> Examples:
    """The split's grades as labels, relevance = grade / largest_grade; to compare with the truth.

    >>> from dataclasses import replace
    >>> split = open_features((["q", "q"], ["a", "b"], [[0.1], [0.9]]))
    >>> grade_examples(replace(split, grade=np.array([0, 4], dtype=np.int8)), largest_grade=4).relevance.tolist()
    [0.0, 1.0]
    """
    if split.grade.max(initial=0) > largest_grade:
        raise InputError(f"grade {split.grade.max()} found, above the largest grade {largest_grade}.")
    return _kept(split, split.grade / float(largest_grade), labels_without_document=0)


def _joined(split: Split, labels: LabelColumns) -> tuple[Floats, NDArray[np.bool_]]:
    """The label of each document of the split, NaN if it has none; and for each label, whether a document has it."""
    query_ids, labelled_queries = comparable(split.query_id, labels.query_id)
    doc_ids, labelled_documents = comparable(split.doc_id, labels.doc_id)
    queries, query = np.unique(query_ids, return_inverse=True)
    documents, document = np.unique(doc_ids, return_inverse=True)
    pair = query[split.query] * len(documents) + document  # one whole number per query and document
    q, d = _row_of(labelled_queries, queries), _row_of(labelled_documents, documents)
    known = np.flatnonzero((q >= 0) & (d >= 0))
    labelled = q[known] * len(documents) + d[known]
    order = np.argsort(labelled, kind="stable")
    _check_once(labels, known[order], labelled[order])
    place = _row_of(pair, labelled[order])
    if not (place >= 0).any():
        raise _failed_join(split, labels)
    relevance = np.where(place >= 0, labels.relevance[known[order]][place], np.nan)
    used = np.zeros(len(labels.relevance), bool)
    used[known[order][place[place >= 0]]] = True
    return relevance, used


def _row_of(values: NDArray[Any], ordered: NDArray[Any]) -> Ints:
    """The place of each value among the ordered ones, -1 if it is not there; text never equals a number."""
    if not len(ordered) or (values.dtype.kind in "iu") != (ordered.dtype.kind in "iu"):
        return np.full(len(values), -1)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.where(ordered[place] == values, place, -1)


def _check_once(labels: LabelColumns, rows: Ints, ordered: Ints) -> None:
    twice = np.flatnonzero(np.diff(ordered) == 0)
    if len(twice):
        first, second = rows[twice[0]], rows[twice[0] + 1]
        raise InputError(
            f"{labels.where}, rows {first + 1} and {second + 1}: query {labels.query_id[first]}, "
            f"document {labels.doc_id[first]} is labelled twice. Keep one label per document."
        )


def _failed_join(split: Split, labels: LabelColumns) -> InputError:
    if not len(labels.relevance):
        return InputError(f"{labels.where}: no labels. Expected one row per query and document.")
    kinds = [(id_kind(labels.query_id), id_kind(split.query_id)), (id_kind(labels.doc_id), id_kind(split.doc_id))]
    if any(label != feature for label, feature in kinds):
        advice = "Text '7' is not the whole number 7: make the ids the same type on both sides (Parquet keeps types)."
    else:
        advice = "Use the same query and document ids on both sides."
    return InputError(
        f"{labels.where}: no label matches a document of the features. "
        f"Labels have {_shown_pairs(labels.query_id, labels.doc_id)}; "
        f"features have {_shown_pairs(split.query_id[split.query[:EXAMPLES_SHOWN]], split.doc_id)}. {advice}"
    )


def _unmatched(split: Split, labels: LabelColumns, *, without_label: NDArray[np.bool_], used: NDArray[np.bool_]) -> str:
    """Ids of both sides that match nothing, if that is so for most labels; otherwise empty."""
    rows, documents = np.flatnonzero(~used), np.flatnonzero(without_label)
    if 2 * len(rows) <= len(used) or not len(documents):
        return ""
    return (
        f"Most labels match no document. Labels without one: {_shown_pairs(labels.query_id[rows], labels.doc_id[rows])}"
        "; documents without a label: "
        f"{_shown_pairs(split.query_id[split.query[documents[:EXAMPLES_SHOWN]]], split.doc_id[documents])}."
    )


def _shown_pairs(query_id: Ids, doc_id: Ids) -> str:
    pairs = zip(query_id[:EXAMPLES_SHOWN].tolist(), doc_id[:EXAMPLES_SHOWN].tolist(), strict=False)
    shown = ", ".join(f"{query!r} / {document!r}" for query, document in pairs)
    return f"query / document {shown or '(none)'} ({id_kind(query_id)} / {id_kind(doc_id)})"


def _kept(split: Split, relevance: Floats, *, labels_without_document: int, unmatched: str = "") -> Examples:
    labelled = ~np.isnan(relevance)
    count = np.bincount(split.query[labelled], minlength=split.queries)
    lowest, highest = np.full(split.queries, np.inf), np.full(split.queries, -np.inf)
    np.minimum.at(lowest, split.query[labelled], relevance[labelled])
    np.maximum.at(highest, split.query[labelled], relevance[labelled])
    useful = (count > 1) & (lowest < highest)
    left_out = LeftOut(
        labels_without_document=labels_without_document,
        documents_without_label=int((~labelled).sum()),
        queries_without_label=int((count == 0).sum()),
        queries_with_one_label=int((count == 1).sum()),
        queries_with_equal_labels=int(((count > 1) & (lowest == highest)).sum()),
        unmatched=unmatched,
    )
    if not useful.any():
        raise InputError(
            f"No query is left to train on: a query needs two documents with different labels. {left_out} "
            "Add more labels, or features of more documents."
        )
    rows = np.flatnonzero(labelled & useful[split.query])
    features = split.features[rows]
    check_features(features, name="features of the labelled documents", gaps=True)
    offsets = np.concatenate(([0], np.cumsum(count[useful])))
    return Examples(split.query_id[useful], offsets, features, relevance[rows], left_out, split.feature_names)
