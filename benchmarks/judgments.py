"""What judgments add to clicks: agreement of labels with judgments that were not given, by number of judged queries.

python benchmarks/judgments.py DATA       DATA/clara-half and DATA/trec-session: impressions.csv.gz, judgments.csv.gz

The queries of each log are split in two halves by the MD5 of their ids. Every constant was chosen on one half (even);
what is reported comes from the other half alone (odd). Clicks of all queries are used. From the odd half some queries
are drawn at random, 50 times; their judgments are given, and labels are compared with the judgments of the rest.

nDCG@10 has the gain 2^(grade - lowest common grade) - 1, over queries with at least two grades, ties in expectation.

judged_users.py simulates users whose skips mean less than a model believes.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import clickmix as cm
from clickmix.corrections.mixture_based.calibration import DocumentEvidence, Scale, calibrate
from clickmix.corrections.mixture_based.judged import read_documents
from clickmix.counts.judgments import read_grades
from clickmix.evaluate.agreement import JudgedDocuments
from clickmix.evaluate.resampling import Bootstrap
from judged_users import measure_worlds
from measuring import write_result

LOGS = {"CLARA2": "clara-half", "TREC 2014": "trec-session"}
NUMBERS, DRAWS = (10, 20, 50, 100, 200), 50
MEASURES = ("ndcg", "same_place")


def odd_half(queries: np.ndarray) -> np.ndarray:
    """Whether each query is in the half that is reported."""
    odd = {query: int(hashlib.md5(str(query).encode()).hexdigest(), 16) % 2 == 1 for query in set(queries.tolist())}
    return np.array([odd[query] for query in queries.tolist()])


def measure_log(folder: Path, *, odd: bool = True, draws: int = DRAWS) -> dict[str, Any]:
    """The curves of a log."""
    counts = cm.count(folder / "impressions.csv.gz")
    fit = cm.MixtureCorrection().fit(counts)
    grades = read_grades(folder / "judgments.csv.gz")
    begun = time.process_time()
    fit.with_judgments(counts, grades)
    seconds = time.process_time() - begun
    assert fit.model is not None
    query, doc, _, documents = read_documents(fit.model, counts, fit.number_of)
    known = dict(zip(zip(grades.query_id, grades.doc_id, strict=True), grades.grade.tolist(), strict=True))
    grade = np.array([known.get(pair, np.nan) for pair in zip(query, doc, strict=True)])
    rows = np.flatnonzero(np.isfinite(grade) & (odd_half(query) == odd))
    columns = counts.engine.fetch(
        "SELECT CAST(query_id AS VARCHAR) AS q, CAST(doc_id AS VARCHAR) AS d, sum(impressions * position) / "
        f"sum(impressions) AS position, sum(clicks) / sum(impressions) AS rate FROM {counts.table} GROUP BY q, d"
    )
    shown = {(q, d): (p, r) for q, d, p, r in zip(*(columns[k] for k in ("q", "d", "position", "rate")), strict=True)}
    position, rate = np.array([shown[pair] for pair in zip(query[rows], doc[rows], strict=True)], dtype=float).T
    log = _Half(np.unique(query[rows], return_inverse=True)[1], grade[rows], documents.some(rows), position, rate)
    rng = np.random.default_rng(0)
    figures = {str(number): log.curve(rng, number, draws) for number in NUMBERS}
    return {"judged queries in the half": log.queries, "seconds judgments add, all queries judged": seconds} | figures


class _Half:
    """Judged documents of the reported half."""

    def __init__(
        self, query: np.ndarray, grade: np.ndarray, documents: DocumentEvidence, position: np.ndarray, rate: np.ndarray
    ) -> None:
        self.query, self.grade, self.documents, self.position, self.rate = query, grade, documents, position, rate
        self.queries = int(query.max()) + 1

    def curve(self, rng: np.random.Generator, number: int, draws: int) -> dict[str, Any]:
        """Means over draws, and what 95 % of them lie between."""
        found: dict[str, list[float]] = defaultdict(list)
        used: dict[str, int] = defaultdict(int)
        for _ in range(draws):
            given = np.isin(self.query, rng.choice(self.queries, number, replace=False))
            scale = Scale.of(self.grade[given])
            if scale is None:
                used["one grade only"] += 1
                continue
            of_query = np.unique(self.query[given], return_inverse=True)[1]
            made = calibrate(self.documents.some(given), scale.step(self.grade[given]), of_query, scale)
            used[made.used] += 1
            self._score(found, ~given, made.labels(self.documents, np.full(len(given), -1))[0])
        return {"used": dict(used), "queries tested": self.queries - number} | {
            name: [round(float(each), 4) for each in (np.mean(values), *np.quantile(values, [0.025, 0.975]))]
            for name, values in found.items()
        }

    def _score(self, found: dict[str, list[float]], rest: np.ndarray, labels: np.ndarray) -> None:
        query = np.unique(self.query[rest], return_inverse=True)[1]
        judged = JudgedDocuments(query, self.grade[rest], self.position[rest])
        scores = {
            "with judgments": labels,
            "without": self.documents.relevance,
            "production order": -self.position,
            "click-through rate": self.rate,
        }
        measured = {name: judged.measures(score[rest]) for name, score in scores.items()}
        bootstrap = Bootstrap(judged.queries)
        for measure in MEASURES:
            for name, each in measured.items():
                found[f"{measure} {name}"].append(each[measure].value)
                if name == "with judgments":
                    continue
                gap = bootstrap.difference(measured["with judgments"][measure], each[measure])
                found[f"{measure} gain over {name}"].append(gap.value)
                found[f"{measure} gain over {name}, low"].append(gap.low)
                found[f"{measure} gain over {name}, high"].append(gap.high)


if __name__ == "__main__":
    data = Path(sys.argv[1])
    figures: dict[str, Any] = {name: measure_log(data / folder) for name, folder in LOGS.items()}
    figures["simulated users"] = measure_worlds()
    write_result("judgments", "python benchmarks/judgments.py DATA", figures)
