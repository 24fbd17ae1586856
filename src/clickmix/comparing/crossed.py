"""Labels with judgments, for a fair comparison: only judgments of other queries count.   fit -> scores"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clickmix.comparing.contenders import Contender
from clickmix.corrections.mixture_based.calibration import FEWEST_QUERIES, Scale, calibrate
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.corrections.mixture_based.judged import read_documents
from clickmix.counts.judgments import JudgedTable
from clickmix.engines.duckdb import DuckDB
from clickmix.errors import SettingError
from clickmix.types import Floats, Ints

CROSSED = "mixture + judgments"
HELP = "The mixture, weighed by judgments of other queries (debias --judgments)."
FOLDS = 5  # parts that judged queries are dealt into
LEAST = FOLDS * FEWEST_QUERIES // (FOLDS - 1) + 1  # judged queries, so that any four folds have enough


def crossed_labels(mixture: Contender, known: JudgedTable, engine: DuckDB, *, seed: int) -> tuple[Floats, Ints]:
    """Labels and folds of the judged documents that the log shows, in the order of their ids as text.

    Queries are dealt into folds. Each fold is labelled by what the judgments of the other folds say about clicks, so
    never by a document's own judgment or by those of its query.
    """
    fit, counts = mixture.fit, mixture.counts
    if not isinstance(fit, MixtureFit) or fit.model is None:
        raise SettingError("clicks of this log say nothing about relevance, so judgments cannot weigh them.")
    judged = f"(SELECT q, d, 0 AS step FROM {known.table} WHERE shown)"
    some = f"(SELECT * FROM {counts.table} WHERE CAST(query_id AS VARCHAR) IN (SELECT q FROM {judged})) AS cells"
    query, _, step, documents = read_documents(fit.model, replace(counts, table=some), fit.number_of, judged)
    rows = np.flatnonzero(step == 0)
    query, documents = np.unique(query[rows], return_inverse=True)[1], documents.some(rows)
    grade = engine.fetch(f"SELECT grade FROM {known.table} WHERE shown ORDER BY q, d")["grade"].astype(np.float64)
    queries = int(query.max()) + 1
    if queries < LEAST:
        raise SettingError(f"at least {LEAST} judged queries are needed, to learn from some and label the others.")
    fold = (np.random.default_rng(seed).permutation(queries) % FOLDS)[query]
    labels = documents.relevance.copy()
    for k in range(FOLDS):
        given, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        scale = Scale.of(grade[given])
        if scale is not None:
            of_query = np.unique(query[given], return_inverse=True)[1]
            made = calibrate(documents.some(given), scale.step(grade[given]), of_query, scale)
            labels[held] = made.labels(documents.some(held), np.full(len(held), -1))[0]
    return labels, fold
