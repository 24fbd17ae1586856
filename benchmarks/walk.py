"""The road of `clickmix debias` through the code: files and functions visited, and steps backwards.

A step is a call whose stage differs from that of the call before. Run: python benchmarks/walk.py [--verbose]
`--verbose` adds the files by folder with their calls, and which call stepped back to which.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb

import clickmix
from clickmix import cli

Call = tuple[str, str]  # file and function
SOURCE = Path(clickmix.__file__).parent
# Stages in the order of the walk; folders of one stage share a number. Other folders serve them all.
STAGES = {
    "cli": 0,
    "pipeline.py": 1,
    "log": 2,
    "counts": 3,
    "groups": 4,
    "mixtures": 4,
    "corrections": 4,
    "judging": 5,
    "report": 6,
}


def walked(words: list[str]) -> list[Call]:
    """The calls of a command, in order: file and function."""
    calls: list[Call] = []
    source = f"{SOURCE}{os.sep}"

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(source):
            calls.append((frame.f_code.co_filename.removeprefix(source), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        cli.app(words, standalone_mode=False)
    finally:
        sys.setprofile(None)
    return calls


def walked_debias() -> list[Call]:
    """The calls of `clickmix debias` on a small log."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        duckdb.execute(
            "COPY (SELECT q AS query_id, 20 * q + p AS doc_id, p AS position, CAST(hash(q, p, s) % 100 < "
            "(CASE WHEN hash(q, p) % 5 = 0 THEN 90 ELSE 30 END) / p AS INTEGER) AS clicked "
            f"FROM range(200) AS a(q), range(1, 11) AS b(p), range(50) AS c(s)) TO '{log}'"
        )
        words = ["debias", str(log), "-o", str(Path(folder) / "labels.parquet")]
        cli.app(words, standalone_mode=False)  # loads every module, which is not part of the walk
        return walked(words)


def stages_changed(calls: list[Call]) -> list[tuple[Call, Call, bool]]:
    """Every change of stage: the call before, the call after, and whether that is a step backwards."""
    staged = [(STAGES[top], call) for call in calls if (top := call[0].split("/")[0]) in STAGES]
    pairs = [pair for pair in itertools.pairwise(staged) if pair[0][0] != pair[1][0]]
    return [(before, after, later < earlier) for (earlier, before), (later, after) in pairs]


def main() -> None:
    """Label a small log, and print what was visited; with --verbose, where the road turns back."""
    calls = walked_debias()
    steps = stages_changed(calls)
    files = Counter(file for file, _ in calls)
    turns = Counter((before, after) for before, after, backwards in steps if backwards)
    print(f"{len(files)} files, {len(set(calls))} functions, ", end="")
    print(f"{len(steps)} changes of stage, {turns.total()} of them backwards")
    if "--verbose" in sys.argv:
        for top, of_folder in itertools.groupby(sorted(files), key=lambda file: file.split("/")[0]):
            print(f"{top}:", *(f"{file} ({files[file]})" for file in of_folder), sep="\n  ")
        for (before, after), times in turns.most_common():
            print(f"{times:4} times from {':'.join(before)} back to {':'.join(after)}")


if __name__ == "__main__":
    main()
