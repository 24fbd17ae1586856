"""Slow and obvious versions of what datasets/ does at once, and what is measured on the synthetic collection."""

from __future__ import annotations

from dataclasses import dataclass

import lightgbm
import numpy as np
from numpy.typing import NDArray

from clickmix.features.split import Collection, Split, binarized
from clickmix.lab.collections.production import PARAMETERS, TREES, production_ranker


def letor_rows(text: str) -> list[tuple[int, int, dict[int, float]]]:
    """Grade, query and features of each line."""
    rows = []
    for line in text.split("\n"):
        words = line.partition("#")[0].split()
        if words:
            pairs = [word.split(":") for word in words[2:]]
            features = {int(feature): float(value) for feature, value in pairs}
            rows.append((int(words[0]), int(words[1].removeprefix("qid:")), features))
    return rows


def dense(rows: list[tuple[int, int, dict[int, float]]]) -> NDArray[np.float32]:
    width = max((max(features, default=0) for _, _, features in rows), default=0)
    return np.array([[features.get(i + 1, 0.0) for i in range(width)] for _, _, features in rows], np.float32)


def ndcg_at_10(split: Split, scores: NDArray[np.floating]) -> float:
    """Mean over the queries with a relevant document; gain 2^grade - 1; equal scores in the order of the rows."""
    values = []
    for begin, end in zip(split.offsets[:-1], split.offsets[1:], strict=True):
        grades = split.grade[begin:end].astype(float)
        order = np.argsort(-scores[begin:end], kind="stable")
        ideal = np.sort(grades)[::-1]
        if ideal[0] > 0:
            values.append(_dcg(grades[order][:10]) / _dcg(ideal[:10]))
    return float(np.mean(values))


def _dcg(grades: NDArray[np.float64]) -> float:
    return float(np.sum((2.0**grades - 1) / np.log2(np.arange(2, len(grades) + 2))))


@dataclass(frozen=True)
class Measured:
    """What a collection is fixed to be, before any correction is scored on it. The last five are nDCG@10 on test."""

    grade_shares: tuple[float, ...]
    without_grade_above_2: float
    smallest_query: int
    largest_query: int
    random: float
    production: float
    raw_clicks: float
    true_relevance: float

    @property
    def way_to_true_order(self) -> float:
        """How far production is from random to the order of the grades themselves, whose nDCG is 1."""
        return (self.production - self.random) / (1 - self.random)

    @property
    def way_to_true_ranker(self) -> float:
        """How far production is from random to a ranker trained on true relevance."""
        return (self.production - self.random) / (self.true_relevance - self.random)

    @property
    def gap(self) -> float:
        """What is lost by training on raw clicks instead of true relevance."""
        return self.true_relevance - self.raw_clicks


def measure(collection: Collection, *, rng: np.random.Generator) -> Measured:
    train, test = collection.train, collection.test
    ranker = production_ranker(train, rng=rng)
    shown = ranker.top(train, length=20)
    relevance = binarized(train.grade, largest_grade=collection.largest_grade)
    rates = raw_click_rates(shown, relevance, rng=rng)
    best = np.maximum.reduceat(train.grade, train.offsets[:-1])
    return Measured(
        grade_shares=tuple((np.bincount(train.grade, minlength=5) / train.documents).tolist()),
        without_grade_above_2=float((best <= 2).mean()),
        smallest_query=int(train.sizes.min()),
        largest_query=int(train.sizes.max()),
        random=float(np.mean([ndcg_at_10(test, rng.random(test.documents)) for _ in range(5)])),
        production=ndcg_at_10(test, ranker.score(test)),
        raw_clicks=ndcg_at_10(test, lambdamart_scores(train, shown, rates, test)),
        true_relevance=ndcg_at_10(test, lambdamart_scores(train, shown, relevance, test)),
    )


def raw_click_rates(
    shown: NDArray[np.int64], relevance: NDArray[np.float64], *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Clicks per impression under the paper's PBM (eta = 1) and trust bias, with 8M clicks per 18,919 queries."""
    k = np.arange(1, shown.shape[1] + 1)
    r = relevance[shown]
    probability = (1 / k) * (r * (1 - (np.minimum(k, 20) + 1) / 100) + (1 - r) * 0.65 / np.minimum(k, 10))
    sessions = round(8_000_000 / 18_919 * len(shown) / probability.sum(axis=1).mean())
    impressions = rng.multinomial(sessions, np.full(len(shown), 1 / len(shown)))[:, None]
    rates = np.zeros(len(relevance))
    rates[shown] = rng.binomial(impressions, probability) / impressions
    return rates


def lambdamart_scores(
    train: Split, shown: NDArray[np.int64], labels: NDArray[np.float64], test: Split
) -> NDArray[np.float64]:
    """Scores from the production ranker's kind of LambdaMART, trained on the documents shown; gain 2^(4 label) - 1."""
    levels = np.arange(1001) / 1000
    data = lightgbm.Dataset(
        train.features[shown.ravel()],
        np.round(1000 * labels[shown.ravel()]),
        group=np.full(len(shown), shown.shape[1]),
    )
    booster = lightgbm.train({**PARAMETERS, "label_gain": (2 ** (4 * levels) - 1).tolist()}, data, TREES)
    scores: NDArray[np.float64] = booster.predict(test.features)
    return scores
