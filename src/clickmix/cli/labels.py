"""The commands from a log to labels: debias, counts, fit, label, inspect. Parse, call, print; `cli` takes them in."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clickmix.cli.loading import loading
from clickmix.cli.members import given, member_option
from clickmix.cli.option_text import pairs, words
from clickmix.cli.outputs import check_outputs, check_report, counts_target
from clickmix.cli.terminal import print_fit, progress_bar, say, stages
from clickmix.counts.contexts import MOST_CONTEXTS, many_contexts
from clickmix.errors import InputError, SettingError

if TYPE_CHECKING:
    from clickmix.corrections.labels import Labels
    from clickmix.counts.counts import Counts
    from clickmix.engines.choose import Engines
    from clickmix.log.source import Source
    from clickmix.registry import Option

Log = Annotated[
    list[str], typer.Argument(help="Files, folders or globs: Parquet, CSV, NDJSON, gzipped or not; or tables.")
]
Output = Annotated[str, typer.Option("-o", "--output", help="The file to write; its name says the format. Or a table.")]
ModelOutput = Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")]
Columns = Annotated[str, typer.Option(help="Other column names: query_id=search_term,doc_id=sku.")]
Context = Annotated[str, typer.Option(help="Columns that change what is examined: device,layout.")]
MaxContexts = Annotated[int, typer.Option(min=1, help="Refuse a log with more contexts: each is fitted by itself.")]
BadRows = Annotated[Literal["fail", "skip"], typer.Option(help="Stop at a bad row, or leave bad rows out and say so.")]
Memory = Annotated[str | None, typer.Option(help="How much memory to use, for instance 4GB; the rest goes to disk.")]
Engine = Annotated[
    str, typer.Option(help="Who runs the SQL: duckdb, spark, a Spark master, or postgresql://user@host/database.")
]
Since = Annotated[str | None, typer.Option(help="Labels written before; says how they moved. May be the output.")]


def correction_options() -> list[Option]:
    """What `debias` takes: the name of a correction, and whatever some correction takes."""
    from clickmix.corrections.correction import CORRECTIONS

    return [member_option(CORRECTIONS, "correction", default="mixture"), *CORRECTIONS.options(), *format_options()]


def format_options() -> list[Option]:
    """What every command that reads a log takes: the name of a layout, and whatever some layout takes."""
    from clickmix.log.layout import LAYOUTS
    from clickmix.registry import Option

    joined = Option("normalise", "Ignore differences between queries in case, space, unicode; several with commas.")
    return [member_option(LAYOUTS, "format", default="auto"), *LAYOUTS.options(), joined]


def mixture_options() -> list[Option]:
    """What `fit` takes."""
    from clickmix.corrections.correction import CORRECTIONS

    return [*CORRECTIONS["mixture"].options, *format_options()]


def debias(
    given_options: typer.Context,
    log: Log,
    output: Output,
    context: Context = "",
    max_contexts: MaxContexts = MOST_CONTEXTS,
    model: Annotated[Path | None, typer.Option(help="Also write the fitted model, or parameters, here.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a report here: one HTML file.")] = None,
    since: Since = None,
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
    engine: Engine = "duckdb",
) -> None:
    """From a click log to relevance labels: counts, fit and label in one."""
    from clickmix.corrections.correction import Saved, needs_lists, saves_model
    from clickmix.pipeline import choose_correction, fit_and_label

    reading, options = _reading(given(given_options))
    name = options.pop("correction", "mixture")
    correction = choose_correction(name, **options)
    if model is not None and not saves_model(correction):
        raise SettingError(f"--model {model}: {name} fits nothing that could be written. Leave it out.")
    if report is not None:
        check_report(report)
    opened, read = _open(engine, memory), [path for path in options.values() if isinstance(path, Path)]
    check_outputs(log, opened, table=output, others=[path for path in (model, report) if path], read=read)
    before = _open_since(since, opened)
    with loading("clickmix.judging.changes", "clickmix.report.summary", "rich.console"):
        counts = _count(log, opened, reading, columns, context, max_contexts, bad_rows, lists=needs_lists(correction))
    done = fit_and_label(counts, correction, judging=True, watch=progress_bar)
    _write_labels(done.labels, output, before)
    if model is not None and isinstance(done.fit, Saved):
        done.fit.write(model)
    print_fit(done.fit)
    if report is not None:
        _write_report(report, counts, done.fit, log, name)


def counts(
    given_options: typer.Context,
    log: Log,
    output: Annotated[str | None, typer.Option("-o", "--output", help="The file or table to write.")] = None,
    merge: Annotated[
        Path | None, typer.Option(help="A counts file (Parquet) to add the log to; made if it is missing.")
    ] = None,
    lists: Annotated[bool, typer.Option("--lists", help="Keep result lists apart, as dcm and ubm need them.")] = False,
    context: Context = "",
    max_contexts: MaxContexts = MOST_CONTEXTS,
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
    engine: Engine = "duckdb",
) -> None:
    """Count a log once; counts files are logs too, and several of them add up."""
    from clickmix.counts.counted_files import merging

    reading, _ = _reading(given(given_options))
    target = counts_target(output, merge, engine)  # complain before a Spark is started
    opened = _open(engine, memory)
    check_outputs(log, opened, table=target)
    alone = merging(merge, lists=lists, context=words(context)) if merge else contextlib.nullcontext()
    with alone:
        merged = [str(merge)] if merge and merge.exists() else []  # on the first day there is none yet
        before = _counted_before(Path(merged[0])) if merged else None
        logs = [*merged, *log]
        counted = _count(logs, opened, reading, columns, context, max_contexts, bad_rows, lists=lists, before=before)
        rows = counted.write(target)
    say(f"{rows:,} cells (query, {'list, ' if lists else ''}document, position) in {target}.")


def fit(
    given_options: typer.Context,
    log: Log,
    output: ModelOutput,
    context: Context = "",
    max_contexts: MaxContexts = MOST_CONTEXTS,
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
    engine: Engine = "duckdb",
) -> None:
    """Fit the correction to a log, or to a histogram made elsewhere, and write it as a model file."""
    from clickmix.corrections.mixture import MixtureCorrection
    from clickmix.corrections.mixture_based.groups import MOVING_FROM
    from clickmix.engines.duckdb import DuckDB
    from clickmix.groups.histogram import is_histogram, read_downloaded
    from clickmix.judging.checks import checked, checked_histogram

    reading, options = _reading(given(given_options))
    opened, correction = _open(engine, memory), MixtureCorrection(**options)
    check_outputs(log, opened, others=[output])
    if isinstance(opened, DuckDB) and not columns and is_histogram(log):
        histogram, moving = read_downloaded(log, context=words(context), max_contexts=max_contexts)
        fitted = checked_histogram(correction.fit_histogram(histogram, moving=moving), histogram)
        if moving >= MOVING_FROM:
            say(f"{moving:.0%} of the documents are at several places, and a histogram cannot tell which: fit counts.")
    else:
        counted = _count(log, opened, reading, columns, context, max_contexts, bad_rows, lists=correction.needs_lists)
        with progress_bar("fitting") as progress:
            fitted = checked(correction.fit(counted, progress=progress), counted)
    fitted.write(output)
    say(f"Model in {output}.")
    print_fit(fitted)


def label(
    given_options: typer.Context,
    log: Log,
    model: Annotated[Path, typer.Option(help="A model file that `clickmix fit` or `debias --model` wrote.")],
    output: Output,
    since: Since = None,
    max_contexts: MaxContexts = MOST_CONTEXTS,
    columns: Columns = "",
    bad_rows: BadRows = "fail",
    memory: Memory = None,
    engine: Engine = "duckdb",
) -> None:
    """Label a log with a model that was fitted before."""
    from clickmix.corrections.mixture_based.fit import MixtureFit

    reading, _ = _reading(given(given_options))
    fitted = MixtureFit.read(model)
    opened, context = _open(engine, memory), "" if fitted.steps else ",".join(fitted.context)
    check_outputs(log, opened, table=output, read=[model])
    before = _open_since(since, opened)
    try:
        counted = _count(log, opened, reading, columns, context, max_contexts, bad_rows, lists=bool(fitted.steps))
    except InputError as error:
        what, missing, found = str(error).partition(": no context column ")
        if not missing:
            raise
        raise InputError(  # the model says which there are, so the user cannot name others
            f"{what}{missing}{found.removesuffix(' Name one of those.')} {model} was fitted with context {context}: "
            "give the log's columns these names, or fit a model without them."
        ) from None
    unseen = fitted.unseen(counted)
    if unseen:
        say(f"{len(unseen)} places are not in the model, for instance {unseen[0]}; the nearest it knows stand in.")
    _write_labels(fitted.label(counted), output, before)


def inspect(
    given_options: typer.Context,
    files: Annotated[list[str], typer.Argument(help="Anything clickmix reads or writes.")],
    columns: Columns = "",
) -> None:
    """Say what a file is: a log in any layout, counts, a model, labels, a ranker, features."""
    from clickmix.cli.inspecting import inspect_files

    options = given(given_options)
    options.pop("normalise", None)
    chosen = [f"--{name.replace('_', '-')} {value}" for name, value in options.items()]
    reading, _ = _reading(options)
    told = [*chosen, *([f"--columns {shlex.quote(columns)}"] if columns else [])]
    inspect_files(files, columns=pairs(columns), layout=reading["format"], given=told)


def _open(engine: str, memory: str | None) -> Engines:
    from clickmix.engines.choose import choose_engine

    return choose_engine(engine, memory=memory)


def _reading(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """How to read the log, and the other options."""
    from clickmix.log.open import split_options

    layout, others = split_options(options.pop("format", "auto"), options)
    return {"format": layout, "normalise": others.pop("normalise", "")}, others


def _count(
    log: list[str],
    engine: Engines,
    reading: dict[str, Any],
    columns: str,
    context: str,
    max_contexts: int,
    bad_rows: Literal["fail", "skip"],
    *,
    lists: bool = False,
    before: tuple[int, int] | None = None,
) -> Counts:
    from clickmix.counts.counts import count
    from clickmix.counts.spelling import spelled_alike

    with progress_bar("reading") as progress:
        counted = count(
            log,
            **reading,
            columns=pairs(columns),
            context=words(context),
            max_contexts=max_contexts,
            bad_rows=bad_rows,
            lists=lists,
            engine=engine,
            progress=progress,
        )
    impressions, clicks = counted.totals()
    old = before or (0, 0)
    say(f"Read {impressions - old[0]:,} impressions and {clicks - old[1]:,} clicks.")
    if before:
        say(f"With those counted before there are {impressions:,} impressions and {clicks:,} clicks.")
    for note in counted.notes:
        say(str(note))
    foreign = any(source.foreign for source in counted.sources)
    if not (reading["normalise"] or foreign) and (alike := spelled_alike(counted.engine, counted.table)):
        say(alike)
    for refused in counted.refused:
        say(f"Refused {refused.rows:,} rows: {refused.reason}. For instance {refused.examples[0]}.")
    if many := many_contexts(context, counted.contexts):
        say(many)
    return counted


def _counted_before(counts: Path) -> tuple[int, int]:
    """Impressions and clicks of a counts file."""
    import duckdb

    from clickmix.engines.duckdb import DuckDB
    from clickmix.log.source import file_list
    from clickmix.log.sources import unreadable

    sums = "CAST(coalesce(sum(impressions), 0) AS BIGINT), CAST(coalesce(sum(clicks), 0) AS BIGINT)"
    files = f"{file_list([str(counts)])}, hive_partitioning = false"
    try:
        ((impressions, clicks),) = DuckDB().rows(f"SELECT {sums} FROM read_parquet({files})")
    except duckdb.Error as error:
        raise unreadable(str(counts), error) from None
    return impressions, clicks


def _open_since(since: str | None, engine: Engines) -> Source | None:
    if since is None:
        return None
    from clickmix.judging.changes import open_labels

    return open_labels(since, engine)


def _write_labels(labels: Labels, output: str, before: Source | None) -> None:
    from clickmix.judging.changes import labels_moved

    moved = labels_moved(labels, before) if before else None  # before writing: it may be the file to be replaced
    with progress_bar("labelling") as progress:
        rows = labels.write(output, progress=progress)
    say(f"{rows:,} labels in {output}.")
    for sentence in moved.sentences() if moved else ():
        say(sentence)


def _write_report(path: Path, counted: Counts, fitted: Any, log: list[str], correction: str) -> None:
    from clickmix.report import log_page, write_page

    with stages() as stage:
        stage("writing the report")
        write_page(log_page(counted, fitted, sources=log, correction=correction), path)
    say(f"Report, for a browser: {path}")
