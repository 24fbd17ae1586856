"""Simulator: the collection, the lists of the production ranker, the clicks of users on them.   Request -> logs

Everything here follows from the request and the number of the run, so that workers need not share anything. Only the
lists take long; they go to a scratch folder.
"""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import duckdb
import numpy as np

from clickmix.counts.count import count
from clickmix.counts.counts import Counts
from clickmix.engines.engine import embedded
from clickmix.features import Collection, Split, binarized, graded
from clickmix.lab.collections import production_ranker
from clickmix.lab.experiments.request import Request
from clickmix.lab.experiments.task import Scenario
from clickmix.lab.self_debiasing.clicked import FeatureLists
from clickmix.lab.users import ListCounts, User, preset
from clickmix.storage.atomic import write_atomically
from clickmix.types import Floats, Ints

PRODUCTION, TRAIN_CLICKS, VALI_CLICKS = 1, 2, 3  # part of a seed: each purpose has its own random numbers


@dataclass(frozen=True, eq=False)
class Shown:
    """Lists that people saw, and their clicks: `rows` (lists, positions) of `split`, -1 past the end of a list."""

    split: Split
    rows: Ints
    relevance: Floats  # the truth, NaN past the end
    seen: ListCounts

    @cached_property
    def counts(self) -> Counts:
        """The counts for a correction, list by list; ids are the numbers of lists and of rows."""
        lists, place = np.nonzero((self.rows >= 0) & (self.seen.impressions > 0)[:, None])
        columns = {
            "query_id": lists,
            "list": lists.astype(str),
            "doc_id": self.rows[lists, place],
            "position": place + 1,
            "impressions": self.seen.impressions[lists],
            "clicks": self.seen.clicks[lists, place],
        }
        with duckdb.connect(config={"threads": 1}) as database:
            counts = count(database.register("columns", columns).table("columns"), lists=True)
        embedded(counts.engine, of="an experiment").run("SET threads = 1")  # other processes have the other cores
        return counts

    @property
    def numbered(self) -> Split:
        """The split with the ids of the counts."""
        return replace(self.split, query_id=np.arange(self.split.queries), doc_id=np.arange(self.split.documents))

    @property
    def rates(self) -> Floats:
        """Click-through rates, NaN past the end and for lists that nobody saw."""
        n = np.broadcast_to(self.seen.impressions[:, None], self.rows.shape)
        known = (self.rows >= 0) & (n > 0)
        return np.asarray(np.divide(self.seen.clicks, n, out=np.full(self.rows.shape, np.nan), where=known))

    @property
    def clicked(self) -> FeatureLists:
        """The lists for a ranker that learns from clicks."""
        return FeatureLists(self.split.features, self.rows, self.seen.impressions, self.seen.clicks)

    def spread(self, rows: Ints, values: Floats) -> Floats:
        """Values of some rows of the split as an array like `rows`, NaN for the others."""
        by_row = np.full(self.split.documents, np.nan)
        by_row[rows] = values
        return np.where(self.rows >= 0, by_row[self.rows], np.nan)


@dataclass(frozen=True, eq=False)
class Log:
    """The clicks of the users of one scenario in one run, on training and validation queries."""

    scenario: Scenario
    user: User
    train: Shown
    vali: Shown


@dataclass(frozen=True)
class Simulator:
    """A request and the folder where its lists are kept while it runs."""

    request: Request
    scratch: str

    @property
    def collection(self) -> Collection:
        """The collection, made or opened once per process."""
        return _collection(self.request)

    def make_lists(self, scenario: Scenario, run: int) -> None:
        """Rank training and validation queries with the production ranker of a run."""
        collection, top = self.collection, preset(scenario.user, positions=self.request.top).positions
        ranker = production_ranker(collection.train, rng=np.random.default_rng([PRODUCTION, run]))
        lists = {name: ranker.top(getattr(collection, name), length=top) for name in ("train", "vali")}
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **lists)
        write_atomically(self._lists_file(run), packed.getvalue())

    def log(self, scenario: Scenario, run: int) -> Log:
        """The users' clicks in a run."""
        return _log(self, scenario, run)

    def lists(self, run: int) -> dict[str, Ints]:
        """The lists that `make_lists` made: `train` and `vali`."""
        with np.load(self._lists_file(run), allow_pickle=False) as packed:
            return {name: packed[name] for name in ("train", "vali")}

    def _lists_file(self, run: int) -> Path:
        return Path(self.scratch) / f"lists-{run}.npz"


@lru_cache(maxsize=1)
def _collection(request: Request) -> Collection:
    return request.collection()


@lru_cache(maxsize=2)
def _log(simulator: Simulator, scenario: Scenario, run: int) -> Log:
    user, lists = preset(scenario.user, positions=simulator.request.top), simulator.lists(run)
    kind = binarized if scenario.relevance == "binarized" else graded
    collection = simulator.collection

    def shown(split: Split, rows: Ints, purpose: int) -> Shown:
        rng = np.random.default_rng([purpose, run, zlib.crc32(scenario.name.encode())])
        relevance = np.where(rows >= 0, kind(split.grade, largest_grade=collection.largest_grade)[rows], np.nan)
        seen = user.simulate_counts(relevance, clicks=scenario.clicks_on(split), rng=rng)
        return Shown(split, rows, relevance, seen)

    train = shown(collection.train, lists["train"], TRAIN_CLICKS)
    return Log(scenario, user, train, shown(collection.vali, lists["vali"], VALI_CLICKS))
