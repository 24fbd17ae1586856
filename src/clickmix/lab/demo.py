"""The demo: from a simulated log to labels, rankers trained on them, and a report.

An old engine ranks the documents of a synthetic collection, and simulated people click on the results. Because they are
simulated, we know which documents are relevant, and can compare labels and rankers with the truth.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clickmix.corrections.correction import Labels
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.corrections.none import NoCorrection
from clickmix.counts.count import count
from clickmix.evaluate import Measure, Table, rank, score, tabulate
from clickmix.features import Collection, Split, binarized, make_examples
from clickmix.judging.checks import checked
from clickmix.lab.collections import synthetic_collection, top_rows
from clickmix.lab.simulate import write_columns
from clickmix.lab.users import preset, write_sessions
from clickmix.storage.atomic import make_folder
from clickmix.types import Floats

QUERIES, POSITIONS, CLICKS = 1_500, 20, 150_000
ENGINE_QUERIES = 20  # queries from which the old engine learned
RIDGE = 50.0
TREES = 60
RATE, LABEL, TRUTH = "click-through rates", "clickmix labels", "true relevance"

Stage = Callable[[str], None]


@dataclass(frozen=True)
class LabelsAndTruth:
    """Labels of one kind, and the truth about the same documents."""

    name: str
    labels: Labels
    relevant: Floats

    @property
    def error(self) -> float:
        """Root mean squared error of the labels."""
        return float(np.sqrt(np.mean((self.labels.relevance - self.relevant) ** 2)))

    @property
    def precision(self) -> float:
        """R-precision: with R relevant documents, the share of relevant ones among the R highest labels."""
        best = np.argsort(-self.labels.relevance, kind="stable")[: int(self.relevant.sum())]
        return float(self.relevant[best].mean())

    def __str__(self) -> str:
        found = f"{self.precision:.0%} of the {int(self.relevant.sum()):,} documents it puts first are relevant"
        return f"{self.name:>20}: error {self.error:.3f}; {found}"


@dataclass(frozen=True)
class Demo:
    """The results of the demo; without LightGBM there are no rankers."""

    fit: MixtureFit
    known: tuple[LabelsAndTruth, ...]
    rankers: Table | None


def run_demo(folder: Path, *, say: Callable[[str], None], stage: Stage = lambda title: None, date: str = "") -> Demo:
    """Write clicks.parquet, truth.parquet, labels.parquet, model.json and report.html to a folder.

    The report shows `date`; without it every run writes the same bytes.
    """
    from clickmix.lab.demo_page import demo_page
    from clickmix.report import write_page

    make_folder(folder)
    stage("making a collection of queries and documents")
    collection = synthetic_collection(queries=QUERIES, rng=np.random.default_rng(0))
    engine = old_engine(collection.train)
    truth = _write_log(collection, engine, folder, say=say, stage=stage)

    stage("from clicks to labels")
    counts = count(folder / "clicks.parquet")
    fit = checked(MixtureCorrection().fit(counts), counts)
    fit.write(folder / "model.json")
    labels = fit.label(counts)
    labels.write(folder / "labels.parquet")
    say(f"{folder / 'labels.parquet'}: {len(labels):,} labels, from the clicks alone.")

    both = ((RATE, NoCorrection().label(counts)), (LABEL, labels))
    known = tuple(LabelsAndTruth(name, made, truth["relevance"]) for name, made in both)
    rankers = compare_rankers(collection, engine, known, truth, say=say, stage=stage)
    stage("writing the report")
    demo = Demo(fit, known, rankers)
    page = demo_page(demo, counts, source=str(folder / "clicks.parquet"), date=date)
    write_page(page, folder / "report.html")
    return demo


def old_engine(split: Split) -> Callable[[npt.NDArray[np.float32]], Floats]:
    """The engine whose results people clicked: a weighted sum of features, by least squares on grades of a few queries.

    It is better than chance, and wrong wherever relevance is more than a sum of features.
    """
    seen = split.part(0, ENGINE_QUERIES)
    x = seen.features.astype(np.float64)
    mean, deviation = x.mean(axis=0), x.std(axis=0) + 1e-9
    z, grade = (x - mean) / deviation, seen.grade - seen.grade.mean()
    weights = np.linalg.solve(z.T @ z + RIDGE * np.eye(z.shape[1]), z.T @ grade)
    return lambda features: np.asarray((features - mean) / deviation @ weights)


def _write_log(
    collection: Collection, engine: Any, folder: Path, *, say: Callable[[str], None], stage: Stage
) -> dict[str, npt.NDArray[Any]]:
    """Write the log and its truth; also return the truth, in the order of labels."""
    train = collection.train
    rows = top_rows(train, engine(train.features), length=POSITIONS)
    relevance = binarized(train.grade, largest_grade=collection.largest_grade)
    shown = np.sort(rows.ravel())  # the collection's ids rise, and labels come in their order
    truth = {
        "query_id": train.query_id[train.query[shown]],
        "doc_id": train.doc_id[shown],
        "relevance": relevance[shown],
    }
    write_columns(truth, folder / "truth.parquet")
    stage(f"simulating {CLICKS:,} clicks")
    person = preset("pbm-eta1", positions=POSITIONS)
    chunks = person.simulate_chunks(relevance[rows], clicks=CLICKS, rng=np.random.default_rng(1))
    log = folder / "clicks.parquet"
    impressions = write_sessions(chunks, log, query_id=train.query_id, doc_id=train.doc_id[rows])
    say(f"{log}: {impressions:,} impressions, {CLICKS:,} clicks; people look at the top and trust it.")
    return truth


def compare_rankers(
    collection: Collection,
    engine: Any,
    known: tuple[LabelsAndTruth, ...],
    truth: Mapping[str, npt.NDArray[Any]],
    *,
    say: Callable[[str], None],
    stage: Stage,
) -> Table | None:
    """nDCG@10 of the old engine and of rankers trained on each kind of label, on queries without clicks."""
    if importlib.util.find_spec("lightgbm") is None:
        say("No rankers: LambdaMART is LightGBM's, which is not installed. pip install 'clickmix[lightgbm]'")
        return None
    from clickmix.rankers import LambdaMART

    test, measure = collection.test, Measure.parse("ndcg@10")
    scores = {"the old engine": engine(test.features)}
    for name, labels in (*((each.name, each.labels) for each in known), (TRUTH, truth)):
        examples = make_examples(collection.train, labels)
        title = f"training a ranker on {name}"
        progress = partial(lambda title, share: stage(f"{title}, {share:.0%}"), title)
        ranker = LambdaMART(trees=TREES).fit(examples, progress=progress)
        scores[f"trained on {name}"] = ranker.score(test.features)
    rankings = {name: rank(given, test.grade, test.query_id[test.query]) for name, given in scores.items()}
    results = {name: [score(ranking, measure=measure)] for name, ranking in rankings.items()}
    return tabulate(results, baseline=f"trained on {RATE}")
