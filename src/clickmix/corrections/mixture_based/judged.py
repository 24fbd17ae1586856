"""Judged documents of a log, and what they say about its clicks.   judgments, MixtureFit -> Judged

Judgments are matched by the ids of query and document as text; their calibration can serve any log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from clickmix.corrections.mixture_based.calibration import Calibration, DocumentEvidence, Scale, calibrate
from clickmix.counts.counts import Counts
from clickmix.counts.judgments import Grades, none_in_the_log
from clickmix.engines.sql import literal
from clickmix.errors import InputError, SettingError
from clickmix.groups.places import Place
from clickmix.mixtures.log_model import LogModel
from clickmix.storage.records import MismatchError, Range
from clickmix.types import Floats, Ints

if TYPE_CHECKING:
    from clickmix.corrections.mixture_based.label_judged import Block
    from clickmix.mixtures.hierarchical.cells import Cells

MOST_ROWS = 2_000  # rows per statement


@dataclass(frozen=True)
class Judged:
    """What judgments say about all documents, and the judged ones: ids as text, and the step of the scale.

    `missing` judged documents were not in the log that was fitted.
    """

    calibration: Calibration
    queries: tuple[str, ...]
    documents: tuple[str, ...]
    steps: tuple[Annotated[int, Range(0)], ...]
    missing: Annotated[int, Range(0)]

    def check_fields(self) -> None:
        """Every judged document has a query and a step of the scale."""
        if not len(self.queries) == len(self.documents) == len(self.steps):
            raise MismatchError("expected a query, a document and a step for each judgment", at="steps")
        if max(self.steps, default=0) >= len(self.calibration.scale.steps):
            raise MismatchError("expected steps of the scale", at="steps")

    def table(self, counts: Counts) -> str:
        """A table of the counts' engine with the judged documents: q, d, step."""
        return _table(counts, self.queries, self.documents, self.steps)

    def labels(self, model: LogModel, block: Block) -> tuple[Floats, Floats, Floats]:
        """Relevance, low and high of the documents of a block."""
        return self.calibration.labels(_documents(model, block), block.judged)


def judge_log(model: LogModel | None, counts: Counts, place_of: Callable[[Place], int], grades: Grades) -> Judged:
    """Find the judged documents in a log, and learn from them what its clicks mean."""
    if model is None:
        raise SettingError(
            f"{grades.where}: clicks of this log say nothing about relevance, so judgments cannot weigh them."
        )
    scale = scale_of(grades)
    queries, documents = (tuple(map(str, ids.tolist())) for ids in (grades.query_id, grades.doc_id))
    table = _table(counts, queries, documents, tuple(scale.step(grades.grade).tolist()))
    some = (
        f"(SELECT * FROM {counts.table} WHERE CAST(query_id AS VARCHAR) IN (SELECT q FROM {table})) AS judged_queries"
    )
    same = "CAST(query_id AS VARCHAR) = q AND CAST(doc_id AS VARCHAR) = d"
    if not counts.engine.rows(f"SELECT 1 FROM {counts.table} AS cells JOIN {table} AS judged ON {same} LIMIT 1"):
        logged = counts.engine.rows(
            f"SELECT CAST(query_id AS VARCHAR), CAST(doc_id AS VARCHAR) FROM {counts.table} ORDER BY 1, 2 LIMIT 1"
        )[0]
        raise none_in_the_log(grades.where, len(queries), (queries[0], documents[0]), logged)
    query, document, step, known = read_documents(model, replace(counts, table=some), place_of, table)
    rows = np.flatnonzero(step >= 0)
    of_query = np.unique(query[rows], return_inverse=True)[1]
    calibration = calibrate(known.some(rows), step[rows], of_query, scale)
    seen, of_seen, steps = (tuple(values[rows].tolist()) for values in (query, document, step))
    return Judged(calibration, seen, of_seen, steps, len(queries) - len(rows))


def scale_of(grades: Grades) -> Scale:
    """The scale of judgments; refuse those that say nothing."""
    scale = Scale.of(grades.grade)
    if scale is None:
        raise InputError(
            f"{grades.where}: all {len(grades.grade):,} judged documents have the grade {grades.grade[0]:g}. Judgments "
            "say something only if grades differ: also keep judgments of documents that are not relevant."
        )
    return scale


def read_documents(
    model: LogModel, counts: Counts, place_of: Callable[[Place], int], judged: str | None = None
) -> tuple[Floats, Floats, Ints, DocumentEvidence]:
    """All documents of a log, sorted by their ids as text: query, document, judged step or -1, what clicks say."""
    from clickmix.corrections.mixture_based.label_judged import number_documents, read_blocks  # scipy loads slowly

    numbered = number_documents(counts, judged)
    ids = counts.engine.fetch(
        f"SELECT CAST(query_id AS VARCHAR) AS q, CAST(doc_id AS VARCHAR) AS d, document, step FROM {numbered}"
    )
    q, d = (ids[name].astype(object) for name in ("q", "d"))
    order = np.array(sorted(range(len(q)), key=lambda i: (q[i], d[i])), dtype=np.int64)
    blocks = [_documents(model, block) for block in read_blocks(model.model.places, counts, numbered, place_of)]
    known = DocumentEvidence(
        *(np.concatenate(values) for values in zip(*(vars(each).values() for each in blocks), strict=True))
    )
    return q[order], d[order], ids["step"][order], known.some(ids["document"][order])


def _documents(model: LogModel, block: Block) -> DocumentEvidence:
    from clickmix.mixtures.hierarchical.label import grades_of

    # Grades are computed as labels without judgments are.
    return evidence_of(model, block.cells, block.entry, grades_of(model.model, block.documents))


def evidence_of(model: LogModel, cells: Cells, entry: Ints, grades: Floats) -> DocumentEvidence:
    """What clicks say about documents with these entries of cells, and these grades (grade x document)."""
    from clickmix.mixtures.hierarchical.label import labels_of
    from clickmix.mixtures.hierarchical.parts import parts

    found = parts(model.model, cells)
    evidence = {name: part[entry] for name, part in vars(found).items()}
    label = labels_of(grades)
    return DocumentEvidence(**evidence, relevance=label.relevance, low=label.low, high=label.high, grades=grades.T)


def _table(counts: Counts, queries: tuple[str, ...], documents: tuple[str, ...], steps: tuple[int, ...]) -> str:
    """A table of judged documents, written into the SQL: every engine takes that."""
    rows = [f"({literal(q)}, {literal(d)}, {step})" for q, d, step in zip(queries, documents, steps, strict=True)]
    parts = [
        counts.engine.keep(
            f"SELECT q, d, CAST(step AS BIGINT) AS step FROM (VALUES {', '.join(rows[i : i + MOST_ROWS])}) "
            "AS judged(q, d, step)"
        )
        for i in range(0, len(rows), MOST_ROWS)
    ]
    return f"({' UNION ALL '.join(f'SELECT q, d, step FROM {part}' for part in parts)})"
