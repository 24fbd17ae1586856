"""The oracle: runs one command in this process and says what is wrong with how it ended, or nothing.

A command ends with 0, having written only what it was asked for, with numbers that add up and ids that were in the
input; or with 2, one line on standard error and nothing written. Anything else is wrong: an exception, a warning, a
hang, more memory than MEGABYTES, a file left behind.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import typer.main

from clickmix import cli

SECONDS = 300  # of wall clock: three orders of magnitude more than a tiny file takes, so a busy machine is no hang
MEGABYTES = 512
LONGEST_LINE = 20_000
OLD = b"old"

# Commands are built from their signatures each time; here they are built once, which halves the time of an input.
# Only while a command runs here: other tests of this process add members to families.
built_once = functools.cache(typer.main.get_command)


class HangError(BaseException):
    """A command took longer than SECONDS; no `except Exception` of the product may catch it."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, what it printed, and what is wrong, if anything."""

    code: int | None
    out: str
    err: str
    problem: str = ""


def run_command(words: Sequence[str]) -> Ended:
    """Run the command in this process, in the current folder, and judge its code and its messages."""
    out, err, code, problem = io.StringIO(), io.StringIO(), None, ""
    before = peak_megabytes()
    argv, sys.argv = sys.argv, ["clickmix", *words]
    build, typer.main.get_command = typer.main.get_command, built_once
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _alarm(), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ResourceWarning)
            cli.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except HangError:
        problem = f"hang: more than {SECONDS} s"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/clickmix/" in frame.filename and "/engines/" not in frame.filename]
        place = (ours or frames)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        problem = f"exception: {type(error).__name__} at {where}: {str(error)[:300]}"
    finally:
        sys.argv, typer.main.get_command = argv, build
    grown = peak_megabytes() - before
    if grown > MEGABYTES:
        problem = problem or f"memory: {grown:.0f} MB more"
    return Ended(code, out.getvalue(), err.getvalue(), problem or _judged(code, out.getvalue(), err.getvalue()))


def peak_megabytes() -> float:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _judged(code: int | None, out: str, err: str) -> str:
    """What is wrong with a code and its messages."""
    if code == 0:
        return f"messages: exit 0, and on standard error {err[:300]!r}" if err else ""
    if code != 2:
        return f"code: {code}"
    if err.count("\n") != 1 or not err.startswith("clickmix: "):
        return f"messages: expected one line, found {err[:300]!r}"
    if len(err) > LONGEST_LINE:
        return f"messages: a line of {len(err)} characters"
    unclear = re.search(r"INTERNAL|Traceback|Assertion|<class |object at ", err)
    return f"messages: unclear: {err[:300]!r}" if unclear else ""


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by path; folders are there with a slash."""
    return {
        f"{path.relative_to(folder)}{'/' if path.is_dir() else ''}": b"" if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def judge_files(ended: Ended, before: dict[str, bytes], after: dict[str, bytes], named: Sequence[str]) -> str:
    """What is wrong with the files: on a failure all stay, on success only the named outputs change."""
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if ended.code == 2 and changed:
        return f"files: exit 2, but written: {', '.join(sorted(changed))}"
    strange = [name for name in sorted(changed) if not any(f"{name}/".startswith(f"{output}/") for output in named)]
    return f"files: not asked for: {', '.join(strange)}" if strange else ""


def left_in_temporary_folder() -> list[str]:
    """What commands left in TMPDIR."""
    return sorted(name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("clickmix-"))
