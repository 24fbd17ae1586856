"""Labels with features: documents of a log and of a features file, with their scores.   Counts, Featured -> Labels

Documents that were never shown get labels, too. They count as seen at the last place, without an impression: only their
features and their query say something about them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.corrections.correction import Labels
from clickmix.corrections.mixture_based.calibration import DocumentEvidence
from clickmix.corrections.mixture_based.featured import FOLDS, Featured, FeatureFile, JoinedDocuments
from clickmix.corrections.mixture_based.judged import Judged, evidence_of
from clickmix.counts.counts import Counts
from clickmix.engines.sql import aliases, listed
from clickmix.errors import SettingError
from clickmix.groups.places import Place, places_of
from clickmix.groups.sample import cells_query
from clickmix.mixtures.hierarchical.cells import Cells, Places
from clickmix.mixtures.hierarchical.climb import expected
from clickmix.mixtures.hierarchical.label import grades_seen, label
from clickmix.types import Columns, Floats, Ints

AT_A_TIME = 50_000  # documents: if queries differ, each document takes dozens of nodes


@dataclass(frozen=True)
class FoundDocuments:
    """Documents of a log and of its features, and their cells sorted by document.

    `code` is a checksum of each query's id, so that a query is in the same fold in every log.
    """

    places: Places
    joined: JoinedDocuments
    code: Ints
    document: Ints
    place: Ints
    impressions: Ints
    clicks: Ints

    @classmethod
    def read(
        cls, counts: Counts, place_of: Callable[[Place], int], file: FeatureFile, places: Places
    ) -> FoundDocuments:
        """Fetch every cell of the log, and find its document in the features."""
        keys = listed(aliases(counts.keys))
        columns = counts.engine.fetch(
            f"SELECT query_id, doc_id, {keys}, impressions, clicks FROM {cells_query(counts)}"
        )
        joined = file.join(columns["query_id"], columns["doc_id"])
        seen, place = places_of(columns, counts.context)
        number = np.array([place_of(each) for each in seen])[place]
        unshown = np.setdiff1d(np.arange(len(joined.query)), joined.document)
        none, last = np.zeros(len(unshown), dtype=np.int64), np.full(len(unshown), int(places.position.argmax()))
        document = np.concatenate([joined.document, unshown])
        order = np.lexsort((np.concatenate([number, last]), document))
        parts = ((number, last), (columns["impressions"], none), (columns["clicks"], none))
        first = np.flatnonzero(np.diff(joined.query, prepend=-1))
        code = np.array([zlib.crc32(str(each).encode()) for each in joined.query_id[first].tolist()], dtype=np.int64)
        return cls(places, joined, code, document[order], *(np.concatenate(part)[order] for part in parts))

    @property
    def fold(self) -> Ints:
        """The fold of each document's query."""
        return np.asarray(self.code[self.joined.query] % FOLDS)

    def per_document(self, cells: Ints) -> Ints:
        """Sums over the cells of each document."""
        return np.asarray(np.add.reduceat(cells, np.flatnonzero(np.diff(self.document, prepend=-1))))

    def some_queries(self, documents: Any, most: int) -> Ints:
        """At most `most` of these documents (a mask): those of some whole queries, always the same ones."""
        query = self.joined.query[documents]
        sizes = np.bincount(query, minlength=len(self.code))
        order = np.argsort(self.code // FOLDS, kind="stable")
        kept = np.zeros(len(self.code), dtype=bool)
        kept[order] = np.cumsum(sizes[order]) <= most
        return np.flatnonzero(documents & kept[self.joined.query])

    def cells(self, some: Ints, score: Floats | None = None) -> tuple[Cells, Ints]:
        """The cells of some documents, in order, and the entry of each document."""
        number = np.full(len(self.joined.query), -1)
        number[some] = np.arange(len(some))
        kept = number[self.document] >= 0
        queries, query = np.unique(self.joined.query[some], return_inverse=True)
        return Cells.of_documents(
            self.places,
            query,
            number[self.document[kept]],
            self.place[kept],
            self.impressions[kept],
            self.clicks[kept],
            queries=len(queries),
            score=score,
        )

    def blocks(self, some: Ints) -> Iterator[Ints]:
        """Some documents, a number of whole queries at a time."""
        starts = np.flatnonzero(np.diff(self.joined.query[some], prepend=-1))
        wanted = np.arange(AT_A_TIME, len(some), AT_A_TIME)
        yield from np.split(some, np.unique(starts[np.searchsorted(starts, wanted, side="right") - 1]))


def score_documents(featured: Featured, documents: FoundDocuments, file: FeatureFile) -> Floats:
    """The score of each document: 0, the mean, for those without features."""
    row = documents.joined.row
    known = np.flatnonzero(row >= 0)
    score = np.zeros(len(row))
    found = file.sums(featured.folds, featured.names, row[known], documents.fold[known])
    score[known] = featured.scale * found - featured.centre
    return score


def scored_documents(
    featured: Featured, counts: Counts, place_of: Callable[[Place], int], file: FeatureFile | None
) -> tuple[FoundDocuments, Floats]:
    """All documents of a log and of its features, with their scores."""
    if file is None:
        raise SettingError(
            "this model was fitted with features, and its file does not have the features of this log's documents. "
            "Pass them: clickmix label --features FILE, or in Python fit.using_features(FILE)."
        )
    documents = FoundDocuments.read(counts, place_of, file, featured.model.model.places)
    return documents, score_documents(featured, documents, file)


def judged_steps(
    joined: JoinedDocuments, queries: Iterable[str], documents: Iterable[str], steps: Iterable[int]
) -> Ints:
    """The judged step of each document, or -1; judgments are found by ids as text."""
    judged = dict(zip(zip(queries, documents, strict=True), steps, strict=True))
    ids = zip(joined.query_id.tolist(), joined.doc_id.tolist(), strict=True)
    return np.array([judged.get((str(query), str(document)), -1) for query, document in ids], dtype=np.int64)


def known_documents(featured: Featured, documents: FoundDocuments, score: Floats, some: Ints) -> DocumentEvidence:
    """What clicks and features say about some documents."""
    cells, entry = documents.cells(some, score[some])
    grades = grades_seen(*expected(featured.model.model, cells))
    return evidence_of(featured.model, cells, entry, grades[:, entry])


def label_featured(
    featured: Featured,
    counts: Counts,
    place_of: Callable[[Place], int],
    file: FeatureFile | None,
    judged: Judged | None,
) -> Labels:
    """Labels of all documents; `place_of` gives the number of the model's place for a place of the log."""
    documents, score = scored_documents(featured, counts, place_of, file)
    joined = documents.joined
    step = None if judged is None else judged_steps(joined, judged.queries, judged.documents, judged.steps)
    found = np.zeros((3, len(score)))
    for some in documents.blocks(np.arange(len(score))):
        if not len(some):
            continue
        if judged is not None and step is not None:
            known = known_documents(featured, documents, score, some)
            found[:, some] = judged.calibration.labels(known, step[some])
        else:
            cells, entry = documents.cells(some, score[some])
            made = label(featured.model.model, cells)
            found[:, some] = made.relevance[entry], made.low[entry], made.high[entry]
    columns: Columns = {
        "query_id": joined.query_id,
        "doc_id": joined.doc_id,
        "relevance": found[0],
        "impressions": documents.per_document(documents.impressions),
        "clicks": documents.per_document(documents.clicks),
        "low": found[1],
        "high": found[2],
    }
    engine, types = counts.engine, counts.engine.types(counts.table)
    table = engine.take(columns)
    ids = ", ".join(f"CAST({name} AS {types[name]}) AS {name}" for name in ("query_id", "doc_id"))
    return Labels(
        counts, f"SELECT {ids}, relevance, impressions, clicks, low, high FROM {engine.keep(f'SELECT * FROM {table}')}"
    )
