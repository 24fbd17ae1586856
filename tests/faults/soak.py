"""The soak, as `make soak` runs it: soak.py [rounds]

All calls that fail, many kills, and then all commands in one process, round after round: memory must stay flat.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from broken_system import Command, broken_system
from oracle import run_command
from trials import Runs, failures, kills
from writing_commands import COMMANDS, make_start, start_of

ROUNDS = 100
WARMING_UP = 3  # rounds in which caches fill
ALLOWED = 30.0  # megabytes that memory may grow by after that: allocators keep some


def megabytes() -> float:
    """The memory that this process has now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth(rounds: int, commands: Sequence[Command]) -> float:
    """The megabytes by which memory grows while all commands run, round after round, in this process."""
    found: list[float] = []
    with _working_folder() as folder:
        make_start(folder / "inputs")
        for _ in range(rounds):
            for command in commands:
                os.chdir(start_of(command, folder / "inputs", folder / "start"))
                ended = run_command(command.words.split())
                assert (ended.code, ended.problem) == (0, ""), (command.name, ended)
                os.chdir(folder)
            found.append(megabytes())
    return found[-1] - found[WARMING_UP - 1]


@contextlib.contextmanager
def _working_folder() -> Iterator[Path]:
    before, folder = Path.cwd(), Path(tempfile.mkdtemp(prefix="clickmix-soak-"))
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        shutil.rmtree(folder)


def main(rounds: int) -> None:
    """All of it; exits with 1 if anything was wrong."""
    with broken_system() as system:
        runs = Runs(system)
        failed = [failures(runs, command, most=10**9) for command in COMMANDS]
        killed = [kills(runs, command, most=50) for command in COMMANDS]
    grown = growth(rounds, [command for command in COMMANDS if not command.slow])
    problems = [problem for _, found in (*failed, *killed) for problem in found]
    counts = sum(count for count, _ in failed), sum(count for count, _ in killed)
    print(*problems, sep="\n")  # noqa: T201
    print(f"{counts[0]} failing calls, {counts[1]} kills; {grown:.0f} MB more after {rounds} rounds")  # noqa: T201
    sys.exit(bool(problems) or grown > ALLOWED)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
