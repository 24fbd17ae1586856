"""Attraction times examination: the most likely factors of click rates.   cells -> examination, attraction

P(click) = attraction of the document * examination of the place it is shown in. A place is whatever examination depends
on: the position, or the position and the nearest click above it. The log-likelihood is concave in the logarithms of
both factors, so it has one top. EM creeps towards it. This module solves for every document's attraction, and searches
only the examination, by Newton's method: it reaches the same top in seconds.

Clicks fix only products, so examination is set to 1 where it is highest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clickmix.corrections.affine_em import CodedCells
from clickmix.corrections.parameters import LEAST_ALPHA
from clickmix.types import Floats, Ints

MOST_CERTAIN = 1 - 1e-12  # the highest click probability: at 1, a skip would have no likelihood
PRECISION, MOST_STEPS = 1e-8, 60  # for attraction: Newton's next error is its square; halving gets anywhere
FLAT, NEARLY_FLAT, TINY = 1e-11, 1e-6, 1e-4  # slopes per impression, and steps, that count as 0
MOST_LOOKS, LEAST_DAMPING, LONGEST, ROUNDING = 200, 1e-9, 2.0, 1e-13  # settings of Newton's steps
MANY_CELLS = 500_000
FEW_PLACES, BLOCK = 100, 4_096  # with more places, a table of documents and places is mostly empty
LIKELY, HALVINGS = 1.9207294, 14  # half of chi-squared's 95% quantile; ends of intervals are right to 1e-4
NODES, PRIOR_STEPS = 32, 30  # a grid of attractions, and EM steps for how common each is


@dataclass(frozen=True, eq=False)
class Examination:
    """The most likely examination of every place, the number of steps, and whether they reached the top.

    It is NaN for places that showed no document that was ever clicked: they say nothing.
    """

    of_place: Floats
    steps: int
    converged: bool


def fit_examination(cells: CodedCells) -> Examination:
    """Find the most likely examination, with the best attraction for each; `position` codes the place.

    With many cells, the climb starts from the maximum for a sample of the documents.
    """
    places = cells.positions
    # Documents without clicks have attraction 0 and say nothing about examination.
    cells = _of_documents(cells, cells.by_document(cells.clicks) > 0)
    if not len(cells.clicks):
        return Examination(np.ones(places), 0, True)
    clicks, impressions = (np.bincount(cells.position, column, places) for column in (cells.clicks, cells.impressions))
    rates = np.maximum(clicks / np.maximum(impressions, 1), LEAST_ALPHA)
    start, steps = np.log(np.maximum(rates / rates.max(), LEAST_ALPHA)), 0
    if len(cells.clicks) > MANY_CELLS:
        chosen = np.random.default_rng(0).random(cells.documents) < MANY_CELLS / len(cells.clicks) / 2
        start, steps, _ = _climb(_of_documents(cells, chosen), start)
    best, more, converged = _climb(cells, start)
    examination = np.maximum(np.exp(best - best[impressions > 0].max()), LEAST_ALPHA)
    examination[impressions == 0] = np.nan
    return Examination(examination, steps + more, converged)


def _climb(cells: CodedCells, start: Floats) -> tuple[Floats, int, bool]:
    """Newton's method in the logarithm of examination, with attraction solved for; a step that leads down is shortened.

    Examination is at most 1. A place stays where it is while its slope leads out of these bounds. A tiny step squares
    the error, so the search ends after it without another look.
    """
    shown, lowest = cells.impressions.sum(), np.log(LEAST_ALPHA)
    point, damping = start, LEAST_DAMPING
    here = _look(cells, point, np.full(cells.documents, 0.5))
    for step in range(MOST_LOOKS):
        free = ~((point >= 0) & (here.slopes >= 0)) & ~((point <= lowest) & (here.slopes <= 0))
        steepest = np.abs(here.slopes[free]).max(initial=0)
        if steepest <= FLAT * shown:
            return point, step, True
        # Clicks fix only products, so one direction is flat; if documents stay at one place, all are.
        damped = here.curvature[np.ix_(free, free)] + np.diag(damping * here.weights[free] + LEAST_DAMPING * steepest)
        leap = np.zeros_like(point)
        leap[free] = np.linalg.solve(damped, here.slopes[free])
        leap *= min(1.0, LONGEST / np.abs(leap).max())
        next_point = np.clip(point + leap, lowest, 0.0)
        if damping == LEAST_DAMPING and np.abs(next_point - point).max() < TINY:
            return next_point, step + 1, True
        nearly = steepest < NEARLY_FLAT * shown
        if nearly and (next_point - point) @ here.slopes <= ROUNDING * abs(here.value):
            return point, step, True
        there = _look(cells, next_point, here.attraction)
        if there.value >= here.value:
            point, here, damping = next_point, there, max(damping / 10, LEAST_DAMPING)
        else:
            damping = 10 * max(damping, 1e-3)
    return point, MOST_LOOKS, bool(nearly)


class _Look(NamedTuple):
    """The log-likelihood, its slopes, minus its second derivatives, `weights` with attraction fixed, the attraction."""

    value: float
    slopes: Floats
    curvature: Floats
    weights: Floats
    attraction: Floats


def _look(cells: CodedCells, log_examination: Floats, start: Floats) -> _Look:
    """Solve for attraction, and see how the likelihood changes with examination if attraction follows."""
    from scipy.sparse import csr_array  # here, because --help loads this module

    places = len(log_examination)
    examination = np.exp(log_examination)
    attraction = most_likely_attraction(cells, examination, start=start)
    p = np.minimum(attraction[cells.document] * examination[cells.position], MOST_CERTAIN)
    odds = (cells.impressions - cells.clicks) * p / (1 - p)
    value = float(cells.clicks @ np.log(p) + (cells.impressions - cells.clicks) @ np.log1p(-p))
    slopes = np.bincount(cells.position, cells.clicks - odds, places)
    weight = odds / (1 - p)
    total = cells.by_document(weight)
    follows = np.where((attraction < 1) & (total > 0), 1 / np.sqrt(np.maximum(total, LEAST_ALPHA**2)), 0.0)
    ends = np.concatenate(([0], np.cumsum(np.bincount(cells.document, minlength=cells.documents))))
    scaled = csr_array((weight * follows[cells.document], cells.position, ends), shape=(cells.documents, places))
    weights = np.bincount(cells.position, weight, places)
    return _Look(value, slopes, np.diag(weights) - _products(scaled), weights, attraction)


def _products(scaled: Any) -> Floats:
    """The matrix's transpose times itself; with few places, dense blocks of documents are seven times as fast."""
    if scaled.shape[1] > FEW_PLACES:
        return np.asarray((scaled.T @ scaled).toarray())
    blocks = (scaled[first : first + BLOCK] for first in range(0, scaled.shape[0], BLOCK))
    return np.asarray(np.sum([block.T @ block.toarray() for block in blocks], axis=0))


def _of_documents(cells: CodedCells, kept: NDArray[np.bool_]) -> CodedCells:
    rows, codes = kept[cells.document], np.cumsum(kept) - 1
    return replace(
        cells,
        query_id=cells.query_id[kept],
        doc_id=cells.doc_id[kept],
        document=codes[cells.document[rows]],
        position=cells.position[rows],
        impressions=cells.impressions[rows],
        clicks=cells.clicks[rows],
    )


def most_likely_attraction(cells: CodedCells, examination: Floats, *, start: Floats | None = None) -> Floats:
    """The most likely attraction a of every document: where sum of c - (n - c) p / (1 - p) is 0, p = a examination.

    Newton's method in log a; a step that would leave the interval with the answer halves that interval instead. The sum
    falls with a; if it is above 0 at a = 1, the answer is 1. A document that nobody clicked has attraction 0. Most
    documents are done after two or three steps; further steps look only at the cells of the others.
    """
    shown = _Shown.of(cells, examination)
    clicks, always = shown.clicks, shown.slopes(np.ones(cells.documents))[0] >= 0
    a = np.clip(shown.few_clicks() if start is None else start, LEAST_ALPHA, 1 - LEAST_ALPHA)
    low, high = np.zeros(cells.documents), np.ones(cells.documents)
    left = (clicks > 0) & ~always
    searched, shown = np.flatnonzero(left), shown.part(left)
    for _ in range(MOST_STEPS if len(searched) else 0):
        now = a[searched]
        excess, slope = shown.slopes(now)
        low[searched] = np.where(excess > 0, now, low[searched])
        high[searched] = np.where(excess > 0, high[searched], now)
        after = now * np.exp(np.clip(excess / np.maximum(slope, LEAST_ALPHA**2), -5, 5))
        inside = (after >= low[searched]) & (after <= high[searched])
        a[searched] = np.where(inside, after, (low[searched] + high[searched]) / 2)
        left = np.abs(a[searched] - now) > PRECISION * now
        if not left.any():
            break
        if 2 * left.sum() < len(left):  # copying cells costs as much as looking at them
            searched, shown = searched[left], shown.part(left)
    return np.where(clicks == 0, 0.0, np.where(always, 1.0, a))


def attraction_interval(cells: CodedCells, examination: Floats, attraction: Floats) -> dict[str, Floats]:
    """`low` and `high`: the attractions whose likelihood is within a factor e^-1.92 of the best.

    By the likelihood ratio this is a 95% interval, given the examination. The ends are found by halving.
    """
    shown = _Shown.of(cells, examination)
    least = shown.log_likelihood(attraction) - LIKELY
    found = {}
    for name, far in (("low", 0.0), ("high", 1.0)):
        inside, outside = attraction.copy(), np.full(cells.documents, far)
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            likely = shown.log_likelihood(middle) >= least
            inside, outside = np.where(likely, middle, inside), np.where(likely, outside, middle)
        found[name] = np.where(shown.log_likelihood(np.full_like(attraction, far)) >= least, far, inside)
    return found


@dataclass(frozen=True, eq=False)
class _Shown:
    """Per cell, its document, examination g and skips; per document, its clicks and the sum of n g."""

    document: Ints
    examination: Floats
    skips: Floats
    clicks: Floats
    examined: Floats

    @classmethod
    def of(cls, cells: CodedCells, examination: Floats) -> _Shown:
        g = examination[cells.position]
        clicks, examined = cells.by_document(cells.clicks), cells.by_document(cells.impressions * g)
        return cls(cells.document, g, cells.impressions - cells.clicks, clicks, examined)

    def part(self, kept: NDArray[np.bool_]) -> _Shown:
        """The cells of some documents."""
        rows, codes = kept[self.document], np.cumsum(kept) - 1
        of_cells = codes[self.document[rows]], self.examination[rows], self.skips[rows]
        return _Shown(*of_cells, self.clicks[kept], self.examined[kept])

    def few_clicks(self) -> Floats:
        """The most likely attraction if click rates were small: clicks / examined impressions."""
        return np.divide(self.clicks, self.examined, out=np.ones_like(self.clicks), where=self.examined > 0)

    def slopes(self, attraction: Floats) -> tuple[Floats, Floats]:
        """By document, in log a: the slope of the log-likelihood, and minus its second derivative."""
        p = self._rates(attraction)
        rest = 1 - p
        odds = p
        odds *= self.skips
        odds /= rest
        slope = self.clicks - self._sum(odds)
        odds /= rest
        return slope, self._sum(odds)

    def log_likelihood(self, attraction: Floats) -> Floats:
        """By document."""
        p = self._rates(attraction)
        unclicked = np.log1p(np.negative(p, out=p), out=p)
        unclicked *= self.skips
        return self.clicks * np.log(np.maximum(attraction, LEAST_ALPHA**2)) + self._sum(unclicked)

    def _rates(self, attraction: Floats) -> Floats:
        p = attraction[self.document]
        p *= self.examination
        return np.minimum(p, MOST_CERTAIN, out=p)

    def _sum(self, values: Floats) -> Floats:
        return np.bincount(self.document, values, len(self.clicks))


def expected_shares(row: NDArray[np.int64], factor: Floats, happened: Floats, possible: Floats, *, size: int) -> Floats:
    """The expected share of each of `size` things, given how shares are spread over all of them.

    In each row, `happened` of `possible` events happened to a thing, each with probability share * factor. The most
    likely share of most things is 0, which would rule out later events. So the spread of shares is fitted, on a grid.
    """
    nodes = np.linspace(0.5, NODES - 0.5, NODES) ** 2 / NODES**2  # denser near 0, where most shares are
    logs = np.empty((NODES, size))
    for node, share in enumerate(nodes):
        p = np.clip(share * factor, LEAST_ALPHA**2, MOST_CERTAIN)
        logs[node] = np.bincount(row, happened * np.log(p) + (possible - happened) * np.log1p(-p), size)
    likelihood = np.exp(logs - logs.max(axis=0))
    weights = np.full(NODES, 1 / NODES)
    for _ in range(PRIOR_STEPS):
        weights = weights * (likelihood / (weights @ likelihood)).mean(axis=1)
    posterior = weights[:, None] * likelihood
    return np.asarray((nodes @ posterior) / posterior.sum(axis=0))
