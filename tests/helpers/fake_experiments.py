"""A program that reproduces an experiment with made-up results: what the runner does, without training anything.

Workers import this file too, and so work in the made-up way as well.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from pathlib import Path

from clickmix.errors import InputError
from clickmix.lab.experiments import Request, reproduce, runner
from clickmix.lab.experiments.simulator import Simulator
from clickmix.lab.experiments.task import Result, Results, Task


def made_up(simulator: Simulator, task: Task, found: Results) -> Result:
    """Numbers that follow from the task alone, after a moment; the worker leaves its number in the folder of notes."""
    number = zlib.crc32(task.key.encode())
    notes = Path(os.environ["NOTES"])
    (notes / str(os.getpid())).touch()
    time.sleep(number % 20 / 1000)
    if task.key == os.environ.get("FAILING"):
        raise InputError(f"{task.key}: as asked for.")
    return {"ndcg@10": number / 2**32, "label error": 0.5}


runner.do_task = made_up  # type: ignore[attr-defined]

if __name__ == "__main__":
    experiment, folder, runs, ranker = sys.argv[1:]
    reproduce(
        Request(experiment, scale=0.005, runs=int(runs), rankers=tuple(ranker.split("+"))),
        folder,
        workers=int(os.environ.get("WORKERS", "2")),
    )
