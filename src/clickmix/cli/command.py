"""The command: parse, call, print. Heavy modules are imported inside commands, so that --help answers at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal, NoReturn

try:
    import typer

    import clickmix
    from clickmix.cli import experiments as cli_experiments
    from clickmix.cli import labels as cli_labels
    from clickmix.cli import rankers as cli_rankers
    from clickmix.cli import sql as cli_sql
    from clickmix.cli.members import command_with
    from clickmix.cli.terminal import print_fit, say, stages, steady_streams
    from clickmix.errors import NOTHING_WRITTEN, ClickmixError, printable, what_was_written, written
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


def simulate(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")],
    clicks: Annotated[int, typer.Option(help="How many clicks.")] = 1_000_000,
    user: Annotated[Literal["pbm", "dcm", "ubm"], typer.Option(help="Who clicks.")] = "pbm",
    eta: Annotated[
        float | None, typer.Option(help="How fast a pbm user's attention falls, k^-eta; 1 if not given.")
    ] = None,
    top: Annotated[int | None, typer.Option(help="Length of result lists; 20 for pbm, 10 for dcm and ubm.")] = None,
    relevance: Annotated[
        Literal["binarized", "graded"], typer.Option(help="How grades become relevance.")
    ] = "binarized",
    data: Annotated[Path | None, typer.Option(help="A LETOR collection; a synthetic one if not given.")] = None,
    queries: Annotated[
        int | None, typer.Option(help="Training queries of the synthetic collection; 2000 if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
) -> None:
    """Simulate users on a collection: a log, its truth, and the features."""
    from clickmix.lab.simulate import Simulation, check_inputs_stay, open_collection, write_simulation

    settings = Simulation(clicks=clicks, user=user, eta=eta, top=top, relevance=relevance, seed=seed)
    settings.person()  # complain before any work
    if data is not None:
        check_inputs_stay(data, output)
    with stages() as stage:
        stage("reading the collection" if data else "making the collection")
        collection = open_collection(data, queries=queries, seed=seed)
        for note in collection.notes:
            say(note)
        rows = write_simulation(collection, output, settings, stage=stage)
    say(f"{rows:,} impressions on {collection.train.queries:,} queries in {output / 'log.parquet'}, truth beside it.")


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("demo"),
) -> None:
    """See it work: simulated users, labels from their clicks, rankers trained on them, the truth beside, a report."""
    from clickmix.lab.demo import run_demo

    with stages() as stage:
        done = run_demo(output, say=say, stage=stage)
    say("")
    print_fit(done.fit)
    say("")
    say("Labels, compared with the truth:")
    for known in done.known:
        say(str(known))
    if done.rankers is not None:
        say("")
        for line in str(done.rankers).splitlines():
            say(line)
    if done.report is not None:
        say("")
        say(f"The report, for a browser: {done.report}")


app.command(cls=command_with(cli_labels.correction_options))(cli_labels.debias)
app.command(cls=command_with(cli_labels.format_options))(cli_labels.counts)
app.command(cls=command_with(cli_labels.mixture_options))(cli_labels.fit)
app.command(cls=command_with(cli_labels.format_options))(cli_labels.label)
app.command(cls=command_with(cli_labels.format_options))(cli_labels.inspect)
for _command in (
    cli_sql.sql,
    simulate,
    demo,
    cli_rankers.train,
    cli_rankers.evaluate,
    cli_rankers.score,
    cli_experiments.reproduce,
):
    app.command()(_command)


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
    """Run the command; what a user can put right is told in one line, without a stack trace."""
    # Our matrices are small: threads for them would only take time from the engine's.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    steady_streams()
    written.clear()
    with _stoppable():
        try:
            app(standalone_mode=True)
        except ClickmixError as error:
            _fail(str(error).replace(NOTHING_WRITTEN, what_was_written()))
        except OSError as error:
            _fail(f"{error.filename or 'file'}: {error.strerror or error}. {what_was_written()}")
        except MemoryError as error:
            _fail(f"out of memory: {error}. Give more with --memory, or free some.")
        except (RuntimeError, ImportError) as error:
            if not any(sign in str(error) for sign in NO_MEMORY):
                raise
            _fail(f"out of memory: the system gives no more to this process (see ulimit -v). {what_was_written()}")
    sys.exit(0)


def _fail(message: str) -> NoReturn:
    typer.echo(f"clickmix: {printable(message)}", err=True)
    sys.exit(2)


class _Stopped(KeyboardInterrupt):
    """One of the signals came; whoever knows what to do at Ctrl-C does it for all of them."""


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
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
            _leave(came[0] if came else signal.SIGINT)
        raise
    finally:
        for number in heard:
            signal.signal(number, before[number])


def _leave(number: int) -> NoReturn:
    """End the process now: threads that are loading modules, and C++ that misses its objects, have no say in it."""
    for ignored in STOPPING:  # who presses twice leaves nothing behind either
        signal.signal(ignored, signal.SIG_IGN)
    if "clickmix.engines.duckdb" in sys.modules:
        from clickmix.engines.duckdb import remove_folders

        remove_folders()
    with contextlib.suppress(OSError):  # a terminal that was closed shows nothing
        typer.echo(f"clickmix: stopped. {what_was_written()}", err=True)
        sys.stdout.flush()
    os._exit(128 + number)
