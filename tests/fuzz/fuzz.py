"""The fuzzer, as `make fuzz` runs it: fuzz.py [--seconds 600] [--inputs 2000] [--first 0] [--only rows.csv]

Damages every kind of file that clickmix reads, runs a command on it, and judges how it ended. An input that ends badly
is made as small as it gets and kept in tests/fuzz/kept, where the tests replay it.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oracle import OLD, Ended, contents, judge_files, left_in_temporary_folder, run_command
from results import judge_results
from seeds import make_seeds
from targets import TARGETS, Target

KEPT = Path(__file__).parent / "kept"
ATTEMPTS = 300  # to make an input smaller


class Sandbox:
    """A folder with the seeds; inputs are run in it, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def seed(self, target: Target) -> tuple[Target, bytes]:
        """The target with its file's own name (weights have their checksum in it), and the good file."""
        (path,) = self.folder.joinpath("in").glob(target.file)
        named = Target(str(path.relative_to(self.folder / "in")), target.mutators, target.commands, target.weight)
        return named, path.read_bytes()

    def problem(self, target: Target, words: list[str], data: bytes) -> tuple[Ended, str]:
        """Run a command on a damaged file: how it ended, and what is wrong with that, if anything."""
        path = Path("in", target.file)
        whole = {file: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
        shutil.rmtree("out", ignore_errors=True)
        Path("out").mkdir()
        outputs = [word for word in words if word.startswith("out/")]
        for output in outputs:
            if Path(output).suffix:
                Path(output).write_bytes(OLD)
        try:
            target.place(data)
            watched = [Path("out"), path.parent] if path.parent.name not in ("in", "collection") else [Path("out")]
            before = {str(folder): contents(folder) for folder in watched}
            input_before = path.read_bytes() if path.exists() else b""
            ended = run_command(words)
            problem = ended.problem
            for folder in watched:
                named = [str(Path(output).relative_to("out")) for output in outputs] if folder.name == "out" else []
                # Beside an export lie files that go with it, such as the features of a model.
                stems = tuple(f"{Path(output).stem}." for output in outputs if words[0] == "export")
                named += [name for name in contents(folder) if stems and name.startswith(stems)]
                problem = problem or judge_files(ended, before[str(folder)], contents(folder), named)
            changed = path.exists() and path.read_bytes() != input_before
            if changed and not (ended.code == 0 and "--merge" in words):
                problem = problem or "files: the input was changed"
            if ended.code == 0 and not problem:
                problem = judge_results(words, ended, data, target.file)
            return ended, problem
        finally:
            for file in path.parent.iterdir():
                if file.is_file() and whole.get(file) is None:
                    file.unlink()
            for file, content in whole.items():
                if not file.is_file() or file.read_bytes() != content:  # to write all again takes a third of the time
                    file.write_bytes(content)
            shutil.rmtree(path.parent / ".clickmix", ignore_errors=True)


@contextlib.contextmanager
def sandbox() -> Iterator[Sandbox]:
    """A fresh sandbox, which is the working folder and has the temporary folder inside."""
    before, tmpdir = Path.cwd(), os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="clickmix-fuzz-") as folder:
        os.chdir(folder)
        Path("tmp").mkdir()
        os.environ["TMPDIR"], tempfile.tempdir = f"{folder}/tmp", f"{folder}/tmp"
        try:
            make_seeds(Path(folder))
            yield Sandbox(Path(folder))
        finally:
            os.chdir(before)
            tempfile.tempdir = None
            os.environ.pop("TMPDIR")
            if tmpdir is not None:
                os.environ["TMPDIR"] = tmpdir


def minimised(data: bytes, is_bad: Callable[[bytes], bool], *, attempts: int = ATTEMPTS) -> bytes:
    """The smallest input found that is still bad: parts are left out, large ones first."""
    size = max(1, len(data) // 2)
    while size and attempts > 0:
        at, smaller = 0, False
        while at < len(data) and attempts > 0:
            attempts -= 1
            tried = data[:at] + data[at + size :]
            if is_bad(tried):
                data, smaller = tried, True
            else:
                at += size
        size = size if smaller and size == 1 else size // 2
    return data


def keep(box: Sandbox, target: Target, words: list[str], data: bytes, problem: str) -> Path:
    """Make a bad input smaller and keep it as a test: the command in the first line, the file after it."""
    kind = problem.split(":")[0]
    small = minimised(data, lambda tried: box.problem(target, words, tried)[1].split(":")[0] == kind)
    KEPT.mkdir(exist_ok=True)
    number = int.from_bytes(hashlib.sha256(small).digest()[:4], "big")
    path = KEPT / f"{target.name.split('.')[0]}-{number:08x}"
    path.write_bytes(as_kept(target, words, small))
    return path


def as_kept(target: Target, words: list[str], data: bytes) -> bytes:
    """An input as it is kept: the file it replaces and the command in the first line, the damaged file after it."""
    file = re.sub(r"\.[0-9a-f]{16}\.", ".*.", target.file)  # weights have their checksum in their name
    return f"{file}\t{shlex.join(words)}\n".encode() + data


@dataclass
class Tried:
    """What a run of the fuzzer tried: inputs by how they ended, also by target, and what was wrong, each kind once."""

    ends: Counter[str] = field(default_factory=Counter)
    by_target: dict[str, Counter[str]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def fuzz(
    targets: Sequence[Target], *, first: int, inputs: int, seconds: float, keeping: bool, last: Path | None = None
) -> Tried:
    """Run so many inputs, or as many as there is time for; the targets take turns by their weights."""
    tried, numbers, start = Tried(), Counter[str](), time.monotonic()
    with sandbox() as box:
        while time.monotonic() - start < seconds and tried.ends.total() < inputs:
            target = min(targets, key=lambda target: numbers[target.name] / target.weight)
            named, seed = box.seed(target)
            number = first + numbers[target.name]
            numbers[target.name] += 1
            words, data = named.mutated(seed, number)
            if last:  # a crash takes this process with it
                last.write_bytes(as_kept(named, words, data))
            ended, problem = box.problem(named, words, data)
            end = "bad" if problem else f"exit {ended.code}"
            tried.ends[end] += 1
            tried.by_target.setdefault(target.name, Counter())[end] += 1
            if problem and problem[:60] not in tried.problems:
                kept = f" -> {keep(box, named, words, data, problem)}" if keeping else ""
                tried.problems[problem[:60]] = f"{target.name} {number}: {' '.join(words)}: {problem}{kept}"
                print(tried.problems[problem[:60]], flush=True)  # noqa: T201
        gc.collect()
        tried.left = left_in_temporary_folder()
    return tried


def main() -> None:
    """Fuzz until the time is up, or for so many inputs."""
    parser = argparse.ArgumentParser(description="Damage every kind of file that clickmix reads.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--inputs", type=int, default=10**9)
    parser.add_argument("--first", type=int, help="the number of the first input of each target; by default any")
    parser.add_argument("--only", help="one target")
    parser.add_argument("--last", type=lambda text: Path(text).absolute(), help="a file for the input that is run now")
    parser.add_argument("--no-keep", action="store_true", help="report bad inputs without keeping them")
    asked = parser.parse_args()
    first = random.randrange(10**6) if asked.first is None else asked.first
    tried = fuzz(
        [target for target in TARGETS if asked.only in (None, target.name)],
        first=first,
        inputs=asked.inputs,
        seconds=asked.seconds,
        keeping=not asked.no_keep,
        last=asked.last,
    )
    print(f"{tried.ends.total():,} inputs from number {first}: {dict(tried.ends)}; left behind: {tried.left}")  # noqa: T201
    sys.exit(bool(tried.ends["bad"] or tried.left))


if __name__ == "__main__":
    main()
