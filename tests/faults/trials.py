"""Trials: each writing command with a call that fails, or killed, and what was wrong with its end."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from broken_system import (
    BROKEN_DISK,
    DISK_FULL,
    BrokenSystem,
    Command,
    Ended,
    Files,
    judge_failure,
    judge_kill,
    read_files,
)
from writing_commands import make_slow_start, make_start, start_of

ALWAYS = 10**9


class Runs:
    """The commands, each with its files before and after a run in which nothing fails."""

    def __init__(self, system: BrokenSystem) -> None:
        self.system, self.inputs = system, system.scratch / "inputs"
        make_start(self.inputs)
        self._slow_made = False
        self._usual: dict[str, Ended] = {}

    def usual(self, command: Command) -> tuple[Path, Files, Ended]:
        """Where a command starts, the files there, and how it ends if nothing fails."""
        if command.slow and not self._slow_made:
            make_slow_start(self.inputs)
            self._slow_made = True
        start = start_of(command, self.inputs, self.system.scratch / "start")
        if command.name not in self._usual:
            self._usual[command.name] = self.system.run(command, start)
        return start, read_files(start), self._usual[command.name]


def table_rows(figures: dict[str, Any]) -> list[str]:
    """The rows of the table in SECURITY.md, from the figures of benchmarks/hostile.py."""
    return [
        f"| damaged files of {figures['kinds_of_files']} kinds | {figures['inputs']:,} | "
        f"{figures['inputs_that_ended_badly']} |",
        f"| failing calls and kills of {figures['commands']} commands | {figures['failing_calls']:,} and "
        f"{figures['kills']:,} | {figures['files_lost']} |",
    ]


def failing_points(calls: int, most: int, rng: random.Random) -> list[int]:
    """Some of the calls, the first and the last among them."""
    points = range(1, calls + 1)
    return sorted({1, calls, *rng.sample(points, min(most, calls))})


def failures(runs: Runs, command: Command, *, most: int) -> tuple[int, list[str]]:
    """Let calls of a command fail, one per run: how many were tried, and what was wrong."""
    start, before, usual = runs.usual(command)
    assert usual.code == 0, usual.err
    problems = []
    points = failing_points(usual.calls, most, random.Random(command.name))
    for point in points:
        # A disk that is full stays so; other errors come once.
        fail = (point, ALWAYS, DISK_FULL) if point % 2 else (point, point, BROKEN_DISK)
        problem = judge_failure(command, runs.system.run(command, start, fail=fail), before, usual.files)
        problems += [f"call {point} of {usual.calls}: {problem}"] if problem else []
    return len(points), problems


def kills(runs: Runs, command: Command, *, most: int) -> tuple[int, list[str]]:
    """Kill a command at some of its calls and at random moments: how many were tried, and what was wrong."""
    start, before, usual = runs.usual(command)
    rng = random.Random(command.name)
    at_calls = [(point, ALWAYS, 0) for point in rng.sample(range(1, usual.calls + 1), min(most, usual.calls))]
    moments = [rng.uniform(0, 1.2) * usual.seconds for _ in range(most)]
    ends = [runs.system.run(command, start, fail=fail) for fail in at_calls]
    ends += [runs.system.run(command, start, kill_after=moment) for moment in moments]
    problems = [judge_kill(command, ended, before, usual.files) for ended in ends]
    return len(ends), [problem for problem in problems if problem]
