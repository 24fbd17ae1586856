"""Simulated users whose skips mean less than a model believes: how far 50 judged queries lead.   -> figures

A share of sessions looks at nothing. It matters where:
    everywhere       half of the sessions of every query. All rates are halved, and fitted as they are: clicks already
                     say all there is to know, which is what the error of who knows shows
    by query         5 to 95 % of a query's sessions. Skips say less in some queries than in others
    by document      5 to 95 % of the sessions that show a document, as in feeds and ads: skips say less of some
A share finds its answer on the page:
    answer           half of the relevant documents answer on the page, and are clicked as rarely as others. Were it
                     half of the sessions of every relevant document, rates would be fitted as they are, again

Who knows has all true parameters, but not which session looked at nothing, nor how many of a query's or a document's
did, nor which documents answer. Worlds have 1,500 queries of ten documents, about 60 sessions each.

`by query` and `answer` were changed after first results, before the calibration had a weight of attention; the other
two show where judgments cannot help. That weight, and squares instead of logs, were chosen on the seeds 101 to 105 of
`by query` and `answer`. Figures are from other seeds, that were looked at once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

import clickmix as cm
from clickmix.counts.judgments import Grades

QUERIES, TOP, SESSIONS, JUDGED = 1_500, 10, 60, 50
SEEDS = range(201, 209)
WORLDS = ("everywhere", "by query", "by document", "answer")
SHARES = np.linspace(0.05, 0.95, 61)  # of sessions that look at something
POSITION = np.arange(1, TOP + 1)
PRIOR = 0.5 / np.sqrt(POSITION)
LOW, HIGH = 0.65 / POSITION**2, 0.98 / POSITION  # click rates of sessions that look


def simulate(world: str, rng: np.random.Generator) -> tuple[cm.Counts, np.ndarray, np.ndarray]:
    """Counts of a simulated log, true relevance (query x position), and the labels of who knows."""
    sessions = np.maximum(rng.poisson(SESSIONS * 2 * rng.permutation(np.linspace(0.2, 0.8, QUERIES))), 2)
    shown = np.repeat(sessions[:, None], TOP, axis=1)
    relevant = rng.random((QUERIES, TOP)) < PRIOR
    attractive = relevant & (rng.random(relevant.shape) >= (0.5 if world == "answer" else 0.0))
    shares = {"everywhere": np.array([0.5]), "answer": np.array([1.0])}.get(world, SHARES)
    looks = rng.choice(shares, (QUERIES, 1 if world == "by query" else TOP))
    clicks = rng.binomial(shown, looks * np.where(attractive, HIGH, LOW))

    def log_chance(rate: np.ndarray) -> np.ndarray:
        return np.asarray(clicks * np.log(rate) + (shown - clicks) * np.log1p(-rate))

    yes, no = np.stack([[log_chance(share * HIGH), log_chance(share * LOW)] for share in shares], axis=1)
    if world == "answer":
        yes = np.logaddexp(yes, no) + np.log(0.5)
    yes, no = yes + np.log(PRIOR), no + np.log1p(-PRIOR)
    either = np.logaddexp(yes, no)  # share x query x document
    known = either.sum(axis=2, keepdims=True) if world == "by query" else either
    weight = np.exp(known - known.max(axis=0))
    knows = (weight * np.exp(yes - either)).sum(axis=0) / weight.sum(axis=0)
    query, document = np.indices(relevant.shape).reshape(2, -1)
    counts = cm.Counts.from_arrays(query, document, document + 1, shown.ravel(), clicks.ravel())
    return counts, relevant, knows


def measure_world(world: str, mixture: str, seeds: range = SEEDS) -> dict[str, Any]:
    """The error of labels without and with 50 judged queries, and of who knows, on queries that were not judged.

    `way` is how much of what there is to gain is gained, of all seeds together.
    """
    found: dict[str, list[Any]] = defaultdict(list)
    for seed in seeds:
        rng = np.random.default_rng([seed, 19])
        counts, relevant, knows = simulate(world, rng)
        fit = cm.MixtureCorrection(mixture=mixture).fit(counts)
        judged = np.sort(rng.choice(QUERIES, JUDGED, replace=False))
        query, document = (ids.ravel() for ids in np.meshgrid(judged, np.arange(TOP), indexing="ij"))
        grades = Grades("simulated", query.astype(str), document.astype(str), relevant[query, document].astype(float))
        after = fit.with_judgments(counts, grades)
        assert after.judged is not None
        rest = np.setdiff1d(np.arange(QUERIES), judged)
        labels = {"without": fit.label(counts).relevance, "with judgments": after.label(counts).relevance}
        for name, values in {**labels, "who knows": knows}.items():
            error = np.sqrt(np.mean((values.reshape(relevant.shape)[rest] - relevant[rest]) ** 2))
            found[name].append(round(float(error), 4))
        found["used"].append(after.judged.calibration.used)
        print(world, mixture, seed, {name: values[-1] for name, values in found.items()}, flush=True)
    without, judged_too, limit = (np.mean(found[name]) for name in ("without", "with judgments", "who knows"))
    gain = float(without - limit)
    return {**found, "to gain": round(gain, 4), "way": round(float(without - judged_too) / gain, 3) if gain else None}


def measure_worlds() -> dict[str, Any]:
    """All worlds, with the default mixture and the paper's."""
    return {world: {mixture: measure_world(world, mixture) for mixture in ("auto", "binomial")} for world in WORLDS}
