"""Labels with features beside labels without: their errors, intervals, and the rankers trained on them.

The synthetic collection with 1,000 training queries, and the one in --data; top 20 of the production ranker; position-
based users with trust bias. A run is a seed, which nothing was chosen on: both labels see the same lists and clicks.
The features file has all documents of the training queries, also those that were never shown. The limit is the error of
the Bayes posterior with true parameters and the prior of each position. Both rankers are trained on the documents that
were shown, and judged on the grades of vali and test queries together. Each world is a line in bench/features.jsonl at
once, and what is there is not done again.

    python benchmarks/features.py --data MQ2008       what is missing, then the summary
    python benchmarks/features.py --time              60,000 documents with 136 features: processor seconds
    python benchmarks/features.py --data MQ2008 --errors    errors alone, of 40 more runs where clicks say nearly all
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

import ranking
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.mixture_based.featured import open_feature_file
from clickmix.features import Collection, binarized, open_features
from clickmix.lab.experiments.labels import bayes_labels
from clickmix.rankers import LambdaMART
from measuring import RESULTS, SCRATCH, write_result
from ranking import World, collection_of, judged

RUNS = range(100, 105)
QUERIES = 1000
SETTINGS = [(clicks, eta) for clicks in (30_000, 200_000, 2_000_000) for eta in (1, 2)]
# Where clicks say nearly all about MQ2008, errors come from one document to ten: five runs would show chance.
CLEAR, MORE_RUNS = [(200_000, 1), (2_000_000, 2)], range(200, 240)
KEYS = ("collection", "clicks", "eta", "run")
LINES = SCRATCH / "features.jsonl"
NDCG = ("vali", "test")

Array = np.ndarray[Any, Any]


def world_of(collection: Collection, *, clicks: int, eta: int, run: int) -> World:
    """What users of a run clicked; about so many clicks in all."""
    ranking.CLICKS_PER_QUERY = clicks / collection.train.queries
    return World.simulate(collection, relevance="binarized", eta=eta, run=run)


def features_of(world: World) -> Any:
    """All documents of the training queries, with the ids of the log: row numbers."""
    train = world.collection.train
    return open_features((train.query, np.arange(train.documents), train.features))


def measured(job: tuple[Path | None, int, int, int]) -> dict[str, Any]:
    """One world: errors, intervals and rankers of labels without and with features."""
    data, clicks, eta, run = job
    collection = collection_of(data, queries=QUERIES, run=run)
    world = world_of(collection, clicks=clicks, eta=eta, run=run)
    counts, shown = world.counts(), world.shown
    limit = bayes_labels(world.user, world.relevance, world.clicks, world.impressions)
    found: dict[str, Any] = {"limit": rmse((limit - world.relevance)[shown])}
    begun = time.process_time()
    plain = MixtureCorrection().fit(counts)
    fitted = plain.with_features(counts, open_feature_file(features_of(world)))
    found["seconds"] = round(time.process_time() - begun, 1)
    featured = fitted.featured
    if featured is None:
        raise SystemExit("nothing was learned from this log")
    found |= {"used": featured.helps, "gained": featured.gained, "gained_error": featured.gained_error}
    for name, fit in (("without", plain), ("with", fitted)):
        if name == "with" and not featured.helps:
            found["with"] = found["without"]
            continue
        labels = fit.label(counts)
        found[name] = errors(labels, truth_of(world), labels.impressions > 0)
        by_row = np.full(collection.train.documents, np.nan)
        by_row[labels.doc_id] = labels.relevance
        found[name] |= judged(world, by_row[world.rows], np.ones(world.rows.shape), LambdaMART(), seed=run)
        if name == "with":
            found["never shown"] = errors(labels, truth_of(world), labels.impressions == 0)
    name = "synthetic" if data is None else data.name
    return {"collection": name, "clicks": clicks, "eta": eta, "run": run, **found}


def truth_of(world: World) -> Array:
    """Relevance of every document of the training queries."""
    train = world.collection.train
    return np.asarray(binarized(train.grade, largest_grade=world.collection.largest_grade))


def errors(labels: Any, truth: Array, some: Array) -> dict[str, float]:
    """Of some labels: root mean squared error, how often intervals hold the truth, and how wide they are."""
    relevance, low, high = (column[some] for column in (labels.relevance, labels.low, labels.high))
    true = truth[labels.doc_id[some]]
    holds = (low <= true + 1e-9) & (true - 1e-9 <= high)
    return {"rmse": rmse(relevance - true), "coverage": float(holds.mean()), "width": float((high - low).mean())}


def rmse(off: Array) -> float:
    return float(np.sqrt(np.mean(off**2)))


def summary(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per collection, clicks and eta: medians of errors, means of the rest, nDCG@10 paired by run."""
    rows = []
    for key in sorted({tuple(line[name] for name in KEYS[:3]) for line in lines}):
        own = [line for line in lines if tuple(line[name] for name in KEYS[:3]) == key]
        if len(own) < 2:
            continue  # a single run has no error
        gain = np.array([ndcg(line["with"]) - ndcg(line["without"]) for line in own])
        error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
        mean = float(gain.mean())
        p = 1.0 if not gain.any() else float(2 * student.sf(abs(mean) / error, len(gain) - 1))
        row = dict(zip(KEYS[:3], key, strict=True)) | {
            "runs": len(own),
            "features used in": sum(line["used"] for line in own),
            "error over limit, without": _median(own, lambda line: line["without"]["rmse"] / line["limit"]),
            "error over limit, with": _median(own, lambda line: line["with"]["rmse"] / line["limit"]),
            "runs with less error": sum(line["with"]["rmse"] < line["without"]["rmse"] for line in own),
            "ndcg without": round(float(np.mean([ndcg(line["without"]) for line in own])), 4),
            "ndcg gain": round(mean, 4),
            "ndcg gain, half of a 95 % interval": round(float(student.ppf(0.975, max(len(own) - 1, 1))) * error, 4),
            "p": round(p, 4),
        }
        for what in ("coverage", "width"):
            for name in ("without", "with"):
                row[f"{what} {name}"] = round(float(np.mean([line[name][what] for line in own])), 4)
        unseen = [
            line["never shown"]
            for line in own
            if "never shown" in line and line["never shown"]["rmse"] == line["never shown"]["rmse"]
        ]
        for what in ("rmse", "coverage", "width"):
            row[f"never shown, {what}"] = round(float(np.mean([each[what] for each in unseen])), 4) if unseen else None
        rows.append(row)
    return rows


def _median(lines: list[dict[str, Any]], of: Any) -> float:
    return round(float(np.median([of(line) for line in lines])), 4)


def ndcg(found: dict[str, float]) -> float:
    """nDCG@10 of vali and test queries: nobody chose anything by either."""
    return float(np.mean([found[name] for name in NDCG]))


def measure_time() -> dict[str, Any]:
    """Processor seconds with features of 60,000 documents, on one thread; without the simulation."""
    collection = collection_of(None, queries=3000, run=200)
    world = world_of(collection, clicks=200_000, eta=1, run=200)
    counts, train = world.counts(), collection.train
    query, document = np.nonzero(world.shown)[0], world.rows[world.shown]
    features = open_features((query, document, train.features[document]))
    begun = time.process_time()
    MixtureCorrection().fit(counts).label(counts).columns  # noqa: B018
    plain = time.process_time()
    MixtureCorrection(features=features).fit(counts).label(counts).columns  # noqa: B018
    return {
        "documents": len(document),
        "features": train.features.shape[1],
        "processor seconds without features": round(plain - begun, 1),
        "processor seconds with features": round(time.process_time() - plain, 1),
    }


def measure_errors(data: Path) -> list[dict[str, Any]]:
    """Squared errors of 40 more runs, added up, where clicks say nearly all."""
    rows = []
    for clicks, eta in CLEAR:
        off = np.array([_squared_errors(data, clicks, eta, run) for run in MORE_RUNS])
        limit, without, with_features = off.sum(axis=0).tolist()
        change = off[:, 2] - off[:, 1]
        rows.append(
            {
                "collection": data.name,
                "clicks": clicks,
                "eta": eta,
                "runs": len(off),
                "squared errors, limit": round(limit, 2),
                "squared errors, without": round(without, 2),
                "squared errors, with": round(with_features, 2),
                "runs with less error": int((change < 0).sum()),
                "change per run": round(float(change.mean()), 4),
                "change per run, standard error": round(float(change.std(ddof=1) / np.sqrt(len(off))), 4),
            }
        )
    return rows


def _squared_errors(data: Path, clicks: int, eta: int, run: int) -> tuple[float, ...]:
    """Of the limit, of labels without features, and with: sums over the documents that were shown."""
    world = world_of(collection_of(data, queries=QUERIES, run=run), clicks=clicks, eta=eta, run=run)
    limit = bayes_labels(world.user, world.relevance, world.clicks, world.impressions)
    counts, truth = world.counts(), truth_of(world)
    plain = MixtureCorrection().fit(counts)
    sums = [float(((limit - world.relevance)[world.shown] ** 2).sum())]
    for fit in (plain, plain.with_features(counts, open_feature_file(features_of(world)))):
        labels = fit.label(counts)
        sums.append(float(((labels.relevance - truth[labels.doc_id])[labels.impressions > 0] ** 2).sum()))
    return tuple(sums)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    LINES.parent.mkdir(exist_ok=True)
    lines = [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []
    before = json.loads((RESULTS / "features.json").read_text()) if (RESULTS / "features.json").exists() else {}
    figures = before.get("figures", before)
    figures |= {"time": measure_time()} if given.time else {}
    figures |= {"many runs": measure_errors(given.data)} if given.errors else {}
    if not (given.summary or given.time or given.errors):
        done = {tuple(line[key] for key in KEYS) for line in lines}
        collections = [given.data, None] if given.data else [None]  # the small one first
        jobs = [(data, *setting, run) for setting in SETTINGS for data in collections for run in RUNS]
        jobs = [job for job in jobs if (job[0].name if job[0] else "synthetic", *job[1:]) not in done]
        with multiprocessing.get_context("spawn").Pool(given.processes, maxtasksperchild=1) as pool:
            for number, line in enumerate(pool.imap_unordered(measured, jobs)):
                with LINES.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                lines.append(line)
                print(f"{number + 1} of {len(jobs)}: {[line[key] for key in KEYS]}", flush=True)
    figures |= {"rows": summary(lines)} if lines else {}
    write_result("features", "python benchmarks/features.py --data MQ2008", figures)


if __name__ == "__main__":
    main()
