"""Calibration: how much each kind of evidence weighs, and what grades mean.   judged -> Calibration

Judges give a document a step j of their scale. Two models predict it from clicks:
    meaning    P(j) = sum over the model's grades g of P(g | clicks) P(j | g)
    weights    logit P(step >= j) = w_prior P + w_click C + w_skip S + w_exposure log n + w_position L
                                    + w_attention S (A - 1) + cut_j
P, C and S are the log odds of the highest against the lowest grade from the prior, clicks and skips; n are impressions.
L is the mean log position: the engine may know more about relevance than clicks show. A is how much more people click
the query's other documents than in a typical query: if they look less, a skip says less. The model without judgments
has the weights (1, 1, 1, 0, 0, 0), and a ridge pulls towards them. Held-out judged queries choose how strongly, and
whether either model is used at all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np

from clickmix.storage.records import MismatchError, Range
from clickmix.types import Floats, Ints

AS_IT_IS = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])  # weights of the model without judgments
STRENGTHS = (1.0, 4.0, 16.0, 64.0)  # strengths of the ridge, in judged documents
FOLDS = 10
EM_STEPS = 50
FEWEST_QUERIES = 5
CLEARLY = 1.64  # standard errors by which held-out judged queries must gain: one-sided, 5%
MOST_DOCUMENTS = 50_000  # judged documents to learn from; if there are more, whole queries drawn at random
COMMON = 0.1  # the lowest grade needs at least this share of the judged documents
MOST_STEPS = 8
ONE_OFF = 0.05  # how likely a judgment one step off is, relative to the right one
SURE = 0.95  # how often the interval of a label contains the document's grade
PRIOR_DOCUMENTS = 4.0  # pseudo-documents of every grade of the model, judged like documents overall

Finite = Annotated[float, Range(-1e9, 1e9)]  # so that odds do not overflow, even in a damaged file
Used = Literal["nothing", "meaning", "weights"]


@dataclass(frozen=True)
class DocumentEvidence:
    """What clicks say about documents: log odds of the prior, clicks and skips; log impressions, mean log position.

    `attention` compares clicks on the query's other documents with a typical query; 1 means as many. `grades`
    (document x grade) has the probability of each grade of the model.
    """

    prior: Floats
    clicks: Floats
    skips: Floats
    exposure: Floats
    position: Floats
    attention: Floats
    relevance: Floats
    low: Floats
    high: Floats
    grades: Floats

    @property
    def columns(self) -> Floats:
        """Document x weight."""
        by_attention = self.skips * (self.attention - 1)
        return np.stack([self.prior, self.clicks, self.skips, self.exposure, self.position, by_attention], axis=1)

    def some(self, rows: Ints) -> DocumentEvidence:
        """Some of them."""
        return DocumentEvidence(*(values[rows] for values in vars(self).values()))


@dataclass(frozen=True)
class Scale:
    """The judges' grades as steps. `steps` has the relevance of each; `lowest` and `highest` are the grades of 0 and 1.

    Grades below the lowest common grade count as that. Many different grades become eight steps.
    """

    lowest: float
    highest: float
    steps: tuple[Annotated[float, Range(0, 1)], ...]

    def check_fields(self) -> None:
        """Steps ascend from 0 to 1."""
        ascending = all(a < b for a, b in itertools.pairwise(self.steps))
        if len(self.steps) < 2 or not ascending or (self.steps[0], self.steps[-1]) != (0, 1):
            raise MismatchError("expected ascending numbers from 0 to 1", at="steps")

    @classmethod
    def of(cls, grades: Floats) -> Scale | None:
        """The scale of these grades; None if all are the same."""
        values, counts = np.unique(grades, return_counts=True)
        common = values[counts >= COMMON * counts.sum()]
        lowest, highest = float(common[0] if len(common) else values[0]), float(values[-1])
        lowest = float(values[0]) if lowest == highest else lowest
        if lowest == highest:
            return None
        kept = np.unique((np.maximum(values, lowest) - lowest) / (highest - lowest))
        steps = kept if len(kept) <= MOST_STEPS else np.linspace(0, 1, MOST_STEPS)
        return cls(lowest, highest, tuple(steps.tolist()))

    def step(self, grades: Floats) -> Ints:
        """The number of the step nearest to each grade."""
        at = np.clip((grades - self.lowest) / (self.highest - self.lowest), 0, 1)
        steps = np.array(self.steps)
        return np.asarray(np.searchsorted((steps[1:] + steps[:-1]) / 2, at, side="right"))


@dataclass(frozen=True)
class Gain:
    """By how much squared errors per document fall in held-out judged queries, and its standard error over queries.

    Squares, not logs: evidence that is counted too often is overconfident, and one such document would outweigh all.
    """

    value: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether it is beyond chance."""
        return self.value > CLEARLY * self.error

    @classmethod
    def between(cls, before: Floats, after: Floats) -> Gain:
        """From the squared errors of each query before and after."""
        gains = before - after
        return cls(float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(len(gains)))


@dataclass(frozen=True)
class Meaning:
    """How common each step is (`shares`: grade x step) among documents of each grade of the model."""

    shares: tuple[tuple[Annotated[float, Range(0, 1)], ...], ...]

    def above(self, documents: DocumentEvidence) -> Floats:
        """Document x cut: the probability that a judge puts it above."""
        shares = np.array(self.shares)
        return np.asarray(documents.grades @ np.cumsum(shares[:, ::-1], axis=1)[:, ::-1][:, 1:])


@dataclass(frozen=True)
class Weights:
    """How much each kind of evidence counts; the cuts between steps, descending.

    `attention` is how far a skip's weight follows the clicks on the query's other documents: 0 not at all, 1 fully.
    """

    prior: Finite
    click: Finite
    skip: Finite
    exposure: Finite
    position: Finite
    attention: Finite
    cuts: tuple[Finite, ...]

    def above(self, documents: DocumentEvidence) -> Floats:
        """Document x cut: the probability that a judge puts it above."""
        weights = np.array([self.prior, self.click, self.skip, self.exposure, self.position, self.attention])
        return _expit((documents.columns @ weights)[:, None] + np.array(self.cuts))


@dataclass(frozen=True)
class Calibration:
    """What judgments say about clicks, and what of it is `used` for documents that were not judged.

    used      nothing: other labels stay as the model gives them. meaning: labels are on the judges' scale, in the same
              order. weights: the evidence is weighed, too
    related   what held-out judged queries gain from clicks, compared with knowing only how common each step is
    gained    what they gain from the weights, compared with the meaning alone
    """

    scale: Scale
    meaning: Meaning
    weights: Weights
    used: Used
    queries: int
    documents: int
    related: Gain | None = None
    gained: Gain | None = None

    def check_fields(self) -> None:
        """There are as many shares as steps, adding up to 1, and a cut between every two steps."""
        steps = len(self.scale.steps)
        for g, shares in enumerate(self.meaning.shares):
            if len(shares) != steps or not math.isclose(sum(shares), 1, abs_tol=1e-9):
                raise MismatchError("expected a share for each step, adding up to 1", at=f"meaning.shares[{g}]")
        cuts = self.weights.cuts
        if len(cuts) != steps - 1 or any(a < b for a, b in itertools.pairwise(cuts)):
            raise MismatchError("expected a descending number between every two steps", at="weights.cuts")

    def probabilities(self, documents: DocumentEvidence) -> Floats:
        """Document x step: what a judge would say."""
        above = (self.weights if self.used == "weights" else self.meaning).above(documents)
        edges = np.hstack([np.ones((len(above), 1)), above, np.zeros((len(above), 1))])
        return np.asarray(np.maximum(edges[:, :-1] - edges[:, 1:], 0))

    def labels(self, documents: DocumentEvidence, judged: Ints) -> tuple[Floats, Floats, Floats]:
        """Relevance, low and high; `judged` is the step that a judge gave a document, or -1.

        A judgment is strong evidence, but not certain: one a step off is a twentieth as likely as the right one.
        """
        steps = np.array(self.scale.steps)
        probable = self.probabilities(documents)
        known = judged >= 0
        apart = np.abs(np.arange(len(steps))[:, None] - np.arange(len(steps)))
        says = ONE_OFF**apart / (ONE_OFF**apart).sum(axis=0)  # said x true
        probable[known] *= says[judged[known]]
        probable /= probable.sum(axis=1, keepdims=True)
        relevance = np.clip(probable @ steps, 0, 1)
        below = np.cumsum(probable, axis=1)
        low, high = (
            steps[np.minimum((below <= share).sum(axis=1), len(steps) - 1)]
            for share in ((1 - SURE) / 2, (1 + SURE) / 2)
        )
        if self.used == "nothing":
            relevance = np.where(known, relevance, documents.relevance)
            low, high = np.where(known, low, documents.low), np.where(known, high, documents.high)
        return relevance, np.minimum(low, relevance), np.maximum(high, relevance)


def calibrate(documents: DocumentEvidence, judged: Ints, query: Ints, scale: Scale) -> Calibration:
    """Learn from judged documents, each with its step and its query (numbered from 0)."""
    rng = np.random.default_rng(0)
    seen = int(query.max()) + 1, len(judged)
    if len(query) > MOST_DOCUMENTS:
        order = rng.permutation(seen[0])
        before = np.cumsum(np.bincount(query)[order]) - np.bincount(query)[order]
        kept = np.isin(query, order[before < MOST_DOCUMENTS])
        documents, judged = documents.some(kept), judged[kept]
        query = np.unique(query[kept], return_inverse=True)[1]
    sample = _Sample(documents, judged, query, scale)
    everything = np.arange(len(judged))
    meaning, weights = sample.meaning(everything), sample.weights(everything, strength=STRENGTHS[-1])
    if sample.queries < FEWEST_QUERIES:
        return Calibration(scale, meaning, weights, "nothing", *seen)
    fold = rng.permutation(sample.queries) % min(FOLDS, sample.queries)
    nothing, meant = (sample.held_out(fold, fit) for fit in (sample.shares, sample.meaning))
    weighed = {each: sample.held_out(fold, partial(sample.weights, strength=each)) for each in STRENGTHS}
    best = min(STRENGTHS, key=lambda strength: float(weighed[strength].mean()))
    weights = sample.weights(everything, strength=best)
    gained, related = Gain.between(meant, weighed[best]), Gain.between(nothing, weighed[best])
    if gained.clear and related.clear:
        return Calibration(scale, meaning, weights, "weights", *seen, related, gained)
    by_meaning = Gain.between(nothing, meant)
    used: Used = "meaning" if by_meaning.clear and sample.gain_of_labels(fold).clear else "nothing"
    return Calibration(scale, meaning, weights, used, *seen, by_meaning, gained)


class _Sample:
    """Judged documents: the evidence about them, their steps and queries."""

    def __init__(self, documents: DocumentEvidence, judged: Ints, query: Ints, scale: Scale) -> None:
        self.documents, self.judged, self.query = documents, judged, query
        self.steps = np.array(scale.steps)
        self.beyond = (judged[:, None] >= np.arange(1, len(self.steps))).astype(np.float64)
        self.queries = int(query.max()) + 1
        spread = documents.columns.var(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)  # a constant column has no weight to learn

    def shares(self, rows: Ints) -> Meaning:
        """Only how common each step is, whatever clicks say."""
        counts = np.bincount(self.judged[rows], minlength=len(self.steps)) + 0.5
        shares = tuple((counts / counts.sum()).tolist())
        return Meaning((shares,) * self.documents.grades.shape[1])

    def meaning(self, rows: Ints) -> Meaning:
        """How common each step is among documents of each grade, by EM: a document's grade is hidden.

        Grades of the model that judges put in another order are joined, so that the order of labels stays.
        """
        known, judged = self.documents.grades[rows], self.judged[rows]
        pseudo = PRIOR_DOCUMENTS * np.array(self.shares(rows).shares)
        said = np.eye(len(self.steps))[judged]
        counts = known.T @ said + pseudo
        for _ in range(EM_STEPS):
            hidden = known * (counts / counts.sum(axis=1, keepdims=True)).T[judged]
            hidden /= hidden.sum(axis=1, keepdims=True)
            counts = np.einsum("dg,dj->gj", hidden, said) + pseudo
        return Meaning(tuple(tuple(each.tolist()) for each in _in_order(counts, self.steps)))

    def weights(self, rows: Ints, *, strength: float) -> Weights:
        """Weights of the evidence, pulled towards those of the model."""
        found, cuts = _climb(self.documents.columns[rows], self.beyond[rows], AS_IT_IS, strength * self.spread)
        prior, click, skip, exposure, position, attention = found.tolist()
        return Weights(prior, click, skip, exposure, position, attention, tuple(cuts.tolist()))

    def held_out(self, fold: Ints, fit: Callable[[Ints], Meaning | Weights]) -> Floats:
        """Squared errors per document of each query, summed over cuts, fitted without the query's fold."""
        return self._of_query(((self.beyond - self._predicted(fold, fit)) ** 2).sum(axis=1))

    def gain_of_labels(self, fold: Ints) -> Gain:
        """What labels on the judges' scale gain over those of the model, in squared error to judged relevance."""
        meant = self._predicted(fold, self.meaning) @ np.diff(self.steps)
        before, after = ((self.steps[self.judged] - label) ** 2 for label in (self.documents.relevance, meant))
        return Gain.between(self._of_query(before), self._of_query(after))

    def _predicted(self, fold: Ints, fit: Callable[[Ints], Meaning | Weights]) -> Floats:
        above = np.zeros(self.beyond.shape)
        for k in range(int(fold.max()) + 1):
            here = fold[self.query] == k
            above[here] = fit(np.flatnonzero(~here)).above(self.documents.some(here))
        return above

    def _of_query(self, values: Floats) -> Floats:
        return np.asarray(np.bincount(self.query, values) / np.bincount(self.query))


def _in_order(counts: Floats, steps: Floats) -> list[Floats]:
    """Shares from counts (grade x step); neighbouring grades are joined if the higher has the lower mean step."""
    joined: list[tuple[Floats, int]] = []
    for row in counts:
        joined.append((row, 1))
        while len(joined) > 1 and _mean(joined[-1][0], steps) < _mean(joined[-2][0], steps):
            (one, n), (other, m) = joined.pop(), joined.pop()
            joined.append((one + other, n + m))
    return [row / row.sum() for row, grades in joined for _ in range(grades)]


def _mean(row: Floats, steps: Floats) -> float:
    return float(row @ steps / row.sum())


def _climb(columns: Floats, above: Floats, target: Floats, pull: Floats) -> tuple[Floats, Floats]:
    """Find the best weights and cuts by Newton's method, with weights pulled to `target`; the problem is convex."""
    share = (above.sum(axis=0) + 0.5) / (len(above) + 1)
    start = np.log(share) - np.log1p(-share) - float((columns @ target).mean())
    first = np.concatenate([target, start])
    ridge = np.concatenate([pull + 1e-9, np.full(len(start), 1e-3)])  # a cut that no document is beyond stays finite
    w, now = len(target), first.copy()

    def loss(at: Floats) -> float:
        off, odds = at - first, (columns @ at[:w])[:, None] + at[w:]
        of_document = (np.logaddexp(0, odds) - above * odds).sum(axis=1)
        return float(of_document.sum() + (ridge * off * off).sum() / 2)

    value = loss(now)
    for _ in range(100):
        p = _expit((columns @ now[:w])[:, None] + now[w:])
        off, bend = p - above, p * (1 - p)
        slope = np.concatenate([np.einsum("dw,dj->w", columns, off), off.sum(axis=0)]) + ridge * (now - first)
        curve = np.diag(ridge)
        curve[:w, :w] += np.einsum("dv,d,dw->vw", columns, bend.sum(axis=1), columns)
        curve[:w, w:] = np.einsum("dw,dj->wj", columns, bend)
        curve[w:, :w] = curve[:w, w:].T
        curve[w:, w:] += np.diag(bend.sum(axis=0))
        step = np.linalg.solve(curve, slope)
        length = 1.0
        while (after := loss(now - length * step)) > value and length > 1e-6:
            length /= 2
        if after > value:
            break
        now, gain, value = now - length * step, value - after, after
        if gain < 1e-9 * len(above):
            break
    return now[:w], now[w:]


def _expit(x: Floats) -> Floats:
    return np.asarray((1 + np.tanh(x / 2)) / 2)
