"""The command that explains labels: explain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickmix.cli.options import Log, count_log, given, split_reading
from clickmix.cli.terminal import progress_bar, say, terminal_width
from clickmix.errors import SettingError

if TYPE_CHECKING:
    from clickmix.report.explain import Explanation


def explain(
    given_options: typer.Context,
    log: Log,
    query: Annotated[
        str, typer.Option(help="The query to explain, as it is in the log, or in any spelling that --normalise joins.")
    ],
    doc: Annotated[str | None, typer.Option(help="One of its documents, to see why it has its label.")] = None,
    model: Annotated[Path | None, typer.Option(help="A saved model of this log, instead of a new fit.")] = None,
) -> dict[str, Any]:
    """Show why the documents of a query have their labels. Takes a log, or a labels file."""
    from clickmix.judging.changes import find_labels
    from clickmix.report.explain import explain_labels

    options = given(given_options)
    is_log = bool({"columns", "format"} & options.keys())
    reading, options = split_reading(options)
    engine = reading.open_engine()
    if not is_log and (labels := find_labels(log, engine)):
        return _say(explain_labels(labels, engine, query, doc, normalise=reading.normalise))
    from clickmix.corrections.correction import needs_lists
    from clickmix.corrections.mixture_based.fit import MixtureFit
    from clickmix.pipeline import choose_correction
    from clickmix.report.explain import explain_query

    fitted = MixtureFit.read(model) if model else None
    if fitted and (options or reading.context):
        raise SettingError("--model: the model has its own correction and context. Leave those options out.")
    correction = choose_correction(options.pop("correction", "mixture"), **options)
    lists = bool(fitted.steps) if fitted else needs_lists(correction)
    if fitted and not fitted.steps:
        reading = replace(reading, context=fitted.context)
    counts = count_log(log, engine, reading, lists=lists)
    if fitted is None:
        with progress_bar("fitting") as progress:
            found = explain_query(counts, correction.fit(counts, progress=progress), query, doc)
        return _say(found)
    return _say(explain_query(counts, fitted, query, doc))


def _say(found: Explanation) -> dict[str, Any]:
    for line in found.lines(width=terminal_width()):
        say(line)
    return found.json()
