"""What the command shows: lines, progress while it works, the table of a fit. rich is imported for progress only."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer

from clickmix.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress

    from clickmix.corrections.fitted import MixtureFit

_drawn: list[Progress] = []  # what moves on the terminal now


def say(text: str) -> None:
    """Print a line on standard output; what a log put into it cannot paint the screen.

    A bar or spinner is cleared first. When nobody reads on, as after `| head`, the command works on in silence.
    """
    for bar in _drawn:
        bar.stop()
    try:
        typer.echo(printable(text))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    for bar in _drawn:
        bar.start()


@contextlib.contextmanager
def _drawing(bar: Progress) -> Iterator[None]:
    with bar:
        _drawn.append(bar)
        try:
            yield
        finally:
            _drawn.remove(bar)


@contextlib.contextmanager
def progress_bar(title: str, *, left: bool = False) -> Iterator[Callable[[float], None] | None]:
    """Draw a bar on the terminal, nothing elsewhere; `left` adds an estimate of the time left."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = [TextColumn("{task.description:<10}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()]
    if left:
        columns += [TextColumn("left"), TimeRemainingColumn()]
    bar = Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=3600)
    with _drawing(bar):
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextlib.contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Say on the terminal what is being done, and for how long; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda title: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    with _drawing(bar):
        task = bar.add_task("", total=None)
        yield lambda title: bar.update(task, description=title)


def print_fit(fitted: MixtureFit) -> None:
    """Print the table of a fit, the verdict and what it means; the table fits the terminal, or 80 columns."""
    from clickmix.report.results import fit_results
    from clickmix.report.text_table import text_lines

    results, width = fit_results(fitted), shutil.get_terminal_size().columns
    for line in text_lines(results.places, width=width):
        say(line)
    for sentence in (results.verdict.sentence, *results.verdict.evidence, *results.notes):
        for line in textwrap.wrap(printable(sentence), width) if sys.stdout.isatty() else [sentence]:
            say(line)
