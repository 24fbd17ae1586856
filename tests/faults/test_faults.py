"""Whatever call fails, whenever a process is killed: old outputs or new ones, one clear line, nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from broken_system import DISK_FULL, Command, broken_system
from clickmix import cli
from clickmix.export.target import EXPORTS
from soak import ALLOWED, WARMING_UP, growth
from trials import ALWAYS, Runs, failures, kills
from writing_commands import COMMANDS

pytestmark = pytest.mark.xdist_group("faults")
FAILURES, KILLS = 4, 2  # of each command; `make soak` takes all


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with broken_system() as system:
        yield Runs(system)


def test_the_library_makes_a_call_fail(runs: Runs) -> None:
    """Or else all other tests here would pass without a fault."""
    start, before, usual = runs.usual(COMMANDS[0])
    ended = runs.system.run(COMMANDS[0], start, fail=(usual.calls // 2, ALWAYS, DISK_FULL))
    assert ended.code == 2
    assert "No space left on device" in ended.err or "full" in ended.err
    assert runs.system.run(COMMANDS[0], start, fail=(2, 2, 0)).code == -9
    assert before["counts.parquet"] == b"old" != usual.files["counts.parquet"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_failing_call_leaves_old_or_new_files(runs: Runs, command: Command) -> None:
    tried, problems = failures(runs, command, most=1 if command.slow else FAILURES)
    assert tried
    assert problems == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_kill_leaves_old_or_new_files(runs: Runs, command: Command) -> None:
    tried, problems = kills(runs, command, most=1 if command.slow else KILLS)
    assert tried
    assert problems == []


def test_every_command_that_writes_is_here() -> None:
    """A new command, or a new target of `export`, gets a line in writing_commands.py."""
    found: Any = typer.main.get_command(cli.app)
    writing = {name for name, command in found.commands.items() if {"-o", "--merge"} & set(_options(command))}
    assert writing - {command.words.split()[0] for command in COMMANDS} == set()
    assert {target.name for target in EXPORTS} - {command.name.removeprefix("export-") for command in COMMANDS} == set()


def _options(command: Any) -> list[str]:
    return [option for parameter in command.params for option in parameter.opts]


def test_memory_stays_flat() -> None:
    """All commands but the slow ones, in one process; `make soak` runs a hundred rounds."""
    assert growth(WARMING_UP + 3, [command for command in COMMANDS if not command.slow]) < ALLOWED
