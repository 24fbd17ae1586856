"""Simulated users on a collection -> files of a log with known truth: log, truth and features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from clickmix.engines.duckdb import DuckDB
from clickmix.errors import InputError, SettingError
from clickmix.features import Collection, binarized, graded, write_features
from clickmix.lab.collections import collection_files, load_collection, production_ranker, synthetic_collection
from clickmix.lab.collections.production import QUERIES
from clickmix.lab.users import USERS, Sessions, User, write_sessions
from clickmix.storage.atomic import make_folder, real_path, replacing_together

Relevance = Literal["binarized", "graded"]
SPLITS = ("train", "vali", "test")
USUAL_QUERIES = 2_000  # training queries of the synthetic collection


@dataclass(frozen=True)
class Simulation:
    """Who clicks on what, how often, and the seed, which makes the bytes repeatable."""

    clicks: int = 1_000_000
    user: User = field(default_factory=lambda: USERS.make("pbm"))
    relevance: Relevance = "binarized"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.relevance not in ("binarized", "graded"):
            raise SettingError(f"relevance {self.relevance!r}: expected 'binarized' or 'graded'.")
        if self.clicks < 1:
            raise SettingError(f"clicks={self.clicks}: expected at least 1.")
        if self.seed < 0:
            raise SettingError(f"seed={self.seed}: expected a whole number from 0.")


def check_inputs_stay(data: Path, folder: Path) -> None:
    """Raise if a simulation written to `folder` would replace a file of the collection in `data`."""
    read = {real_path(file) for file in collection_files(data)}
    for path in (folder / f"{name}.parquet" for name in SPLITS):
        if real_path(path) in read:
            raise InputError(f"{path}: would replace an input. Choose another folder for the output.")


def open_collection(data: Path | None, *, queries: int | None, seed: int) -> Collection:
    """The collection in a folder, or a synthetic one with that many training queries."""
    if data is not None:
        if queries is not None:
            raise SettingError(f"queries={queries}: {data} has its own queries. Leave one of the two out.")
        return load_collection(data)
    queries = USUAL_QUERIES if queries is None else queries
    if queries < QUERIES:
        raise SettingError(f"queries={queries}: expected at least {QUERIES}, to train the production ranker.")
    return synthetic_collection(queries=queries, rng=np.random.default_rng([seed, 0]))


def write_simulation(
    collection: Collection, folder: Path, settings: Simulation, *, stage: Callable[[str], None] = lambda title: None
) -> int:
    """Write log.parquet, truth.parquet and the features of the three splits; return the number of impressions.

    The production ranker ranks the training queries, and people click on its top results. `stage` is called with the
    name of each step.
    """
    if collection.train.queries < QUERIES:
        raise InputError(
            f"{collection.name}: {collection.train.queries} training queries. Expected at least {QUERIES}, "
            "to train the production ranker. Use a larger collection."
        )
    make_folder(folder)
    with replacing_together(folder, last="log.parquet") as together:
        return _write_files(collection, together, settings, stage)


def _write_files(collection: Collection, folder: Path, settings: Simulation, stage: Callable[[str], None]) -> int:
    for name in SPLITS:
        stage(f"writing {name}.parquet")
        write_features(getattr(collection, name), folder / f"{name}.parquet")
    kind = binarized if settings.relevance == "binarized" else graded
    relevance = kind(collection.train.grade, largest_grade=collection.largest_grade)
    train = collection.train
    truth: dict[str, npt.NDArray[Any]] = {"query_id": train.query_id[train.query], "doc_id": np.asarray(train.doc_id)}
    write_columns({**truth, "relevance": relevance, "grade": np.asarray(train.grade)}, folder / "truth.parquet")
    stage("training the production ranker")
    ranker = production_ranker(train, rng=np.random.default_rng([settings.seed, 1]))
    rows = ranker.top(train, length=settings.user.positions)
    shown = np.where(rows < 0, np.nan, relevance[rows])
    chunks = settings.user.simulate_chunks(shown, clicks=settings.clicks, rng=np.random.default_rng([settings.seed, 2]))
    return write_sessions(
        _reported(chunks, stage, settings.clicks),
        folder / "log.parquet",
        query_id=train.query_id,
        doc_id=train.doc_id[rows],
        progress=lambda share: stage(f"writing log.parquet, {share:.0%}"),
    )


def write_columns(columns: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    """Write columns as a file, sorted by query and document."""
    engine = DuckDB()
    engine.register("columns", dict(columns))
    engine.write("SELECT * FROM columns ORDER BY query_id, doc_id", path)
    engine.close()


def _reported(chunks: Iterable[Sessions], stage: Callable[[str], None], goal: int) -> Iterator[Sessions]:
    """The chunks, while reporting how many clicks there are."""
    so_far = 0
    for chunk in chunks:
        so_far += int(chunk.clicks.sum())
        stage(f"simulating, {so_far:,} of {goal:,} clicks")
        yield chunk
