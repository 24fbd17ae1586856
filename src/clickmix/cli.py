"""The command: parse, call, print. Heavy modules are imported inside commands, so that --help answers at once."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

import clickmix
from clickmix import cli_rankers
from clickmix.errors import ClickmixError, InputError, SettingError, printable
from clickmix.terminal import print_fit, progress_bar, say, stages

if TYPE_CHECKING:
    from clickmix.counts import Counts

app = typer.Typer(
    name="clickmix",
    help="Turn a biased click log into relevance labels a ranker can be trained on.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Log = Annotated[list[str], typer.Argument(help="Files, folders or globs: Parquet, CSV, NDJSON, gzipped or not.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="The file to write; its name says the format.")]
Columns = Annotated[str, typer.Option(help="Other column names: query_id=search_term,doc_id=sku.")]
Context = Annotated[str, typer.Option(help="Columns that change what is examined: device,layout.")]
BadRows = Annotated[Literal["fail", "skip"], typer.Option(help="Stop at a bad row, or leave bad rows out and say so.")]
Memory = Annotated[str | None, typer.Option(help="How much memory to use, for instance 4GB; the rest goes to disk.")]
Mixture = Annotated[Literal["binomial", "gaussian"], typer.Option(help="How clicks scatter around a rate.")]
Prior = Annotated[Literal["position", "flat"], typer.Option(help="Whether better positions hold better documents.")]


@app.command()
def debias(
    log: Log,
    output: Output,
    correction: Annotated[Literal["mixture", "none"], typer.Option(help="How clicks become relevance.")] = "mixture",
    mixture: Mixture = "binomial",
    prior: Prior = "position",
    context: Context = "",
    model: Annotated[Path | None, typer.Option(help="Also write the fitted model here.")] = None,
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
) -> None:
    """From a click log to relevance labels: counts, fit and label in one."""
    from clickmix.corrections import MixtureFit
    from clickmix.pipeline import choose_correction

    chosen = choose_correction(correction, mixture=mixture, prior=prior)
    _check_outputs(log, tables=[output], models=[model] if model else [])
    counts = _count(log, columns, context, bad_rows, memory)
    with progress_bar("fitting") as progress:
        fit = chosen.fit(counts, progress=progress)
    _write_labels(fit, counts, output)
    if isinstance(fit, MixtureFit):
        if model is not None:
            fit.write(model)
        print_fit(fit)


@app.command()
def counts(
    log: Log,
    output: Output,
    context: Context = "",
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
) -> None:
    """Count a log once; counts files are logs too, and several of them add up."""
    _check_outputs(log, tables=[output])
    counted = _count(log, columns, context, bad_rows, memory)
    rows = counted.write(output)
    say(f"{rows:,} cells (query, document, position) in {output}.")


@app.command()
def fit(
    log: Log,
    output: Output,
    mixture: Mixture = "binomial",
    prior: Prior = "position",
    context: Context = "",
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
) -> None:
    """Fit the correction and write it as a model file."""
    from clickmix.corrections import MixtureCorrection

    _check_outputs(log, models=[output])
    counted = _count(log, columns, context, bad_rows, memory)
    with progress_bar("fitting") as progress:
        fitted = MixtureCorrection(mixture, prior).fit(counted, progress=progress)
    fitted.write(output)
    say(f"Model in {output}.")
    print_fit(fitted)


@app.command()
def label(
    log: Log,
    model: Annotated[Path, typer.Option(help="A model file that `clickmix fit` or `debias --model` wrote.")],
    output: Output,
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
) -> None:
    """Label a log with a model that was fitted before."""
    from clickmix.corrections import MixtureFit

    fitted = MixtureFit.read(model)
    _check_outputs([*log, str(model)], tables=[output])
    counted = _count(log, columns, ",".join(fitted.context), bad_rows, memory)
    unseen = fitted.unseen(counted)
    if unseen:
        say(f"{len(unseen)} places are not in the model, for instance {unseen[0]}; the nearest it knows stand in.")
    _write_labels(fitted, counted, output)


@app.command()
def inspect(model: Annotated[Path, typer.Argument(help="A model file.")]) -> None:
    """Show a model: its groups, their rates and weights, and what to think of them."""
    from clickmix.corrections import MixtureFit

    print_fit(MixtureFit.read(model))


@app.command()
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


@app.command()
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("demo"),
) -> None:
    """See it work: simulated users, labels from their clicks, and the truth beside them."""
    from clickmix.demo import run_demo

    with stages() as stage:
        stage("simulating and labelling")
        fitted = run_demo(output, say=say)
    say("")
    print_fit(fitted)


for _command in (cli_rankers.train, cli_rankers.evaluate, cli_rankers.score):
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


def _count(log: list[str], columns: str, context: str, bad_rows: Literal["fail", "skip"], memory: str | None) -> Counts:
    from clickmix.counts import count

    with progress_bar("reading") as progress:
        counted = count(
            log,
            columns=_pairs(columns),
            context=_words(context),
            bad_rows=bad_rows,
            memory=memory,
            progress=progress,
        )
    impressions, clicks = counted.totals()
    say(f"Read {impressions:,} impressions and {clicks:,} clicks.")
    for refused in counted.refused:
        say(f"Refused {refused.rows:,} rows: {refused.reason}. For instance {refused.examples[0]}.")
    return counted


def _write_labels(fitted: Any, counted: Counts, output: Path) -> None:
    with progress_bar("labelling") as progress:
        rows = fitted.label(counted).write(output, progress=progress)
    say(f"{rows:,} labels in {output}.")


def _check_outputs(inputs: list[str], *, tables: Sequence[Path] = (), models: Sequence[Path] = ()) -> None:
    """Before any work: outputs have names that can be written, and none of them is an input or the other output."""
    from clickmix.engines.duckdb import output_options
    from clickmix.files import check_writable
    from clickmix.paths import find_files

    for table in tables:
        output_options(table)
    taken = {file.resolve(): "a file of the log or the model" for file in find_files(inputs)}
    for output in (*tables, *models):
        check_writable(output)
        if output.resolve() in taken:
            raise InputError(f"{output}: would replace {taken[output.resolve()]}. Choose another name for the output.")
        taken[output.resolve()] = "the other output"


def _pairs(text: str) -> dict[str, str]:
    """query_id=a,doc_id=b as a dictionary."""
    parts = _words(text)
    for part in parts:
        if "=" not in part:
            raise SettingError(f"--columns {part!r}: expected name=column, for instance query_id=search_term.")
    return dict(part.split("=", 1) for part in parts)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
