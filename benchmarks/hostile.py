"""Damaged files, failing calls and kills: python benchmarks/hostile.py [inputs]

Counts what was tried and what was lost. The inputs are others than those of the tests, and calls fail one after the
other until a command has no more of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from measuring import write_result

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS / "faults")]

INPUTS = 2_500
FIRST = 10_000  # the tests begin at 0
MOST_FAILURES, MOST_KILLS = 40, 4


def measure(inputs: int = INPUTS) -> dict[str, Any]:
    """How many inputs, failing calls and kills were tried, and how many of them ended badly."""
    from broken_system import broken_system
    from fuzz import fuzz
    from targets import TARGETS
    from trials import Runs, failures, kills
    from writing_commands import COMMANDS

    tried = fuzz(TARGETS, first=FIRST, inputs=inputs, seconds=10**9, keeping=False)
    with broken_system() as system:
        runs = Runs(system)
        failed = [
            failures(runs, command, most=MOST_FAILURES // 4 if command.slow else MOST_FAILURES) for command in COMMANDS
        ]
        killed = [kills(runs, command, most=MOST_KILLS // 4 if command.slow else MOST_KILLS) for command in COMMANDS]
    return {
        "kinds_of_files": len(TARGETS),
        "inputs": tried.ends.total(),
        "inputs_refused": tried.ends["exit 2"],
        "inputs_read": tried.ends["exit 0"],
        "inputs_that_ended_badly": tried.ends["bad"],
        "inputs_by_kind": {
            name: {"refused": ends["exit 2"], "read": ends["exit 0"], "ended_badly": ends["bad"]}
            for name, ends in tried.by_target.items()
        },
        "commands": len(COMMANDS),
        "failing_calls": sum(count for count, _ in failed),
        "kills": sum(count for count, _ in killed),
        "by_command": {
            command.name: {"failing_calls": calls, "kills": kills, "files_lost": len(wrong) + len(worse)}
            for command, (calls, wrong), (kills, worse) in zip(COMMANDS, failed, killed, strict=True)
        },
        "files_lost": sum(len(problems) for _, problems in (*failed, *killed)),
        "problems": [
            *tried.problems.values(),
            *(problem for _, problems in (*failed, *killed) for problem in problems),
        ],
        "left_behind": len(tried.left),
    }


def write_table(figures: dict[str, Any]) -> None:
    """Put the figures into the table of SECURITY.md."""
    from trials import table_rows

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
