"""The commands from a log to labels: debias, counts, fit, label, inspect. Parse, call, print; `cli` takes them in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clickmix.errors import InputError, SettingError
from clickmix.terminal import print_fit, progress_bar, say

if TYPE_CHECKING:
    from clickmix.counts import Counts
    from clickmix.engines.choose import Engines

Log = Annotated[
    list[str], typer.Argument(help="Files, folders or globs: Parquet, CSV, NDJSON, gzipped or not; or tables.")
]
Output = Annotated[str, typer.Option("-o", "--output", help="The file to write; its name says the format. Or a table.")]
ModelOutput = Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")]
Columns = Annotated[str, typer.Option(help="Other column names: query_id=search_term,doc_id=sku.")]
Context = Annotated[str, typer.Option(help="Columns that change what is examined: device,layout.")]
BadRows = Annotated[Literal["fail", "skip"], typer.Option(help="Stop at a bad row, or leave bad rows out and say so.")]
Memory = Annotated[str | None, typer.Option(help="How much memory to use, for instance 4GB; the rest goes to disk.")]
Engine = Annotated[
    str, typer.Option(help="Who runs the SQL: duckdb, spark, a Spark master, or postgresql://user@host/database.")
]
Mixture = Annotated[Literal["binomial", "gaussian"], typer.Option(help="How clicks scatter around a rate.")]
Prior = Annotated[Literal["position", "flat"], typer.Option(help="Whether better positions hold better documents.")]


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
    engine: Engine = "duckdb",
) -> None:
    """From a click log to relevance labels: counts, fit and label in one."""
    from clickmix.corrections import MixtureFit
    from clickmix.pipeline import choose_correction

    chosen = choose_correction(correction, mixture=mixture, prior=prior)
    opened = _open(engine, memory)
    _check_outputs(log, opened, table=output, model=model)
    counts = _count(log, opened, columns, context, bad_rows)
    with progress_bar("fitting") as progress:
        fit = chosen.fit(counts, progress=progress)
    _write_labels(fit, counts, output)
    if isinstance(fit, MixtureFit):
        if model is not None:
            fit.write(model)
        print_fit(fit)


def counts(
    log: Log,
    output: Output,
    context: Context = "",
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
    engine: Engine = "duckdb",
) -> None:
    """Count a log once; counts files are logs too, and several of them add up."""
    opened = _open(engine, memory)
    _check_outputs(log, opened, table=output)
    counted = _count(log, opened, columns, context, bad_rows)
    rows = counted.write(output)
    say(f"{rows:,} cells (query, document, position) in {output}.")


def fit(
    log: Log,
    output: ModelOutput,
    mixture: Mixture = "binomial",
    prior: Prior = "position",
    context: Context = "",
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
    engine: Engine = "duckdb",
) -> None:
    """Fit the correction and write it as a model file."""
    from clickmix.corrections import MixtureCorrection

    opened = _open(engine, memory)
    _check_outputs(log, opened, model=output)
    counted = _count(log, opened, columns, context, bad_rows)
    with progress_bar("fitting") as progress:
        fitted = MixtureCorrection(mixture, prior).fit(counted, progress=progress)
    fitted.write(output)
    say(f"Model in {output}.")
    print_fit(fitted)


def label(
    log: Log,
    model: Annotated[Path, typer.Option(help="A model file that `clickmix fit` or `debias --model` wrote.")],
    output: Output,
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
    engine: Engine = "duckdb",
) -> None:
    """Label a log with a model that was fitted before."""
    from clickmix.corrections import MixtureFit

    fitted = MixtureFit.read(model)
    opened = _open(engine, memory)
    _check_outputs(log, opened, table=output, read=[model])
    counted = _count(log, opened, columns, ",".join(fitted.context), bad_rows)
    unseen = fitted.unseen(counted)
    if unseen:
        say(f"{len(unseen)} places are not in the model, for instance {unseen[0]}; the nearest it knows stand in.")
    _write_labels(fitted, counted, output)


def inspect(model: Annotated[Path, typer.Argument(help="A model file.")]) -> None:
    """Show a model: its groups, their rates and weights, and what to think of them."""
    from clickmix.corrections import MixtureFit

    print_fit(MixtureFit.read(model))


def _open(engine: str, memory: str | None) -> Engines:
    from clickmix.engines.choose import choose_engine

    return choose_engine(engine, memory=memory)


def _count(log: list[str], engine: Engines, columns: str, context: str, bad_rows: Literal["fail", "skip"]) -> Counts:
    from clickmix.counts import count

    with progress_bar("reading") as progress:
        counted = count(
            log,
            columns=_pairs(columns),
            context=_words(context),
            bad_rows=bad_rows,
            engine=engine,
            progress=progress,
        )
    impressions, clicks = counted.totals()
    say(f"Read {impressions:,} impressions and {clicks:,} clicks.")
    for refused in counted.refused:
        say(f"Refused {refused.rows:,} rows: {refused.reason}. For instance {refused.examples[0]}.")
    return counted


def _write_labels(fitted: Any, counted: Counts, output: str) -> None:
    with progress_bar("labelling") as progress:
        rows = fitted.label(counted).write(output, progress=progress)
    say(f"{rows:,} labels in {output}.")


def _check_outputs(
    log: list[str], engine: Engines, *, table: str | None = None, model: Path | None = None, read: Sequence[Path] = ()
) -> None:
    """Before any work: outputs have names that can be written, and none of them is an input or the other output."""
    from clickmix.engines.duckdb import DuckDB
    from clickmix.files import check_writable
    from clickmix.paths import find_files

    if table is not None:
        engine.check_target(table)
        if not isinstance(engine, DuckDB) and table in log:
            raise InputError(f"{table}: would replace a table of the log. Choose another name for the output.")
    files = find_files(log) if isinstance(engine, DuckDB) else []
    taken = {file.resolve(): "a file of the log or the model" for file in (*files, *read)}
    written = [Path(table)] if table is not None and isinstance(engine, DuckDB) else []
    for output in (*written, *([model] if model else [])):
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
