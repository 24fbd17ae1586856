"""What the command prints: lines, progress while it works, the table of a fit. Only progress needs rich."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from clickmix.errors import hide_secrets, printable

if TYPE_CHECKING:
    from rich.progress import Progress

    from clickmix.evaluate import Table
    from clickmix.judging.held_out import HeldOutEvidence
    from clickmix.report.rows import Rows

MOST_PLACES = 100


class _Steady(io.FileIO):
    """A standard stream that drops text once its reader is gone: `| head -1` must not stop the work.

    If output cannot be written for another reason, such as a full disk, that is an error once. Messages are dropped.
    """

    failed = False

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError) and self.fileno() == 1 and not self.failed:
                self.failed = True
                raise OSError(error.errno, error.strerror, "standard output") from None
            return len(data)


class _Messages(io.TextIOWrapper):
    """Standard error, without secrets."""

    def write(self, text: str, /) -> int:
        super().write(hide_secrets(text))
        return len(text)


def steady_streams() -> None:
    """Make standard streams that cannot stop the work: closed ones drop text, letters they cannot show are escaped."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # closed (`2>&-`): the next file that is opened would get its number, and its messages
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _steady(sys.stdout, 1, io.TextIOWrapper)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _steady(sys.stderr, 2, _Messages)


def _steady(stream: Any, number: int, kind: type[io.TextIOWrapper]) -> io.TextIOWrapper:
    """The stream with this number, in its old encoding."""
    raw = io.BufferedWriter(_Steady(number, "w", closefd=False))
    encoding = stream.encoding if stream is not None else "utf-8"
    lines = kind is _Messages or raw.isatty()
    return kind(raw, encoding=encoding, errors="backslashreplace", line_buffering=lines)


_drawn: list[Progress] = []  # the bars and spinners on the terminal now
_as_json: list[bool] = []  # whether standard output is reserved for JSON; the last entry counts


def say(text: str, *, colour: str | None = None) -> None:
    """Print a line on standard output, with control characters escaped; clear a bar or spinner first.

    With --json the line goes to standard error. Only a terminal gets the colour.
    """
    for bar in _drawn:
        bar.stop()
    error = _as_json[-1:] == [True]
    # typer writes UTF-8 even to a terminal that says it knows only ASCII.
    encoding = (sys.stderr if error else sys.stdout).encoding or "utf-8"
    line = printable(hide_secrets(text)).encode(encoding, "backslashreplace").decode(encoding)
    plain = colour is None or "NO_COLOR" in os.environ
    typer.echo(line if plain else typer.style(line, fg=colour, bold=True), err=error)
    for bar in _drawn:
        bar.start()


def say_error(text: str) -> None:
    """Print what went wrong on standard error."""
    typer.echo(f"clickmix: {printable(text)}", err=True)


@contextlib.contextmanager
def messages_on_error_stream(asked: bool) -> Iterator[None]:
    """Keep standard output free for JSON, if asked."""
    _as_json.append(asked)
    try:
        yield
    finally:
        _as_json.pop()


def print_json(results: dict[str, Any]) -> None:
    """Print results as one JSON object on standard output."""
    from clickmix.report.rows import json_text

    typer.echo(json_text(_without_secrets(results)), nl=False)


def _without_secrets(value: Any) -> Any:
    """The same value with secrets hidden, text by text: in the whole document, quotation marks would be hidden too."""
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, dict):
        return {_without_secrets(key): _without_secrets(each) for key, each in value.items()}
    return [_without_secrets(each) for each in value] if isinstance(value, (list, tuple)) else value


def terminal_width() -> int:
    """The columns of the terminal, or 80 if there is none."""
    return shutil.get_terminal_size().columns


def say_sentences(sentences: Iterable[str]) -> None:
    """Print each sentence on its own line; a terminal wraps them between words."""
    for sentence in sentences:
        for line in textwrap.wrap(printable(sentence), terminal_width()) if sys.stdout.isatty() else [sentence]:
            say(line)


def say_table(table: Table) -> None:
    """Print a table of means and tests; columns that do not fit follow below."""
    for line in table.text(width=terminal_width()).splitlines():
        say(line)


def say_rows(rows: Rows) -> None:
    """Print a table that fits the terminal, or 80 columns."""
    from clickmix.report.rows import text_lines

    for line in text_lines(rows, width=terminal_width()):
        say(line)


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
    """Draw a progress bar, on a terminal only; `left` adds the time left."""
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
    """Show the current stage and its time, on a terminal only."""
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


def print_fit(fitted: object, held_out: HeldOutEvidence | None = None) -> dict[str, Any]:
    """Print the verdict on a mixture, why, what to do next, and the details. Return the same values.

    For other fits, print their summary if they have one.
    """
    from clickmix.corrections.correction import Described
    from clickmix.corrections.mixture_based.fit import MixtureFit

    if not isinstance(fitted, MixtureFit):
        if isinstance(fitted, Described):
            say(fitted.summary)
            return {"summary": fitted.summary}
        return {}
    from clickmix.report.results import fit_results

    results = fit_results(fitted, held_out)
    places = results.places
    verdict, on_clicks = results.verdict, results.held_out.sentences if results.held_out else ()
    evidence = [sentence for sentence in verdict.evidence if sentence not in on_clicks]
    say("")
    say(verdict.sentence, colour={"good": "green", "note": "yellow", "bad": "red"}[verdict.tone])
    say_sentences([*evidence, f"Next: {verdict.next}"])
    for sentences in filter(None, (on_clicks, results.notes)):
        say("")
        say_sentences(sentences)
    say("")
    say_rows(places.first(MOST_PLACES))
    if len(places.rows) > MOST_PLACES:
        say(f"{MOST_PLACES} of {len(places.rows):,} places shown; the model file (--model) has all.")
    say_sentences(places.notes)
    return results.json()


@contextlib.contextmanager
def loading(*modules: str) -> Iterator[None]:
    """Import modules in another thread; a failed import fails again where the module is used."""

    def load() -> None:
        with contextlib.suppress(Exception):
            _put_off("numpy.f2py", "numpy.testing")
            for module in modules:
                importlib.import_module(module)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _put_off(*modules: str) -> None:
    """Load modules when something in them is first used: scipy imports everything of numpy, and needs none of these."""
    for module in modules:
        parent, name = module.split(".")
        spec = importlib.util.find_spec(module)
        if module not in sys.modules and spec and spec.loader:
            spec.loader = importlib.util.LazyLoader(spec.loader)
            sys.modules[module] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[module])
            setattr(sys.modules[parent], name, sys.modules[module])
