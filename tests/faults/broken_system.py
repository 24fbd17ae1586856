"""A system in which one call fails, or in which a process is killed, and the judge of what a command leaves there."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
HELPERS = HERE.parent / "helpers"
# What a process that is killed may leave: files that were being written, and a lock that nobody holds.
HIDDEN = re.compile(r"(.*/)?\.[^/]*\.(tmp|lock)(/.*)?")
TIMES = re.compile(rb"""("seconds"(?: class="number">|: ))[\d.e-]+""")
Files = dict[str, bytes]


@dataclass(frozen=True)
class Command:
    """A command that writes: its words, its outputs, and the files that lie there from an earlier run.

    `whole` are folders whose files belong together: after a kill they are all old, all new, or lack the file named
    here, and are refused. A `slow` one takes seconds.
    """

    name: str
    words: str
    outputs: Sequence[str]
    whole: dict[str, str] = field(default_factory=dict)
    slow: bool = False


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code or minus its signal, its messages, and what its folder holds."""

    code: int
    out: str
    err: str
    calls: int
    megabytes: float
    seconds: float
    files: Files
    temporary: list[str]


class BrokenSystem:
    """A process that runs commands, each in a fresh copy of a folder."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        library = build_library(scratch)
        environment = os.environ | {
            "LD_PRELOAD": str(library),
            "PYTHONPATH": os.pathsep.join([str(HELPERS), *sys.path]),
            "OMP_NUM_THREADS": "1",
            "XDG_CACHE_HOME": str(scratch / "cache"),
        }
        self.server = subprocess.Popen(
            [sys.executable, HERE / "fork_server.py"],
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answer()

    def run(
        self,
        command: Command,
        start: Path,
        *,
        fail: tuple[int, int, int] = (0, 0, 1),
        kill_after: float | None = None,
    ) -> Ended:
        """Run a command in a copy of `start`. `fail`: the first and last call to fail, and how; 0 kills there."""
        folder, temporary = self.scratch / "folder", self.scratch / "temporary"
        for path in (folder, temporary):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(start, folder)
        temporary.mkdir()
        request = {
            "folder": str(folder),
            "temporary": str(temporary),
            "words": command.words.split(),
            "fail": fail,
            "kill_after": kill_after,
        }
        assert self.server.stdin
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return Ended(**self._answer(), files=read_files(folder), temporary=sorted(os.listdir(temporary)))

    def _answer(self) -> dict[str, Any]:
        assert self.server.stdout
        answer: dict[str, Any] = json.loads(self.server.stdout.readline())
        return answer

    def close(self) -> None:
        """End the server."""
        assert self.server.stdin
        assert self.server.stdout
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()


def build_library(folder: Path) -> Path:
    """The library that makes calls fail, built in this folder."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: the tests build a library that makes calls fail")
    library = folder / "failing_calls.so"
    words = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(HERE / "failing_calls.c"), "-ldl"]
    subprocess.run(words, check=True, timeout=120)
    return library


@contextlib.contextmanager
def broken_system() -> Iterator[BrokenSystem]:
    """A system of its own, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="clickmix-faults-") as folder:
        system = BrokenSystem(Path(folder))
        try:
            yield system
        finally:
            system.close()


def read_files(folder: Path) -> Files:
    """All files of a folder, by path, without the seconds that a comparison took."""
    return {
        str(path.relative_to(folder)): TIMES.sub(rb"\1", path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def judge_failure(command: Command, ended: Ended, before: Files, after: Files) -> str:
    """What is wrong after a call failed: `before` and `after` are the files before and after a run without faults."""
    if ended.code == 0:
        wrong = differences(ended.files, after) or ", ".join(ended.temporary)
        return f"exit 0, but {wrong}" if wrong else ""
    if ended.code != 2 or ended.err.count("\n") != 1 or not ended.err.startswith("clickmix: "):
        return f"exit {ended.code}: {ended.err[-500:]!r}"
    if ended.temporary:
        return f"left in the temporary folder: {ended.temporary}"
    written = re.search(r"Written before that: (.*)\.$", ended.err.strip())
    told = written[1].split(", ") if written else []
    for name in sorted(before.keys() | after.keys() | ended.files.keys()):
        found, old, new = ended.files.get(name), before.get(name), after.get(name)
        # Beside a ranker's new document, old weights go.
        places = {str(Path(target).parent) for target in told if target.endswith("ranker.json")} | set(told)
        is_told = any(f"{name}/".startswith(f"{target.split(' (')[0]}/") for target in places)
        if found != old and not (is_told and found == new):
            state = "new" if found == new else "neither old nor new"
            return f"{name} is {state}, and the message is {ended.err.strip()!r}"
    return ""


def judge_kill(command: Command, ended: Ended, before: Files, after: Files) -> str:
    """What is wrong after a kill: every output is old or new, and only hidden files are left."""
    found = {name: data for name, data in ended.files.items() if not HIDDEN.fullmatch(name)}
    for name in sorted(before.keys() | after.keys() | found.keys()):
        if found.get(name) not in (before.get(name), after.get(name)):
            return f"{name} is neither old nor new" if name in found else f"{name} is gone"
    for folder, last in command.whole.items():
        states = {
            "old" if found.get(name) == before.get(name) else "new"
            for name in before.keys() | after.keys()
            if name.startswith(f"{folder}/") and before.get(name) != after.get(name)
        }
        if len(states) > 1 and f"{folder}/{last}" in found:
            return f"{folder} has old and new files side by side"
    return ""


def differences(found: Files, expected: Files) -> str:
    """The names that differ."""
    return ", ".join(sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)))


DISK_FULL, BROKEN_DISK = errno.ENOSPC, errno.EIO
