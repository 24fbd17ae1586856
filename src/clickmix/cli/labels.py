"""The commands from a log to labels: debias, counts, fit, label, inspect."""

from __future__ import annotations

import contextlib
import datetime
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickmix.cli.options import (
    Log,
    check_outputs,
    check_report,
    count_log,
    counted_before,
    counts_target,
    engine_options,
    fail_on,
    given,
    member_option,
    read_json,
    split_reading,
)
from clickmix.cli.terminal import loading, print_fit, progress_bar, say, stages
from clickmix.errors import InputError, MissingColumnError, SettingError, check_whole, several
from clickmix.registry import Option

if TYPE_CHECKING:
    from clickmix.corrections.correction import Labels
    from clickmix.engines.engine import Engine
    from clickmix.judging.changes import Moved
    from clickmix.log.layout import Lists
    from clickmix.log.source import Source
    from clickmix.pipeline import Debiased

Output = Annotated[
    str, typer.Option("-o", "--output", help="The file to write, in the format of its suffix, or a table.")
]
ModelOutput = Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")]
Previous = Annotated[
    str | None,
    typer.Option("--previous", "--since", help="Earlier labels to compare with; can be the output file itself."),
]
MinSessions = Annotated[
    int,
    typer.Option(help="Leave queries out of the report if their documents were shown less often than this on average."),
]


def correction_options() -> list[Option]:
    """The options of `debias`: the name of a correction, the options of all corrections, and the engine."""
    from clickmix.corrections.correction import CORRECTIONS

    chosen = member_option(CORRECTIONS, "correction", default="mixture")
    return [*engine_options(), chosen, *CORRECTIONS.options()]


def mixture_options() -> list[Option]:
    """The options of `fit`."""
    from clickmix.corrections.correction import CORRECTIONS

    return [*CORRECTIONS["mixture"].options, *engine_options()]


def debias(
    given_options: typer.Context,
    log: Log,
    output: Output,
    model: Annotated[Path | None, typer.Option(help="Also save the fitted model, or parameters, to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a report: one HTML file.")] = None,
    report_min_sessions: MinSessions = 10,
    previous: Previous = None,
) -> dict[str, Any]:
    """Turn a click log into relevance labels. Counts, fits and labels in one step."""
    from clickmix.corrections.correction import Saved, gives_verdict, needs_lists, saves_model
    from clickmix.pipeline import choose_correction, fit_and_label

    reading, options = split_reading(given(given_options))
    name = options.pop("correction", "mixture")
    correction = choose_correction(name, **options)
    if model is not None and not saves_model(correction):
        raise SettingError(f"--model {model}: {name} has no model to save. Leave --model out.")
    if fail_on(given_options) and not gives_verdict(correction):
        raise SettingError(f"--fail-on: {name} gives no verdict on the log. Leave --fail-on out.")
    if report is not None:
        check_report(report)
    check_whole("report_min_sessions", report_min_sessions, least=1)
    opened, read = reading.open_engine(), [path for path in options.values() if isinstance(path, Path)]
    check_outputs(log, opened, table=output, others=[path for path in (model, report) if path], read=read)
    before = _open_previous(previous, opened)
    with loading("clickmix.judging.changes", "clickmix.report.results"):
        counts = count_log(log, opened, reading, lists=needs_lists(correction))
    done = fit_and_label(counts, correction, judging=True, watch=progress_bar)
    changes, written = _write_labels(done.labels, output, before)
    if model is not None and isinstance(done.fit, Saved):
        done.fit.write(model)
    fitted = print_fit(done.fit, done.held_out)
    if report is not None:
        _write_report(report, done, log, name, changes, report_min_sessions)
    files = {"model": model and str(model), "report": report and str(report)}
    return {**read_json(counts), **written, **{key: file for key, file in files.items() if file}, **fitted}


def counts(
    given_options: typer.Context,
    log: Log,
    output: Annotated[str | None, typer.Option("-o", "--output", help="The file or table to write.")] = None,
    merge: Annotated[
        Path | None, typer.Option(help="Add the log to this counts file (Parquet), which is created if it is missing.")
    ] = None,
    lists: Annotated[
        bool, typer.Option("--lists", help="Count result lists separately, as --examination dcm and ubm need.")
    ] = False,
    lists_by_clicks: Annotated[
        bool, typer.Option("--lists-by-clicks", help="Also by what was clicked in them, as click models need.")
    ] = False,
) -> dict[str, Any]:
    """Count a log once. Counts files are logs too, and they add up."""
    from clickmix.counts.counts import merging

    reading, _ = split_reading(given(given_options))
    target = counts_target(output, merge, reading.engine)  # complain before Spark starts
    opened = reading.open_engine()
    check_outputs(log, opened, table=target)
    apart: Lists = "clicks" if lists_by_clicks else lists
    alone = merging(merge, lists=apart, context=reading.context) if merge else contextlib.nullcontext()
    with alone:
        merged = [str(merge)] if merge and merge.exists() else []  # on the first day there is none yet
        before = counted_before(Path(merged[0])) if merged else None
        logs = [*merged, *log]
        counted = count_log(logs, opened, reading, lists=apart, before=before)
        rows = counted.write(target)
    say(f"Wrote {several(rows, 'cell')} (query, {'list, ' if apart else ''}document, position) to {target}.")
    return {**read_json(counted), "output": target, "cells": rows}


def fit(given_options: typer.Context, log: Log, output: ModelOutput) -> dict[str, Any]:
    """Fit the mixture correction to a log, and save it as a model. Also takes a histogram from elsewhere."""
    from clickmix.corrections.mixture import MixtureCorrection
    from clickmix.groups.places import is_histogram, read_downloaded
    from clickmix.groups.sample import MOVING_FROM
    from clickmix.judging.checks import checked
    from clickmix.judging.held_out import held_out_evidence

    reading, options = split_reading(given(given_options))
    opened = reading.open_engine()
    correction = MixtureCorrection(**options)
    check_outputs(log, opened, others=[output])
    if opened.embedded and not reading.columns and is_histogram(log):
        histogram, moving = read_downloaded(log, context=reading.context, max_contexts=reading.max_contexts)
        fitted, held_out = correction.fit_histogram(histogram, moving=moving), None
        if moving >= MOVING_FROM:
            say(
                f"{moving:.0%} of documents are at several places; a histogram does not show which. Fit counts instead."
            )
    else:
        counted = count_log(log, opened, reading, lists=correction.needs_lists)
        with progress_bar("fitting") as progress:
            fitted = checked(correction.fit(counted, progress=progress), counted)
            held_out = held_out_evidence(fitted, counted)
    fitted.write(output)
    say(f"Wrote the model to {output}.")
    return {"output": str(output), **print_fit(fitted, held_out)}


def label(
    given_options: typer.Context,
    log: Log,
    model: Annotated[Path, typer.Option(help="A model file that `clickmix fit` or `debias --model` wrote.")],
    output: Output,
    features: Annotated[
        Path | None, typer.Option(help="Features of the log's documents, for a model that was fitted with some.")
    ] = None,
    previous: Previous = None,
) -> dict[str, Any]:
    """Label a log with a saved model."""
    from clickmix.corrections.mixture_based.fit import MixtureFit

    reading, _ = split_reading(given(given_options))
    fitted = MixtureFit.read(model)
    if features is not None:
        fitted = fitted.using_features(features)
    opened = reading.open_engine()
    reading = replace(reading, context=() if fitted.steps else fitted.context)
    check_outputs(log, opened, table=output, read=[model, *([features] if features else [])])
    before = _open_previous(previous, opened)
    try:
        counted = count_log(log, opened, reading, lists=bool(fitted.steps))
    except MissingColumnError as error:
        if error.role != "context":
            raise
        raise InputError(  # the model fixes which columns it needs, so the user cannot name others
            f"{error.problem} {model} was fitted with context {','.join(reading.context)}: rename the log's columns, "
            "or fit a model without them."
        ) from None
    unseen = fitted.unseen(counted)
    if unseen:
        say(f"Places not in the model: {len(unseen):,}, for instance {unseen[0]}. The nearest known places are used.")
    _, written = _write_labels(fitted.label(counted), output, before)
    return {**read_json(counted), **written, "places_not_in_the_model": list(unseen)}


def inspect(
    given_options: typer.Context,
    files: Annotated[list[str], typer.Argument(help="Anything clickmix reads or writes.")],
) -> dict[str, Any]:
    """Say what a file is, and what to do with it. Takes any log, counts, a model, labels, a ranker, features."""
    from clickmix.cli.inspecting import inspect_files

    options = given(given_options)
    options.pop("normalise", None)
    repeated = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in options.items()]
    reading, _ = split_reading(options)
    return inspect_files(files, columns=reading.columns, layout=reading.layout, given=repeated)


def _open_previous(previous: str | None, engine: Engine) -> Source | None:
    if previous is None:
        return None
    from clickmix.judging.changes import open_labels

    return open_labels(previous, engine)


def _write_labels(labels: Labels, output: str, before: Source | None) -> tuple[Moved | None, dict[str, Any]]:
    from clickmix.judging.changes import labels_moved
    from clickmix.report.results import change_results

    moved = labels_moved(labels, before) if before else None  # before writing: output may be the previous file
    with progress_bar("labelling") as progress:
        rows = labels.write(output, progress=progress)
    say(f"Wrote {several(rows, 'label')} to {output}.")
    for sentence in moved.sentences() if moved else ():
        say(sentence)
    return moved, {"output": output, "labels": rows, **({"changes": change_results(moved).json()} if moved else {})}


def _write_report(
    path: Path, done: Debiased, log: list[str], correction: str, changes: Moved | None, min_sessions: int
) -> None:
    from clickmix.report import log_page, write_page

    with stages() as stage:
        stage("writing the report")
        page = log_page(
            done.counts,
            done.fit,
            sources=log,
            correction=correction,
            changes=changes,
            held_out=done.held_out,
            command=["clickmix", *sys.argv[1:]],
            date=datetime.date.today().isoformat(),
            min_sessions=min_sessions,
        )
        write_page(page, path)
    say(f"Report: {path} (open it in a browser)")
