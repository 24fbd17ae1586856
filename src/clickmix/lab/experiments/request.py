"""Request: which experiment to run, on which collection, how large.   command -> Request -> tasks"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clickmix.errors import SettingError
from clickmix.features import Collection, Split
from clickmix.lab.collections import load_collection
from clickmix.lab.simulate import open_collection
from clickmix.rankers import LambdaMART
from clickmix.rankers.dnn import DNN

SYNTHETIC_QUERIES = 4_000  # training queries of the synthetic collection at scale 1
COLLECTION_SEED = 0  # the collection is the same in all runs, as a published one would be
SMALLEST = 20  # training queries: the production ranker learns from this many

RANKERS: dict[str, str] = {"lambdamart": "LambdaMART", "dnn": "DNN"}


@dataclass(frozen=True)
class Request:
    """An experiment to run: the collection, its size, the number of runs and the rankers.

    `scale` is the share of the collection's queries to use; the synthetic collection has 4,000 training queries at
    scale 1, and can be larger.
    """

    experiment: str
    data: str | None = None
    scale: float = 1.0
    top: int | None = None
    runs: int = 8
    rankers: tuple[str, ...] = tuple(RANKERS)

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise SettingError(f"runs={self.runs}: expected at least 1.")
        if not 0 < self.scale <= (1 if self.data else 100):
            most = "1, the whole collection" if self.data else "100"
            raise SettingError(f"scale={self.scale:g}: expected a number above 0, up to {most}.")
        if not self.rankers or not set(self.rankers) <= set(RANKERS):
            raise SettingError(f"rankers={self.rankers!r}: expected some of {', '.join(RANKERS)}.")

    @property
    def command(self) -> str:
        """The command for it, with only the folder's name; without rankers, which may have been run one by one.

        >>> Request("table1", runs=3, scale=0.1).command
        'clickmix reproduce table1 --scale 0.1 --runs 3'
        """
        usual = Request(self.experiment)
        changed = (name for name in ("data", "scale", "top", "runs") if getattr(self, name) != getattr(usual, name))
        words = (f"--{name} {Path(str(self.data)).name if name == 'data' else getattr(self, name)}" for name in changed)
        return " ".join(["clickmix reproduce", self.experiment, *words])

    def collection(self) -> Collection:
        """The collection in the folder, or the synthetic one; at a smaller scale, its first queries."""
        if self.data:
            return _first(load_collection(self.data), self.scale)
        queries = max(SMALLEST, round(SYNTHETIC_QUERIES * self.scale))
        return open_collection(None, queries=queries, seed=COLLECTION_SEED)


def _first(found: Collection, share: float) -> Collection:
    def part(split: Split, least: int) -> Split:
        return split.part(0, min(split.queries, max(least, round(split.queries * share))))

    splits = part(found.train, SMALLEST), part(found.vali, 1), part(found.test, 1)
    return Collection(found.name, *splits, found.largest_grade, found.notes)


def describe(request: Request, collection: Collection) -> dict[str, Any]:
    """The settings that results depend on: those of the request, except runs and rankers, which only add results."""
    sizes = {name: [split.queries, split.documents] for name, split in _splits(collection).items()}
    return {
        "experiment": request.experiment,
        "collection": collection.name,
        "queries_and_documents": sizes,
        "features": collection.train.features.shape[1],
        "largest_grade": collection.largest_grade,
        "grades": _fingerprint(collection),
        "scale": request.scale,
        "top": request.top,
        "rankers": {"lambdamart": asdict(lambdamart(collection)), "dnn": asdict(DNN())},
    }


def lambdamart(collection: Collection) -> LambdaMART:
    """The LambdaMART of tables and figures, with the weighting of published results, so that these can be resumed."""
    return LambdaMART(largest_grade=collection.largest_grade, weighting="ideal-dcg")


def _splits(collection: Collection) -> dict[str, Split]:
    return {"train": collection.train, "vali": collection.vali, "test": collection.test}


def _fingerprint(collection: Collection) -> str:
    """A hash of the grades and of where queries begin, to distinguish collections of the same size."""
    digest = hashlib.sha256()
    for split in _splits(collection).values():
        digest.update(split.offsets.tobytes())
        digest.update(split.grade.tobytes())
    return digest.hexdigest()[:16]
