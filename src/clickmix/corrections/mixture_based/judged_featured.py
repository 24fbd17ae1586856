"""Judgments where features tell the prior: they weigh it with the clicks.   judgments, Featured -> Judged

What clicks mean is learned from documents that were shown. Judged documents that were not shown keep their judgment, if
they have features: then they have a label.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from clickmix.corrections.mixture_based.calibration import DocumentEvidence, calibrate
from clickmix.corrections.mixture_based.featured import Featured, FeatureFile
from clickmix.corrections.mixture_based.judged import Judged, scale_of
from clickmix.corrections.mixture_based.label_featured import judged_steps, known_documents, scored_documents
from clickmix.counts.counts import Counts
from clickmix.counts.judgments import Grades, none_in_the_log
from clickmix.groups.places import Place


def judge_featured(
    featured: Featured, counts: Counts, place_of: Callable[[Place], int], file: FeatureFile | None, grades: Grades
) -> Judged:
    """Find the judged documents in a log and its features, and learn from those shown what clicks mean."""
    scale = scale_of(grades)
    documents, score = scored_documents(featured, counts, place_of, file)
    joined = documents.joined
    queries, ids = (tuple(map(str, each.tolist())) for each in (grades.query_id, grades.doc_id))
    step = judged_steps(joined, queries, ids, scale.step(grades.grade).tolist())
    judged = np.flatnonzero(step >= 0)
    shown = documents.per_document(documents.impressions) > 0
    learned = judged[shown[judged]]
    if not len(learned):
        first = int(np.argmax(shown))
        logged = str(joined.query_id[first]), str(joined.doc_id[first])
        raise none_in_the_log(grades.where, len(queries), (queries[0], ids[0]), logged)
    # What clicks say about a document depends on the others of its query.
    some = np.flatnonzero(np.isin(joined.query, joined.query[learned]))
    parts = [known_documents(featured, documents, score, block) for block in documents.blocks(some)]
    known = DocumentEvidence(*(np.concatenate(each) for each in zip(*(vars(p).values() for p in parts), strict=True)))
    of_query = np.unique(joined.query[learned], return_inverse=True)[1]
    calibration = calibrate(known.some(np.searchsorted(some, learned)), step[learned], of_query, scale)
    query, document = (tuple(map(str, each[judged].tolist())) for each in (joined.query_id, joined.doc_id))
    return Judged(calibration, query, document, tuple(step[judged].tolist()), len(queries) - len(judged))
