"""Reproduce an experiment: a study in, results, tables and figures in a folder out."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import clickmix
from clickmix.errors import SettingError
from clickmix.features import Collection
from clickmix.lab.experiments.configs import Experiment, Grid, Iterations, Pictures, Timings, experiment
from clickmix.lab.experiments.estimates import ITERATIONS
from clickmix.lab.experiments.labels import MIXTURES
from clickmix.lab.experiments.outputs import text, write_outputs
from clickmix.lab.experiments.pages import circumstances, clicks_page, table_page
from clickmix.lab.experiments.pictures import pictures_page
from clickmix.lab.experiments.regression_pages import iterations_page, timings_page
from clickmix.lab.experiments.runner import Kept, run_tasks
from clickmix.lab.experiments.study import RANKERS, Study, describe
from clickmix.lab.experiments.tasks import Task
from clickmix.report import Page, Section, check_report_extra
from clickmix.storage.folders import make_folder
from clickmix.types import Progress

PACKAGES = ("numpy", "scipy", "lightgbm", "torch")


@dataclass(frozen=True)
class Reproduced:
    """What came of it: the tables as text, the files, how many tasks there were, and seconds by kind of task."""

    text: str
    files: tuple[Path, ...]
    tasks: int
    seconds: dict[str, float]


def reproduce(
    study: Study,
    folder: str | Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Reproduced:
    """Do what is left to do of a study and write its tables and figures to a folder.

    Results go to FOLDER/EXPERIMENT.jsonl as they come; call it again to go on after an interruption.
    """
    config, folder = experiment(study.experiment), Path(folder)
    if not isinstance(config, Grid) and study.rankers != tuple(RANKERS):
        raise SettingError(f"{config.name} is not made ranker by ranker. Leave the ranker out.")
    tasks = config.tasks(study)
    for setting in dict.fromkeys(task.setting for task in tasks):
        setting.person(study.top)  # complain before any work
    lowest = max((task.position for task in tasks), default=0)
    if study.top is not None and lowest > study.top:
        raise SettingError(f"top={study.top}: {config.name} shows position {lowest}. Choose at least {lowest}.")
    check_report_extra()
    if workers is not None and workers < 1:
        raise SettingError(f"workers={workers}: expected at least 1.")
    collection = study.collection()
    make_folder(folder)
    settings = describe(study, collection) | {"regression_em": {"iterations": ITERATIONS}, "mixtures": MIXTURES}
    kept = run_tasks(
        tasks,
        study,
        folder / f"{config.name}.jsonl",
        settings=settings,
        versions=versions(),
        workers=1 if isinstance(config, Timings) else workers or cores(),  # nobody else while timing
        progress=progress,
    )
    page = _page(config, study, collection, kept)
    ordered = {key: kept.results[key] for key in _keys(config, study) if key in kept.results}
    document = {"settings": settings, "versions": list(kept.versions), "results": ordered}
    files = write_outputs(page, folder, config.name, document)
    return Reproduced(text(page), (folder / f"{config.name}.jsonl", *files), len(ordered), _seconds(tasks, kept))


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """What the numbers depend on beside the settings."""
    found = {"clickmix": clickmix.__version__, "python": platform.python_version(), "gpu": gpu()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def gpu() -> str:
    """The kind of GPU of this machine, as Linux tells it: torch would take seconds to load."""
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        found = re.search(r"Model:\s*(.+)", file.read_text(errors="replace"))
        if found:
            return found[1].strip()
    return "none found"


def _page(config: Experiment, study: Study, collection: Collection, kept: Kept) -> Page:
    """The page of an experiment, with a last section on how its numbers came about."""
    if isinstance(config, Pictures):
        page = pictures_page(config, study, kept.results)
    elif isinstance(config, Iterations):
        page = iterations_page(config, study, kept.results)
    elif isinstance(config, Timings):
        page = timings_page(config, study, kept.results)
    elif config.name == "figure2":
        page = clicks_page(config, study, collection, kept.results)
    else:
        page = table_page(config, study, collection, kept.results)
    settings = dict.fromkeys(task.setting for task in config.tasks(replace(study, rankers=tuple(RANKERS))))
    points = circumstances(study, collection, list(settings), kept.versions)
    return Page(page.title, page.prose, [*page.sections, Section("How these numbers came about", points=points)])


def _keys(config: Experiment, study: Study) -> list[str]:
    """The tasks of all rankers, and those they need, in order: a study of one ranker shows what others have left."""
    tasks = config.tasks(replace(study, rankers=tuple(RANKERS)))
    return list(dict.fromkeys(each.key for task in tasks for each in (*task.needs, task)))


def _seconds(tasks: list[Task], kept: Kept) -> dict[str, float]:
    """The median seconds of a task, by what it is."""
    by_kind: dict[str, dict[str, float]] = {}
    everything = [each for task in tasks for each in (*task.needs, task) if each.kept]
    for task in everything:
        by_kind.setdefault(task.ranker or task.regression or task.kind, {})[task.key] = kept.seconds[task.key]
    return {kind: median(found.values()) for kind, found in by_kind.items()}
