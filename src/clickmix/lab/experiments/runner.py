"""The runner: does tasks, and writes their results to a file of JSON lines as they come.   tasks -> results

A finished task is one complete line on the disk; whatever stops the process, the next start continues from there. Every
worker is a process with one thread, and ends when the process that started it ends.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clickmix.errors import FormatError, InputError
from clickmix.lab.experiments.request import Request
from clickmix.lab.experiments.simulator import Simulator
from clickmix.lab.experiments.task import Result, Results, Task
from clickmix.lab.experiments.worker import do_task
from clickmix.storage.atomic import record
from clickmix.storage.locks import appending
from clickmix.types import Progress

FORMAT = 1
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# An interrupted run ends at once, and Python cleans up what workers shared afterwards: no need to warn.
NO_WARNING = "ignore:resource_tracker"
FIRST = ("lists", "estimate")  # others wait for them
Line = dict[str, Any]
Timed = tuple[Result, float]  # and its seconds


@dataclass(frozen=True)
class Kept:
    """The contents of a results file: results and seconds by task, and the versions they were made with, in order."""

    results: Results
    seconds: dict[str, float]
    versions: tuple[dict[str, str], ...]


def run_tasks(
    tasks: Sequence[Task],
    request: Request,
    path: Path,
    *,
    settings: dict[str, Any],
    versions: dict[str, str],
    workers: int,
    progress: Progress | None = None,
) -> Kept:
    """Do the tasks that are not in the results file yet, and return all that is in it."""
    with appending(path) as lines:
        kept = _read(path, lines.found, settings)
        left = [task for task in tasks if task.key not in kept.results]
        if not lines.found:
            lines.append(_text({"format": FORMAT, "settings": settings}))
        record(f"{path} (the same command continues from there)")
        if left:
            if versions not in kept.versions[-1:]:
                lines.append(_text({"versions": versions}))
            share = sum(task.cost for task in tasks if task.key in kept.results) / sum(task.cost for task in tasks)
            made = finished_lines(left, request, dict(kept.results), workers=workers, progress=_from(share, progress))
            with contextlib.closing(made):  # workers end here, whatever happens
                for line in made:
                    lines.append(_text(line))
    return read_results(path, settings=settings)


def _from(share: float, progress: Progress | None) -> Progress | None:
    """Progress of the whole, given progress of the rest; `share` was done before."""
    return None if progress is None else lambda done: progress(share + (1 - share) * done)


def read_results(path: Path, *, settings: dict[str, Any]) -> Kept:
    """The complete lines of a results file that was made with these settings."""
    whole, newline, _ = path.read_text(encoding="utf-8").rpartition("\n")
    return _read(path, tuple(whole.split("\n")) if newline else (), settings)


def _read(path: Path, lines: Sequence[str], settings: dict[str, Any]) -> Kept:
    found = [_parsed(path, number, line) for number, line in enumerate(lines, start=1)]
    if found:
        _check_settings(path, found[0], settings)
    finished = [line for line in found if "task" in line]
    return Kept(
        {line["task"]: line["result"] for line in finished},
        {line["task"]: line["seconds"] for line in finished},
        tuple(line["versions"] for line in found if "versions" in line),
    )


def _parsed(path: Path, number: int, line: str) -> Line:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict) or ("task" in found and not {"result", "seconds"} <= set(found)):
        raise FormatError(f"{path}, line {number}: damaged. Remove the line, and its task is done again.")
    return found


def _check_settings(path: Path, first: Line, settings: dict[str, Any]) -> None:
    if first.get("format") != FORMAT or not isinstance(first.get("settings"), dict):
        raise FormatError(f"{path}: not a results file of this clickmix. Choose another folder.")
    for name, value in settings.items():
        before = first["settings"].get(name)
        if before != json.loads(_text(value)):
            raise InputError(
                f"{path}: made with {name} {before}, now it is {value}. Choose another folder, or the same settings."
            )


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False)


def finished_lines(
    left: Sequence[Task], request: Request, results: Results, *, workers: int, progress: Progress | None
) -> Generator[Line, None, None]:
    """The lines of tasks as they finish, in any order; results that other tasks wait for go to `results`.

    A task that fails does not stop the others; its error is raised at the end.
    """
    waiting = _with_needs(left, results)
    total, done, errors = sum(task.cost for task in waiting), 0.0, []
    with _pool(request, workers) as pool:
        running = _submit(pool, waiting, results)
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                task = running.pop(future)
                if (error := future.exception()) is not None:
                    errors.append(error)
                    continue
                results[task.key], seconds = future.result()
                done += task.cost
                if task.kept:
                    yield {"task": task.key, "result": results[task.key], "seconds": round(seconds, 3)}
                if progress is not None:
                    progress(done / total)
            running |= _submit(pool, waiting, results)
        if errors:
            raise errors[0]


def _submit(pool: ProcessPoolExecutor, waiting: list[Task], results: Results) -> dict[Future[Timed], Task]:
    """Submit the waiting tasks whose needs are done."""
    ready = [task for task in waiting if all(need.key in results for need in task.needs)]
    waiting[:] = [task for task in waiting if task not in ready]
    return {pool.submit(_timed, task, {need.key: results[need.key] for need in task.needs}): task for task in ready}


def _with_needs(left: Sequence[Task], results: Results) -> list[Task]:
    """The tasks and those that they need, each once, needed ones first, in a fixed order."""
    wanted: dict[str, Task] = {}
    for task in left:
        for need in (*task.needs, task):
            if need.key not in results:
                wanted.setdefault(need.key, need)
    return sorted(wanted.values(), key=lambda task: FIRST.index(task.kind) if task.kind in FIRST else len(FIRST))


@contextlib.contextmanager
def _pool(request: Request, workers: int) -> Iterator[ProcessPoolExecutor]:
    others = set(multiprocessing.active_children())
    warnings = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), NO_WARNING)))
    variables = ONE_THREAD | {"PYTHONWARNINGS": warnings}
    with tempfile.TemporaryDirectory(prefix="clickmix-") as scratch, _environment(variables | {"TMPDIR": scratch}):
        pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),  # CUDA and threads do not survive a fork
            initializer=_begin,
            initargs=(Simulator(request, scratch),),
        )
        try:
            yield pool
        except BrokenProcessPool:
            raise InputError(
                "A worker was killed, most likely because memory ran out. Finished tasks are kept; run the same "
                "command again with fewer --workers."
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
                process.join()


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables for processes that start meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_simulators: list[Simulator] = []  # in a worker: the one it uses


def _begin(simulator: Simulator) -> None:
    """Start a worker. Ctrl-C is for the process that started it, and the worker ends when that process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _simulators.append(simulator)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _timed(task: Task, found: Results) -> Timed:
    start = time.perf_counter()
    result = do_task(_simulators[0], task, found)
    return result, time.perf_counter() - start
