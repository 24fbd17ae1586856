"""What rounding to grades costs: nDCG@10 of rankings against exported grades, beside nDCG@10 against the labels.

The paper's users on a synthetic collection of 500 queries; as many clicks per query as in the paper (400), and a tenth
of that, where labels are unsure. Labels by `clickmix.debias`. Four rankings of the labelled documents are measured: by
a ranker trained on the labels, by the click-through rate, by the best feature, and by chance. Ratings come from
`clickmix export`, as a tool would read them. Against labels a document is worth its relevance; against grades 2^g - 1,
and g for qrels, as tools have it. All ways are measured on the same queries: those that each of them rates above 0.

python benchmarks/export.py
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import clickmix as cm
from clickmix.evaluate import evaluate
from clickmix.export.target import export
from clickmix.features import Split, make_examples
from clickmix.lab.simulate import Simulation, open_collection, write_simulation
from clickmix.rankers import LambdaMART
from measuring import SCRATCH, write_result

QUERIES, SEED = 500, 7
RELEVANCE: tuple[Literal["binarized", "graded"], ...] = ("binarized", "graded")
SETTINGS = tuple((relevance, clicks) for relevance in RELEVANCE for clicks in (20_000, 200_000))
WAYS: dict[str, dict[str, Any]] = {
    "grades 0 to 3": {},
    "grades 0 to 1": {"scale": 1},
    "grades 0 to 4": {"scale": 4},
    "--as probability": {"rating": "probability"},
    "--as expected-gain": {"rating": "expected-gain"},
}
Array = np.ndarray[Any, Any]
Rated = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Labelled:
    """Labels as columns: ids, the number of the query, relevance, and the scores of rankings by their names."""

    ids: list[tuple[str, str]]
    query: Array
    relevance: Array
    scores: dict[str, Array]


def labelled(labels: cm.Labels, split: Split) -> Labelled:
    """The labelled documents, ranked in four ways."""
    queries = np.repeat(split.query_id, split.sizes)
    row = {pair: i for i, pair in enumerate(zip(queries.tolist(), split.doc_id.tolist(), strict=True))}
    pairs = list(zip(labels.query_id.tolist(), labels.doc_id.tolist(), strict=True))
    features = np.asarray(split.features)[[row[pair] for pair in pairs]]
    query, relevance = labels.query_id, labels.relevance
    examples = make_examples(split, (labels.query_id, labels.doc_id, relevance))

    def worth(scores: Array) -> float:
        return evaluate(scores, relevance, query, measure="ndcg@10:gain=linear").mean

    scores = {
        "LambdaMART": LambdaMART(trees=100).fit(examples, seed=SEED).score(features),
        "click-through rate": labels.clicks / labels.impressions,
        "best feature": max(features.T, key=worth),
        "chance": np.random.default_rng(SEED).random(len(pairs)),
    }
    return Labelled([(str(query), str(document)) for query, document in pairs], query, relevance, scores)


def ratings(labels: Path, folder: Path, options: dict[str, Any]) -> Rated:
    """The ratings of an export, by query and document."""
    export(labels, to="quepid", output=folder / "export.csv", **options)
    with (folder / "export.csv").open(encoding="utf-8", newline="") as lines:
        return {(row["query"], row["docid"]): float(row["rating"]) for row in csv.DictReader(lines)}


def qrels(labels: Path, folder: Path) -> Rated:
    """The grades of qrels, by query and document."""
    export(labels, to="qrels", output=folder / "qrels.txt")
    words = (line.split() for line in (folder / "qrels.txt").read_text(encoding="utf-8").splitlines())
    return {(query, document): float(grade) for query, _, document, grade in words}


def compare(documents: Labelled, ways: dict[str, Rated]) -> list[dict[str, Any]]:
    """nDCG@10 of each ranking against the labels, and against each export; on the queries that all can measure."""
    grades = {name: np.array([rated[pair] for pair in documents.ids]) for name, rated in ways.items()}
    _, number = np.unique(documents.query, return_inverse=True)
    measured = np.all([np.bincount(number, grade) > 0 for grade in grades.values()], axis=0)
    kept = measured[number]

    def ndcg(judged: Array, gain: str) -> Array:
        """A row per ranking, a column per query."""
        return np.stack(
            [
                evaluate(scores[kept], judged[kept], number[kept], measure=f"ndcg@10{gain}").values
                for scores in documents.scores.values()
            ]
        )

    by_labels = ndcg(documents.relevance, ":gain=linear")
    rows = []
    for name, grade in grades.items():
        by_export = ndcg(grade, ":gain=linear" if name.startswith("qrels") else "")
        rows.append(
            {
                "ratings": name,
                "queries": int(measured.sum()),
                "ndcg": {
                    ranking: {"labels": round(float(label), 4), "export": round(float(export), 4)}
                    for ranking, label, export in zip(
                        documents.scores, by_labels.mean(axis=1), by_export.mean(axis=1), strict=True
                    )
                },
                "correlation over queries and rankings": round(
                    float(np.corrcoef(by_labels.ravel(), by_export.ravel())[0, 1]), 4
                ),
            }
        )
    return rows


def measure() -> dict[str, Any]:
    """For each log and each way to write ratings: nDCG@10 both ways."""
    collection = open_collection(None, queries=QUERIES, seed=SEED)
    rows = []
    for relevance, clicks in SETTINGS:
        folder = SCRATCH / f"export-{relevance}-{clicks}"
        folder.mkdir(parents=True, exist_ok=True)
        write_simulation(collection, folder, Simulation(clicks=clicks, relevance=relevance, seed=SEED))
        labels = cm.debias(folder / "log.parquet")
        path = folder / "labels.parquet"
        labels.write(path)
        ways = {name: ratings(path, folder, options) for name, options in WAYS.items()}
        ways["qrels, grades 0 to 3"] = qrels(path, folder)
        measured = compare(labelled(labels, collection.train), ways)
        rows += [{"relevance": relevance, "clicks": clicks} | row for row in measured]
    return {"queries": QUERIES, "seed": SEED, "rows": rows}


if __name__ == "__main__":
    write_result("export", "python benchmarks/export.py", measure())
