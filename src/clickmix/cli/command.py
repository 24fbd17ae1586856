"""The command: parse, call, print. Heavy modules are imported inside commands, so that --help answers at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Annotated, Any, NoReturn

try:
    import typer

    import clickmix
    from clickmix.cli import export as cli_export
    from clickmix.cli import lab as cli_lab
    from clickmix.cli import labels as cli_labels
    from clickmix.cli import rankers as cli_rankers
    from clickmix.cli import sql as cli_sql
    from clickmix.cli.members import command_with
    from clickmix.cli.terminal import steady_streams
    from clickmix.errors import ClickmixError, printable
    from clickmix.storage.written import Written, recording
except KeyboardInterrupt:  # a fifth of a second before `main` can hear it; there is nothing to clean up yet
    os._exit(128 + signal.SIGINT)

# Ctrl-C, `kill`, and a terminal that is closed, which Windows does not tell.
STOPPING = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]

# How Python and the system's loader tell that there is no memory for a thread or a library.
NO_MEMORY = ("can't start new thread", "failed to map segment", "annot allocate memory")

app = typer.Typer(
    name="clickmix",
    help="Turn a biased click log into relevance labels a ranker can be trained on.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


# Commands whose options follow from a family.
_OPTIONS: dict[Any, Any] = {
    cli_labels.debias: cli_labels.correction_options,
    cli_labels.fit: cli_labels.mixture_options,
    cli_rankers.train: cli_rankers.ranker_options,
    cli_lab.simulate: cli_lab.user_options,
    cli_export.export: cli_export.export_options,
}
for _command in (
    cli_labels.debias,
    cli_labels.counts,
    cli_labels.fit,
    cli_labels.label,
    cli_labels.inspect,
    cli_sql.sql,
    cli_lab.simulate,
    cli_lab.demo,
    cli_rankers.train,
    cli_rankers.evaluate,
    cli_rankers.score,
    cli_export.export,
    cli_lab.reproduce,
):
    app.command(cls=command_with(_OPTIONS[_command]) if _command in _OPTIONS else None)(_command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"clickmix {clickmix.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command; report what a user can put right on one line, without a stack trace."""
    # Our matrices are small: threads for them would only take time from the engine's.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    steady_streams()
    with recording() as written, _stoppable(written):
        try:
            app(standalone_mode=True)
        except ClickmixError as error:
            _fail(f"{error.message} {written}" if error.nothing_written else error.message)
        except OSError as error:
            _fail(f"{error.filename or 'file'}: {error.strerror or error}. {written}")
        except MemoryError as error:
            _fail(f"out of memory: {error}. Give more with --memory, or free some.")
        except (RuntimeError, ImportError) as error:
            if not any(sign in str(error) for sign in NO_MEMORY):
                raise
            _fail(f"out of memory: the system gives no more to this process (see ulimit -v). {written}")
    sys.exit(0)


def _fail(message: str) -> NoReturn:
    typer.echo(f"clickmix: {printable(message)}", err=True)
    sys.exit(2)


class _Stopped(KeyboardInterrupt):
    """One of the signals came; whoever knows what to do at Ctrl-C does it for all of them."""


@contextlib.contextmanager
def _stoppable(written: Written) -> Iterator[None]:
    """Signals that stop the command unwind it, so that what is half written goes, and end the process quietly."""
    came: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise _Stopped

    # One that is ignored stays so: nohup, and commands in the background of a script.
    before = {number: signal.getsignal(number) for number in STOPPING}
    heard = [number for number in STOPPING if before[number] in (signal.SIG_DFL, signal.default_int_handler)]
    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    except BaseException as error:
        # Spark hears Ctrl-C itself, and typer makes 130 of it.
        if came or isinstance(error, KeyboardInterrupt) or (isinstance(error, SystemExit) and error.code == 130):
            _leave(came[0] if came else signal.SIGINT, written)
        raise
    finally:
        for number in heard:
            signal.signal(number, before[number])


def _leave(number: int, written: Written) -> NoReturn:
    """End the process now: threads that are loading modules, and C++ that misses its objects, have no say in it."""
    for ignored in STOPPING:  # who presses twice leaves nothing behind either
        signal.signal(ignored, signal.SIG_IGN)
    if "clickmix.engines.duckdb" in sys.modules:
        from clickmix.engines.duckdb import remove_folders

        remove_folders()
    with contextlib.suppress(OSError):  # a terminal that was closed shows nothing
        typer.echo(f"clickmix: stopped. {written}", err=True)
        sys.stdout.flush()
    os._exit(128 + number)
