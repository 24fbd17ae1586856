"""Reproduce an experiment: a request in; results, tables and figures in a folder out."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import clickmix
from clickmix.errors import SettingError
from clickmix.features import Collection
from clickmix.lab.experiments.bias_estimates import ITERATIONS
from clickmix.lab.experiments.labels import MIXTURES
from clickmix.lab.experiments.page_files import text, write_outputs
from clickmix.lab.experiments.paper import experiment
from clickmix.lab.experiments.request import RANKERS, Request, describe
from clickmix.lab.experiments.runner import Kept, run_tasks
from clickmix.lab.experiments.task import Experiment, Scenario, Task
from clickmix.lab.users import preset
from clickmix.report import Page, Section
from clickmix.storage.atomic import make_folder
from clickmix.types import Progress

FEWEST_TEST_QUERIES = 100  # nDCG@10 of a query has a standard deviation of about .3
PACKAGES = ("numpy", "scipy", "lightgbm", "torch", "xgboost-cpu")


@dataclass(frozen=True)
class Reproduced:
    """The outcome: the tables as text, the files, how many tasks there were, and seconds by kind of task."""

    text: str
    files: tuple[Path, ...]
    tasks: int
    seconds: dict[str, float]


def reproduce(
    request: Request,
    folder: str | Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    width: int | None = None,
) -> Reproduced:
    """Do the remaining tasks of a request, and write its tables and figures to a folder.

    The tables as text are at most `width` letters wide. Results go to FOLDER/EXPERIMENT.jsonl as they come; call this
    again to continue after an interruption.
    """
    asked, folder = experiment(request.experiment), Path(folder)
    if not asked.by_ranker and request.rankers != tuple(RANKERS):
        raise SettingError(f"{asked.name} is not made ranker by ranker. Leave the ranker out.")
    tasks = asked.tasks(request)
    for scenario in dict.fromkeys(task.scenario for task in tasks):
        preset(scenario.user, positions=request.top)  # raise before any work
    lowest = max((task.position for task in tasks), default=0)
    if request.top is not None and lowest > request.top:
        raise SettingError(f"top={request.top}: {asked.name} shows position {lowest}. Choose at least {lowest}.")
    if workers is not None and workers < 1:
        raise SettingError(f"workers={workers}: expected at least 1.")
    collection = request.collection()
    make_folder(folder)
    settings = describe(request, collection) | {"regression_em": {"iterations": ITERATIONS}, "mixtures": MIXTURES}
    kept = run_tasks(
        tasks,
        request,
        folder / f"{asked.name}.jsonl",
        settings=settings,
        versions=versions(),
        workers=1 if asked.timed else workers or cores(),
        progress=progress,
    )
    page = _page(asked, request, collection, kept)
    ordered = {key: kept.results[key] for key in _keys(asked, request) if key in kept.results}
    document = {"settings": settings, "versions": list(kept.versions), "results": ordered}
    files = write_outputs(page, folder, asked.name, document)
    shown = "\n\n".join(part for part in (_too_small(asked, request, collection), text(page, width=width)) if part)
    return Reproduced(shown, (folder / f"{asked.name}.jsonl", *files), len(ordered), _seconds(tasks, kept))


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """The versions on which the numbers depend."""
    found = {"clickmix": clickmix.__version__, "python": platform.python_version(), "gpu": gpu()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def gpu() -> str:
    """The GPU of this machine, from Linux: torch would take seconds to load."""
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        found = re.search(r"Model:\s*(.+)", file.read_text(errors="replace"))
        if found:
            return found[1].strip()
    return "none found"


def _page(asked: Experiment, request: Request, collection: Collection, kept: Kept) -> Page:
    """The page of an experiment, with a warning first if it is too small, and last how its numbers were made."""
    page = asked.page(request, collection, kept.results)
    scenarios = dict.fromkeys(task.scenario for task in asked.tasks(replace(request, rankers=tuple(RANKERS))))
    points = _circumstances(request, collection, list(scenarios), kept.versions)
    warning = _too_small(asked, request, collection)
    sections = [*page.sections, Section("How these numbers were made", points=points)]
    return Page(page.title, [*([warning] if warning else []), *page.prose], sections)


def _too_small(asked: Experiment, request: Request, collection: Collection) -> str:
    """A warning if these numbers cannot separate corrections; otherwise empty."""
    if not asked.measures_rankings:
        return ""
    queries = collection.test.queries
    few = f"{queries:,} test queries (with {FEWEST_TEST_QUERIES}, chance moves a mean nDCG@10 by less than .03)"
    reasons = [few] if queries < FEWEST_TEST_QUERIES else []
    reasons += ["a single run (a test takes two or more)"] if request.runs < 2 else []
    if not reasons:
        return ""
    return f"Too small to conclude anything from: {' and '.join(reasons)}. Raise --scale or --runs."


def _circumstances(
    request: Request, collection: Collection, scenarios: Sequence[Scenario], versions: Sequence[Mapping[str, str]]
) -> list[str]:
    clicks = sorted({scenario.clicks_on(collection.train) for scenario in scenarios})
    splits: dict[str, Any] = {"training": collection.train, "validation": collection.vali, "test": collection.test}
    sizes = (f"{split.queries:,} {name}" for name, split in splits.items())
    made = [", ".join(f"{name} {version}" for name, version in sorted(each.items())) for each in versions]
    lists = "the paper's length" if request.top is None else f"length {request.top}"
    return [
        f"Command: {request.command}",
        f"Collection: {collection.name}; {', '.join(sizes)} queries; scale {request.scale:g}; result lists of {lists}.",
        f"Clicks on the training queries: {', '.join(f'{number:,}' for number in clicks)}.",
        *collection.notes,
        *(f"Made with {each}." for each in made),
    ]


def _keys(asked: Experiment, request: Request) -> list[str]:
    """The tasks of all rankers, and those they need, in order: a request for one ranker also shows others' results."""
    tasks = asked.tasks(replace(request, rankers=tuple(RANKERS)))
    return list(dict.fromkeys(each.key for task in tasks for each in (*task.needs, task)))


def _seconds(tasks: list[Task], kept: Kept) -> dict[str, float]:
    """The median seconds of a task, by kind."""
    by_kind: dict[str, dict[str, float]] = {}
    everything = [each for task in tasks for each in (*task.needs, task) if each.kept]
    for task in everything:
        by_kind.setdefault(task.ranker or task.regression or task.kind, {})[task.key] = kept.seconds[task.key]
    return {kind: median(found.values()) for kind, found in by_kind.items()}
