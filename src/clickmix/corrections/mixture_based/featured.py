"""What features say about relevance: a score for each document, learned from clicks of other queries.   -> Featured

    fit the model -> scores that make its clicks likelier -> fit the model with the scores
Scores are one more covariate of the prior (mixtures/hierarchical/tilt.py). Queries are dealt into folds by a checksum
of their ids, and trees score only queries whose clicks they never saw. A later stage, rankers/prior_trees.py, reads
features and grows trees; it is passed in.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

import numpy as np

from clickmix.counts.counts import Counts
from clickmix.groups.places import Place
from clickmix.groups.sample import SAMPLE_CELLS
from clickmix.mixtures.log_model import LogModel
from clickmix.storage.records import MismatchError, Range
from clickmix.types import Floats, Ints

FOLDS = 5
LEARN_FROM = 300_000  # documents, of whole queries: trees learn little from more
CLEARLY = 2.0  # standard errors by which held-out clicks must be likelier with features
FEWEST_QUERIES = 50  # queries with clicks and features; with fewer, nothing could be checked
ROUNDED = 10  # round scores to tenths while fitting the model again, so that similar documents share a row
SCALES = np.linspace(0.5, 2, 31)


@dataclass(frozen=True)
class FoldTrees:
    """The scorers of a fold, as LightGBM's texts: two rankers, and trees on their scores and on the features.

    There are no rankers if there were too few clicks to train one.
    """

    rankers: tuple[str, ...]
    prior: str


@dataclass(frozen=True)
class Featured:
    """What features say: the model fitted with the documents' scores, and the trees that give scores.

    A score is `scale` times the sum of the trees, minus `centre`. Held-out clicks of `documents` in `queries` are
    likelier by `gained` in log-likelihood per document, with standard error `gained_error`. Of the log's documents,
    `without` had no features; `unshown` documents with features were not in the log. If features do not help, there are
    no `folds`.
    """

    model: LogModel
    names: tuple[str, ...]
    folds: tuple[FoldTrees, ...]
    scale: Annotated[float, Range(0, 10)]
    centre: Annotated[float, Range(-60, 60)]
    gained: float
    gained_error: Annotated[float, Range(0)]
    documents: Annotated[int, Range(0)]
    queries: Annotated[int, Range(0)]
    without: Annotated[int, Range(0)]
    unshown: Annotated[int, Range(0)]

    def check_fields(self) -> None:
        """There are trees for every fold, or none at all."""
        if len(self.folds) not in (0, FOLDS):
            raise MismatchError(f"expected {FOLDS} folds, or none", at="folds")

    @property
    def helps(self) -> bool:
        """Whether features are used."""
        return bool(self.folds)


@dataclass(frozen=True)
class JoinedDocuments:
    """All documents of a log and of a features file, sorted by query.

    Per document: the number of its `query`, from 0, and its `row` in the features, or -1. Per cell: its `document`.
    """

    query_id: Any
    doc_id: Any
    query: Ints
    row: Ints
    document: Ints


@dataclass(frozen=True)
class LearnedTrees:
    """The trees of every fold, and each document's sum of the trees that have not seen its query."""

    folds: tuple[FoldTrees, ...]
    sums: Floats


class FeatureFile(Protocol):
    """Features of documents: finds them by id, learns from them, scores them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""

    def join(self, query_id: Any, doc_id: Any) -> JoinedDocuments:
        """All documents of a log, whose cells have these ids, and of the features."""

    def learn(self, row: Ints, query: Ints, fold: Ints, before: Floats, after: Floats) -> LearnedTrees:
        """Grow trees that make clicks likelier; `before` and `after` clicks are probabilities, grade x document."""

    def sums(self, folds: tuple[FoldTrees, ...], names: tuple[str, ...], row: Ints, fold: Ints) -> Floats:
        """The sums of trees for some rows, each by its fold's trees; `names` are the features of the trees."""


def open_feature_file(features: Any) -> FeatureFile:
    """Features of documents. The reader is imported by name, because it belongs to a later stage."""
    opened: FeatureFile = importlib.import_module("clickmix.rankers.prior_trees").FeatureTable.open(features)
    return opened


def learn_features(
    model: LogModel, counts: Counts, place_of: Callable[[Place], int], file: FeatureFile
) -> tuple[Featured, float | None]:
    """Learn scores from features and fit the model again with them; also return the expected error of labels.

    If held-out clicks are not clearly likelier, there are no trees and no error.
    """
    from clickmix.corrections.mixture_based.label_featured import FoundDocuments, score_documents  # scipy loads slowly
    from clickmix.mixtures.hierarchical.climb import climb
    from clickmix.mixtures.hierarchical.tilt import before_and_after, gained
    from clickmix.mixtures.mixture import left_over

    documents = FoundDocuments.read(counts, place_of, file, model.model.places)
    joined = documents.joined
    shown = documents.per_document(documents.impressions) > 0
    some = documents.some_queries(shown & (joined.row >= 0), LEARN_FROM)
    queries, query = np.unique(joined.query[some], return_inverse=True)
    counted = (len(some), len(queries), int((shown & (joined.row < 0)).sum()), int((~shown).sum()))
    found = Featured(model, file.names, (), 1.0, 0.0, 0.0, 0.0, *counted)
    if len(queries) < FEWEST_QUERIES:
        return found, None
    before, after = _by_document(documents, some, lambda cells: before_and_after(model.model, cells))
    learned = file.learn(joined.row[some], query, documents.fold[some], before, after)
    scale = float(max(SCALES, key=lambda by: gained(before, after, by * learned.sums).sum()))
    by_query = np.bincount(query, gained(before, after, scale * learned.sums))
    error = float(by_query.std() * np.sqrt(len(by_query)) / len(some))
    found = replace(found, gained=float(by_query.sum() / len(some)), gained_error=error)
    if found.gained <= CLEARLY * error:
        return found, None
    found = replace(found, folds=learned.folds, scale=scale, centre=scale * float(learned.sums.mean()))
    score = score_documents(found, documents, file)
    some = documents.some_queries(shown, SAMPLE_CELLS)
    cells, _ = documents.cells(some, np.round(score[some] * ROUNDED) / ROUNDED)
    fitted = climb(cells.in_order(), replace(model.model, trace=()))[0]
    _, grades = _by_document(documents, some, lambda cells: before_and_after(fitted, cells), score)
    return replace(found, model=LogModel.of(fitted, share=model.share)), left_over(grades, np.ones(len(some)))[1]


def _by_document(
    documents: Any, some: Ints, look: Callable[[Any], tuple[Floats, Floats]], score: Floats | None = None
) -> tuple[Floats, Floats]:
    """Two tables, grade x document, that `look` gives for the cells of some documents."""
    parts = []
    for block in documents.blocks(some):
        cells, entry = documents.cells(block, None if score is None else score[block])
        parts.append([table[:, entry] for table in look(cells)])
    one, two = (np.concatenate(tables, axis=1) for tables in zip(*parts, strict=True))
    return one, two
