"""Worlds: simulated click logs whose truth is known, and the best labels anyone could make of them.   name -> World

    python benchmarks/worlds.py                                   every world, seeds 11 to 15
    python benchmarks/worlds.py frozen attention-0.3 --seeds 11   some of them
measures the labels' RMSE over that of the limit, of the mixture corrections auto and binomial. Worlds of five grades
are measured on few impressions too.

A world's `limit` is the posterior mean of somebody who knows every parameter of the world and sees the cells; what
differs at random from query to query or document to document is integrated. Nothing can have a smaller expected
squared error.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.corrections.correction import Correction
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.counts.counts import Counts
from clickmix.types import Floats, Ints
from measuring import write_result
from world_kinds import DCM, KINDS, UBM, Kind, attraction, contexts, prior, rate, second_rate
from world_limits import Cells, limit

POPULARITY = 0.8  # the query of rank r is asked in proportion to r^-.8
NAMES = tuple(KINDS)
SEEDS = (41, 42, 43, 44, 45)
IMPRESSIONS, FEW = 1_200_000, 200_000
CORRECTIONS: dict[str, Correction] = {
    "auto": MixtureCorrection(),
    "binomial": MixtureCorrection("binomial"),
}


@dataclass(frozen=True)
class World:
    """A log in cells (document, position, context), sorted by them; true relevance and its limit per document.

    Documents are numbered from 0 and belong to one query each: `query` has a row per document.
    """

    name: str
    query: Ints
    document: Ints
    position: Ints
    context: Ints
    impressions: Ints
    clicks: Ints
    truth: Floats
    limit: Floats

    def counts(self) -> Counts:
        """As corrections take them."""
        columns = (self.query[self.document], self.document, self.position, self.impressions, self.clicks)
        return Counts.from_arrays(*columns, **({"context": self.context} if self.context.any() else {}))

    def error(self, labels: Floats) -> float:
        """RMSE of labels per document."""
        return float(np.sqrt(np.mean((labels - self.truth) ** 2)))


@dataclass(frozen=True)
class Rows:
    """The same log with a row per impression, sorted by session and position."""

    session: Ints
    query: Ints
    document: Ints
    position: Ints
    context: Ints
    clicked: Ints


def make(name: str, *, seed: int, impressions: int) -> World:
    """The world of this name with about so many impressions: 60 sessions a query, so more impressions, more queries."""
    return world_of(KINDS[name], name=name, seed=seed, impressions=impressions)


def world_of(kind: Kind, *, name: str, seed: int, impressions: int) -> World:
    """A world of any kind under this name."""
    return _Drawn(kind, seed=seed, impressions=impressions).world(name)


def rows(name: str, *, seed: int, impressions: int) -> Rows:
    """The sessions behind the cells of `make` with the same arguments; documents have the same numbers."""
    return _Drawn(KINDS[name], seed=seed, impressions=impressions).rows()


def split(world: World, rng: np.random.Generator, parts: int) -> tuple[Ints, Ints]:
    """Deal the impressions of each cell to so many parts at random: impressions and clicks, parts x cells.

    Exact where clicks are independent given the cell's rate, as in all worlds but those of robots, DCM and UBM users:
    there sessions must stay whole (see `rows`). A part may have no impression of a cell.
    """
    left, clicks_left = world.impressions.copy(), world.clicks.copy()
    shown, clicked = np.zeros((2, parts, len(left)), dtype=np.int64)
    for part in range(parts):
        shown[part] = rng.binomial(left, 1 / (parts - part))
        clicked[part] = rng.hypergeometric(clicks_left, left - clicks_left, shown[part])
        left, clicks_left = left - shown[part], clicks_left - clicked[part]
    return shown, clicked


class _Drawn:
    """Everything that was drawn: sessions in rows, positions in columns; queries in rows, base positions in columns."""

    def __init__(self, kind: Kind, *, seed: int, impressions: int) -> None:
        # Queries and sessions have generators of their own: worlds with the same seed have them in common.
        rng, sessions_rng = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
        self.kind = kind
        sessions = max(impressions // kind.top, 1)
        queries = max(round(sessions / kind.sessions), 1)
        popularity = np.arange(1, queries + 1) ** -POPULARITY
        self.tilt = kind.popular * (np.log(popularity) - np.log(popularity).mean())
        self.relevance = self._relevance(queries, rng)
        self.effect = rng.normal(kind.effect_mean, kind.attention, queries)
        self.query = np.repeat(np.arange(queries), rng.multinomial(sessions, popularity / popularity.sum()))
        self.context = sessions_rng.choice(kind.contexts, size=sessions, p=contexts(kind.contexts)[2])
        order = np.arange(kind.top) + sessions_rng.normal(0.0, kind.noise, (sessions, kind.top))
        self.slot = np.argsort(order, axis=1)
        self.clicked = self._clicked(sessions_rng)

    def _relevance(self, queries: int, rng: np.random.Generator) -> Floats:
        drawn, share = rng.random((queries, self.kind.top, 1)), rng.normal(0.0, self.kind.shares, queries)
        chances = prior(self.kind, np.arange(1, self.kind.top + 1), (self.tilt + share)[:, None])
        return np.asarray(self.kind.relevances[(drawn > chances.cumsum(axis=-1)[..., :-1]).sum(axis=-1)])

    def _clicked(self, rng: np.random.Generator) -> Ints:
        relevance, position = self.relevance[self.query[:, None], self.slot], np.arange(1, self.kind.top + 1)
        if self.kind.user != "pbm":
            return _cascade(self.kind, attraction(relevance, position), rng)
        p = rate(self.kind, relevance, position, self.context[:, None], self.effect[self.query, None])
        if self.kind.appeal:
            p = self._appealing(p, rng)
        if self.kind.mixes:
            shares, probabilities = np.array(self.kind.mixes).T
            share = rng.choice(shares, size=len(self.relevance), p=probabilities)
            second = rng.random(len(self.query)) < share[self.query]
            p = np.where(second[:, None], second_rate(self.kind, relevance, position), p)
        return np.asarray(rng.random(p.shape) < p)

    def _appealing(self, p: Floats, rng: np.random.Generator) -> Floats:
        """Rates with each document's own appeal; lists are frozen, so that a document has one."""
        position, size = np.arange(1, self.kind.top + 1), 1 / self.kind.appeal - 1
        mean = rate(self.kind, self.relevance, position, np.array(0), np.array(0.0))
        own = rng.beta(mean * size, (1 - mean) * size)[self.query]
        return np.where(np.isin(position, self.kind.appeal_at or position), own, p)

    def rows(self) -> Rows:
        """A row per impression; documents are numbered in the order of query and base position."""
        sessions, top = self.slot.shape
        return Rows(
            np.repeat(np.arange(sessions), top),
            np.repeat(self.query, top),
            np.unique(self._named(), return_inverse=True)[1].ravel(),
            np.tile(np.arange(1, top + 1), sessions),
            np.repeat(self.context, top),
            self.clicked.ravel().astype(np.int64),
        )

    def _named(self) -> Ints:
        """Query and base position of each impression as one number; queries nobody asked leave gaps."""
        return np.asarray(self.query[:, None] * self.kind.top + self.slot).ravel()

    def world(self, name: str) -> World:
        """The cells, the truth and the limit."""
        seen, named, top = self.rows(), np.unique(self._named()), self.kind.top
        key = (seen.document * top + seen.position - 1) * self.kind.contexts + seen.context
        key, cell = np.unique(key, return_inverse=True)
        cells = Cells(
            named // top,
            named % top + 1,
            self.tilt[named // top],
            key // (top * self.kind.contexts),
            key // self.kind.contexts % top + 1,
            key % self.kind.contexts,
            np.bincount(cell),
            np.bincount(cell, weights=seen.clicked).astype(np.int64),
        )
        of_cells = (cells.document, cells.position, cells.context, cells.impressions, cells.clicks)
        return World(name, cells.query, *of_cells, self.relevance.ravel()[named], limit(self.kind, cells))


def _cascade(kind: Kind, attracted: Floats, rng: np.random.Generator) -> Ints:
    """Clicks of DCM or UBM users, one position after the other."""
    sessions, top = attracted.shape
    clicked = np.zeros((sessions, top), dtype=bool)
    reading = np.ones(sessions, dtype=bool)  # DCM: has not stopped
    last = np.full(sessions, -1)  # UBM: where the last click was
    for k in range(top):
        if kind.user == "dcm":
            clicked[:, k] = reading & (rng.random(sessions) < attracted[:, k])
            reading &= ~clicked[:, k] | (rng.random(sessions) < (DCM[k] if k < len(DCM) else 0.0))
        else:
            clicked[:, k] = rng.random(sessions) < np.array(UBM[k])[last] * attracted[:, k]
            last[clicked[:, k]] = k
    return clicked


def measure(names: Sequence[str] = NAMES, *, seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """By impressions, world and seed: RMSE of the limit, that of every correction divided by it, and CPU seconds."""
    graded = [name for name in names if KINDS[name].grades > 2]
    jobs = [(size, name, seed) for size, of in ((IMPRESSIONS, names), (FEW, graded)) for name in of for seed in seeds]
    figures: dict[str, Any] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for (size, name, seed), found in zip(jobs, pool.map(_measured, *zip(*jobs, strict=True)), strict=True):
            figures.setdefault(str(size), {}).setdefault(name, {})[str(seed)] = found
    return figures


def _measured(size: int, name: str, seed: int) -> dict[str, float]:
    world = make(name, seed=seed, impressions=size)
    counts, best = world.counts(), world.error(world.limit)
    found = {"limit": round(best, 4)}
    for correction, each in CORRECTIONS.items():
        start = time.process_time()
        labels = each.fit(counts).label(counts)  # in order of query and document, as the world has them
        found[f"{correction}_seconds"] = round(time.process_time() - start, 1)
        found[correction] = round(world.error(labels.relevance) / best, 4)
    return found


def main() -> None:
    """Measure the worlds and seeds of the command line."""
    parser = argparse.ArgumentParser(description="RMSE of labels divided by that of the limit.")
    parser.add_argument("names", nargs="*", metavar="world", help=f"of {', '.join(NAMES)}; all without it")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"world {unknown[0]!r}: expected one of {', '.join(NAMES)}.")
    figures = measure(options.names or NAMES, seeds=options.seeds)
    write_result("worlds", " ".join(["python benchmarks/worlds.py", *sys.argv[1:]]), figures)


if __name__ == "__main__":
    main()
