"""Labels by the ranker trained on them: nDCG@10 of LambdaMART for every correction, weighting and kind of user.

The synthetic collection with 4,000 training queries, or the one in --data; top 20 of the production ranker; position-
based users with trust bias; clicks in the paper's proportion. A run is a seed: all labels of a run see the same
collection, lists and clicks. The rankers of every (users, run) are one job, on one thread; each trained ranker is a
line in bench/ranking.jsonl at once, and what is there is not done again: the program can be stopped and resumed.
Queries are judged on the grades of the vali split, by which the default weighting is chosen, and of the test split.

    python benchmarks/ranking.py                                  train what is missing, then summarise
    python benchmarks/ranking.py --summary                        summarise only
    python benchmarks/ranking.py --data MQ2008 --runs 10          folds in turn; bench/ranking-MQ2008.jsonl
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from clickmix.corrections.affine import AffineCorrection
from clickmix.corrections.correction import Correction
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.parameters import BiasParameters
from clickmix.counts.counts import Counts
from clickmix.evaluate import evaluate
from clickmix.features import Collection, Split, binarized, graded, make_examples
from clickmix.lab.collections import load_collection, production_ranker
from clickmix.lab.collections.production import top_rows
from clickmix.lab.collections.synthetic import synthetic_collection
from clickmix.lab.experiments.labels import bayes_labels
from clickmix.lab.users import PositionBased
from clickmix.rankers import FittedLambdaMART, LambdaMART
from clickmix.rankers.weighting import WEIGHTINGS, Weighting
from measuring import SCRATCH, write_result
from ranking_summary import markdown, summary

CLICKS_PER_QUERY = 8_000_000 / 18_919
TOP = 20
USERS = (("binarized", 1), ("binarized", 2), ("graded", 1), ("graded", 2))  # relevance, eta
FOLDS = 5
COMPARED: tuple[Weighting, ...] = ("none", "ideal-dcg", "saturating")
SPARED = ("bayes, true parameters", "none")  # known to be far below the others, and it takes its time
BY_EVIDENCE = (
    "mixture; sure documents weigh more",
    "mixture; sure queries weigh more",
    "affine, true parameters; sure documents weigh more",
)
KEYS = ("relevance", "eta", "run", "labels", "weighting")

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class World:
    """What the users of one run were shown and clicked: matrices queries x positions, NaN or 0 behind short lists."""

    collection: Collection
    user: PositionBased
    rows: Array
    relevance: Array
    impressions: Array
    clicks: Array

    @property
    def shown(self) -> Array:
        """Whether there was a document, and anybody saw it."""
        return (self.rows >= 0) & (self.impressions > 0)

    @classmethod
    def simulate(cls, collection: Collection, *, relevance: str, eta: float, run: int) -> World:
        train, rng = collection.train, np.random.default_rng([run, 1])
        rows = top_rows(train, production_ranker(train, rng=rng).score(train), length=TOP)
        kind = binarized if relevance == "binarized" else graded
        truth = np.where(rows < 0, np.nan, kind(train.grade, largest_grade=collection.largest_grade)[rows])
        user = PositionBased.with_eta(eta, positions=TOP)
        goal = round(CLICKS_PER_QUERY * train.queries)
        counts = user.simulate_counts(truth, clicks=goal, rng=np.random.default_rng([run, 2]))
        impressions = np.where(rows < 0, 0, counts.impressions[:, None])
        return cls(collection, user, rows, truth, impressions, counts.clicks)

    @property
    def rates(self) -> Array:
        """Clicks per impression."""
        return self.clicks / np.maximum(self.impressions, 1)

    def counts(self) -> Counts:
        """As counts; query and document ids are row numbers, of the matrices and of the split."""
        query, place = np.nonzero(self.shown)
        columns = (matrix[self.shown] for matrix in (self.rows, self.impressions, self.clicks))
        document, impressions, clicks = columns
        return Counts.from_arrays(query, document, place + 1, impressions, clicks)


def label_makers(relevance: str) -> dict[str, Callable[[World], Array]]:
    """The corrections compared: name, and how labels, a matrix, are made."""
    return {
        "none": lambda world: world.rates,
        "affine, true parameters": lambda world: labels_by(
            AffineCorrection(BiasParameters(world.user.alpha, world.user.beta)), world
        ),
        "mixture": lambda world: labels_by(MixtureCorrection(), world),
        "bayes, true parameters": lambda world: bayes_labels(
            world.user, world.relevance, world.clicks, world.impressions
        ),
        "true relevance": lambda world: world.relevance,
        "mixture, flat prior": lambda world: labels_by(MixtureCorrection(prior="flat"), world),
    }


def evidence_of(name: str, world: World, labels: Array) -> Array:
    """How sure the labels are, from 0 to 1, for the trials in which what is sure weighs more; 1 in all others.

    Of a mixture's label p it is (2p - 1)^2. Of an affine one it is s^2 / (s^2 + v), with v the variance of
    clicks / impressions / alpha and s = .2, which labels of documents differ by.
    """
    if name == "affine, true parameters; sure documents weigh more":
        rate = (world.clicks + 0.5) / (world.impressions + 1)
        variance = rate * (1 - rate) / (world.impressions + 1) / world.user.alpha**2
        return np.asarray(0.04 / (0.04 + variance))
    sure = (2 * labels - 1) ** 2
    if name == "mixture; sure documents weigh more":
        return np.asarray(sure)
    if name == "mixture; sure queries weigh more":
        mean = np.nanmean(np.where(world.shown, sure, np.nan), axis=1, keepdims=True)
        return np.broadcast_to(mean**4, labels.shape)  # the mean is .8 to 1: without a power it changes little
    return np.ones(labels.shape)


def labels_by(correction: Correction, world: World) -> Array:
    """The product's labels, as a matrix."""
    counts = world.counts()
    labels = correction.fit(counts).label(counts)
    by_row = np.full(world.collection.train.documents, np.nan)
    by_row[labels.doc_id] = labels.relevance
    return by_row[world.rows]


def collection_of(data: Path | None, *, queries: int, run: int) -> Collection:
    """A synthetic collection of the run's own; or the one in a folder, its queries cut anew into folds, in turn."""
    if data is None:
        return synthetic_collection(queries=queries, rng=np.random.default_rng([run, 0]))
    found = load_collection(data)
    return fold_of(found, run % FOLDS)


def fold_of(collection: Collection, fold: int) -> Collection:
    """As the LETOR folds are made of five parts: three parts for training, then one for vali and one for test."""
    everything = joined([collection.train, collection.vali, collection.test])
    ends = np.linspace(0, everything.queries, FOLDS + 1).round().astype(int)
    parts = [everything.part(ends[i % FOLDS], ends[i % FOLDS + 1]) for i in range(fold, fold + FOLDS)]
    return Collection(collection.name, joined(parts[:3]), parts[3], parts[4], collection.largest_grade)


def joined(splits: list[Split]) -> Split:
    """The queries of all splits, one after the other, with numbers as ids."""
    sizes = np.concatenate([split.sizes for split in splits])
    return Split(
        np.arange(len(sizes)),
        np.concatenate(([0], np.cumsum(sizes))),
        np.arange(sizes.sum()),
        np.concatenate([split.grade for split in splits]),
        np.concatenate([split.features for split in splits]),
    )


@dataclass(frozen=True)
class Job:
    """The rankers of one kind of users and one run; `missing` are the labels and weightings yet to be tried."""

    data: Path | None
    queries: int
    relevance: str
    eta: int
    run: int
    missing: tuple[tuple[str, Weighting], ...]
    lines: Path

    def __call__(self) -> str:
        """Train them, and append a line for each; says what was done."""
        collection = collection_of(self.data, queries=self.queries, run=self.run)
        world = World.simulate(collection, relevance=self.relevance, eta=self.eta, run=self.run)
        makers = label_makers(self.relevance)
        labels = {name: makers[name.split(";")[0]](world) for name in dict.fromkeys(name for name, _ in self.missing)}
        for name, weighting in self.missing:
            settings = LambdaMART(weighting=weighting)
            found = judged(world, labels[name], evidence_of(name, world, labels[name]), settings, seed=self.run)
            self.append({"labels": name, "weighting": weighting, **found})
        return f"{self.relevance}, eta {self.eta}, run {self.run}"

    def append(self, found: dict[str, Any]) -> None:
        """One line, in one write, so that the lines of several jobs do not mix."""
        line = {"relevance": self.relevance, "eta": self.eta, "run": self.run, **found}
        with self.lines.open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")


def judged(world: World, labels: Array, evidence: Array, settings: LambdaMART, *, seed: int) -> dict[str, float]:
    """nDCG@10 of a ranker trained on these labels, by the grades of both splits; and how far the labels were off."""
    shown, train = world.shown, world.collection.train
    query, document = np.nonzero(shown)[0], world.rows[shown]
    features = train.features[document]
    if (evidence == 1).all():
        ranker = settings.fit(make_examples((query, document, features), (query, document, labels[shown])), seed=seed)
    else:
        ranker = trained_by_evidence(query, features, labels[shown], evidence[shown], settings, seed=seed)
    found = {"rmse": round(float(np.sqrt(np.mean((labels - world.relevance)[shown] ** 2))), 4)}
    for name, split in (("vali", world.collection.vali), ("test", world.collection.test)):
        found[name] = round(evaluate(ranker.score(split.features), split.grade, split.query).mean, 5)
    return found


def trained_by_evidence(
    query: Array, features: Array, labels: Array, evidence: Array, settings: LambdaMART, *, seed: int
) -> FittedLambdaMART:
    """LambdaMART with the query weights of the settings times the evidence for each document."""
    row = np.arange(len(labels))
    examples = make_examples((query, row, features), (query, row, labels))
    kept = np.isin(query, examples.query_id)  # queries whose labels are all equal are left out
    data = settings._dataset(examples)
    data.weight = data.weight * evidence[kept]
    booster = lightgbm.train(settings._parameters(seed=seed), data, num_boost_round=settings.trees)
    return FittedLambdaMART(settings, features.shape[1], settings.trees, (), booster.model_to_string())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rankers trained so far; a last line that was cut off is not one."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--queries", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--weightings", nargs="+", default=COMPARED, choices=WEIGHTINGS)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    name = "ranking" if given.data is None else f"ranking-{given.data.name}"
    lines = SCRATCH / f"{name}.jsonl"
    SCRATCH.mkdir(exist_ok=True)
    if not given.summary:
        train_missing(given, lines)
    command = f"python benchmarks/ranking.py{f' --data {given.data.name} --runs {given.runs}' if given.data else ''}"
    figures = summary(read_lines(lines))
    write_result(name, command, figures)
    print(markdown(figures))


def train_missing(given: argparse.Namespace, lines: Path) -> None:
    """All jobs that are not done, each in a process of its own."""
    done = {tuple(line[key] for key in KEYS) for line in read_lines(lines)}
    jobs = []
    for run in range(given.runs):
        for relevance, eta in USERS:
            # One weighting after the other: what is there when time runs out can be compared.
            wanted = [(name, w) for w in given.weightings for name in label_makers(relevance) if (name, w) != SPARED]
            wanted += [(name, "ideal-dcg") for name in BY_EVIDENCE]
            missing = tuple(pair for pair in wanted if (relevance, eta, run, *pair) not in done)
            if missing:
                jobs.append(Job(given.data, given.queries, relevance, eta, run, missing, lines))
    with multiprocessing.get_context("spawn").Pool(given.processes, maxtasksperchild=1) as pool:
        for number, name in enumerate(pool.imap_unordered(Job.__call__, jobs)):
            print(f"{number + 1} of {len(jobs)} jobs: {name}", flush=True)


if __name__ == "__main__":
    main()
