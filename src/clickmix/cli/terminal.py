"""What the command shows: lines, progress while it works, the table of a fit. rich is imported for progress only."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from clickmix.errors import hide_secrets, printable

if TYPE_CHECKING:
    from rich.progress import Progress

MOST_PLACES = 100


class _Steady(io.FileIO):
    """A standard stream that drops what its reader, who has left, does not take: `| head -1` must not stop the work."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)


class _Messages(io.TextIOWrapper):
    """Standard error, without secrets."""

    def write(self, text: str, /) -> int:
        super().write(hide_secrets(text))
        return len(text)


def steady_streams() -> None:
    """Standard streams that cannot stop the work: closed ones take nothing, letters they cannot show are escaped."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # closed (`2>&-`): the next file that is opened would get its number, and messages with it
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _steady(sys.stdout, 1, io.TextIOWrapper)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _steady(sys.stderr, 2, _Messages)


def _steady(stream: Any, number: int, kind: type[io.TextIOWrapper]) -> io.TextIOWrapper:
    """The stream of this number, in the encoding it had."""
    raw = io.BufferedWriter(_Steady(number, "w", closefd=False))
    encoding = stream.encoding if stream is not None else "utf-8"
    # Messages come line by line, others where somebody watches.
    lines = kind is _Messages or raw.isatty()
    return kind(raw, encoding=encoding, errors="backslashreplace", line_buffering=lines)


_drawn: list[Progress] = []  # what moves on the terminal now


def say(text: str) -> None:
    """Print a line on standard output; what a log put into it cannot paint the screen.

    A bar or spinner is cleared first.
    """
    for bar in _drawn:
        bar.stop()
    typer.echo(printable(hide_secrets(text)))
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


def print_fit(fitted: object) -> None:
    """Print the table of a mixture, the verdict and what it means; of other fits a sentence, where they have one.

    The table fits the terminal, or 80 columns.
    """
    from clickmix.corrections.correction import Described
    from clickmix.corrections.mixture_based.fit import MixtureFit

    if not isinstance(fitted, MixtureFit):
        if isinstance(fitted, Described):
            say(fitted.summary)
        return
    from clickmix.report.results import fit_results
    from clickmix.report.text_table import text_lines

    results, width = fit_results(fitted), shutil.get_terminal_size().columns
    places = results.places
    for line in text_lines(places.first(MOST_PLACES), width=width):
        say(line)
    if len(places.rows) > MOST_PLACES:
        say(f"Shown are {MOST_PLACES} of {len(places.rows):,} places; the model file (--model) has all of them.")
    for sentence in (results.verdict.sentence, *results.verdict.evidence, *results.notes):
        for line in textwrap.wrap(printable(sentence), width) if sys.stdout.isatty() else [sentence]:
            say(line)
