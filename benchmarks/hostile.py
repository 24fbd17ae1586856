"""Damaged files, failing calls and kills: python benchmarks/hostile.py [inputs]

Counts what was tried and what was lost. The inputs are others than those of the tests, and calls fail one after the
other until a command has no more of them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from measuring import write_result

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS / "faults")]

from broken_system import broken_system  # noqa: E402
from fuzz import Tried, fuzz  # noqa: E402
from targets import TARGETS  # noqa: E402
from trials import Runs, failures, kills, table_rows  # noqa: E402
from writing_commands import COMMANDS  # noqa: E402

INPUTS = 3_000
PARTS = 3  # of the inputs, side by side
FIRST = 10_000  # the tests begin at 0
MOST_FAILURES, MOST_KILLS = 40, 4


def measure(inputs: int = INPUTS) -> dict[str, Any]:
    """How many inputs, failing calls and kills were tried, and how many of them ended badly."""
    with ProcessPoolExecutor(PARTS + 1) as pool:
        faults = pool.submit(fail_and_kill)
        firsts = [FIRST + part * inputs for part in range(PARTS)]
        parts = list(pool.map(damage, firsts, [inputs // PARTS] * PARTS))
        return _of_inputs(parts) | faults.result() | {"problems": _problems(parts, faults.result())}


def damage(first: int, inputs: int) -> Tried:
    """Run commands on so many damaged files."""
    return fuzz(TARGETS, first=first, inputs=inputs, seconds=10**9, keeping=False)


def fail_and_kill() -> dict[str, Any]:
    """Let calls of every command that writes fail, and kill it."""
    with broken_system() as system:
        runs = Runs(system)
        failed = [
            failures(runs, command, most=MOST_FAILURES // 4 if command.slow else MOST_FAILURES) for command in COMMANDS
        ]
        killed = [kills(runs, command, most=MOST_KILLS // 4 if command.slow else MOST_KILLS) for command in COMMANDS]
    return {
        "commands": len(COMMANDS),
        "failing_calls": sum(count for count, _ in failed),
        "kills": sum(count for count, _ in killed),
        "by_command": {
            command.name: {"failing_calls": calls, "kills": kills, "files_lost": len(wrong) + len(worse)}
            for command, (calls, wrong), (kills, worse) in zip(COMMANDS, failed, killed, strict=True)
        },
        "files_lost": sum(len(problems) for _, problems in (*failed, *killed)),
        "problems": [problem for _, problems in (*failed, *killed) for problem in problems],
    }


def _of_inputs(parts: Sequence[Tried]) -> dict[str, Any]:
    ends = sum((part.ends for part in parts), Counter[str]())
    by_kind = {
        target.name: sum((part.by_target.get(target.name, Counter()) for part in parts), Counter[str]())
        for target in TARGETS
    }
    return {
        "kinds_of_files": len(TARGETS),
        "inputs": ends.total(),
        "inputs_refused": ends["exit 2"],
        "inputs_read": ends["exit 0"],
        "inputs_that_ended_badly": ends["bad"],
        "inputs_by_kind": {
            name: {"refused": ends["exit 2"], "read": ends["exit 0"], "ended_badly": ends["bad"]}
            for name, ends in by_kind.items()
        },
        "left_behind": sum(len(part.left) for part in parts),
    }


def _problems(parts: Sequence[Tried], faults: dict[str, Any]) -> list[str]:
    return [*(problem for part in parts for problem in part.problems.values()), *faults["problems"]]


def write_table(figures: dict[str, Any]) -> None:
    """Put the figures into the table of SECURITY.md."""
    page = TESTS.parent / "SECURITY.md"
    lines = page.read_text(encoding="utf-8").split("\n")
    for row in table_rows(figures):
        (at,) = (number for number, line in enumerate(lines) if line.startswith(" ".join(row.split()[:3])))
        lines[at] = row
    page.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    figures = measure(int(sys.argv[1]) if len(sys.argv) > 1 else INPUTS)
    write_result("hostile", "python benchmarks/hostile.py", figures)
    write_table(figures)
