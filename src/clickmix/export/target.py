"""Targets: the tools to export labels and rankers to.   labels or ranker -> files of another tool

A target is one file in this folder. It registers itself in `EXPORTS` and says what it takes and what its limits are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from clickmix.errors import InputError
from clickmix.registry import Family, Option
from clickmix.storage.atomic import real_path

Takes = Literal["labels", "ranker"]
TITLE = Option("title", "Its name in the other tool; default: the input's name.")


@dataclass(frozen=True)
class Exported:
    """What an export wrote: its files, sentences about them, and the requests that upload them."""

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()


class Target(Protocol):
    """A tool to export to."""

    @property
    def takes(self) -> Takes:
        """What it exports."""

    @property
    def limits(self) -> str:
        """What the tool cannot hold, in a sentence."""

    def write(self, source: Path, output: Path) -> Exported:
        """Write `source` in the tool's format to `output`; a failure leaves no half-written file."""


EXPORTS: Family[Target] = Family("target", "clickmix.export", first="quepid")


def export(source: str | Path, *, to: str, output: str | Path, **options: Any) -> Exported:
    """Write labels or a ranker in the format of the target `to`."""
    target = EXPORTS.make(to, **options)
    source, output = Path(source), Path(output)
    is_ranker = (source / "ranker.json").exists()
    if is_ranker and target.takes != "ranker":
        raise InputError(f"{source}: this is a ranker, and {to} takes labels. Name a labels file.")
    if source.is_file() and target.takes == "ranker":
        raise InputError(
            f"{source}: this is a file, and {to} takes a ranker. Name a folder that `clickmix train` wrote."
        )
    replaced, read = real_path(output), real_path(source)
    if replaced == read or (is_ranker and read in replaced.parents):
        raise InputError(f"{output}: would replace an input. Choose another name for the output.")
    return target.write(source, output)
