"""The command: parse, call, print. Heavy modules are imported inside commands, so that --help answers at once."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

import clickmix
from clickmix import cli_experiments, cli_labels, cli_rankers, cli_sql
from clickmix.errors import ClickmixError, printable
from clickmix.terminal import print_fit, say, stages

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
    eta: Annotated[float, typer.Option(help="How fast attention falls with position k: k^-eta (pbm).")] = 1.0,
    top: Annotated[int | None, typer.Option(help="Length of result lists; 20 for pbm, 10 for dcm and ubm.")] = None,
    relevance: Annotated[
        Literal["binarized", "graded"], typer.Option(help="How grades become relevance.")
    ] = "binarized",
    data: Annotated[Path | None, typer.Option(help="A LETOR collection; a synthetic one if not given.")] = None,
    queries: Annotated[int, typer.Option(help="Training queries of the synthetic collection.")] = 2_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
) -> None:
    """Simulate users on a collection: a log, its truth, and the features."""
    from clickmix.simulate import Simulation, open_collection, write_simulation

    settings = Simulation(clicks=clicks, user=user, eta=eta, top=top, relevance=relevance, seed=seed)
    settings.person()  # complain before any work
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
    from clickmix.demo import run_demo

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


for _command in (
    cli_labels.debias,
    cli_labels.counts,
    cli_labels.fit,
    cli_labels.label,
    cli_labels.inspect,
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a letter gets its code
            stream.reconfigure(errors="backslashreplace")
    try:
        app(standalone_mode=True)
    except ClickmixError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}. Nothing was written.")
    except MemoryError as error:
        _fail(f"out of memory: {error}. Give more with --memory, or free some.")
    sys.exit(0)


def _fail(message: str) -> NoReturn:
    typer.echo(f"clickmix: {printable(message)}", err=True)
    sys.exit(2)
