"""The command that prints SQL for warehouses: sql."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from clickmix.cli.options import COLUMNS, CONTEXT, pairs, words
from clickmix.engines.dialects import DIALECTS
from clickmix.errors import SettingError

Statement = Annotated[
    Literal["counts", "refused", "histogram", "labels", "ga4"],
    typer.Argument(help="Which statement; ga4 makes a log from the events of Google Analytics."),
]


def sql(
    statement: Statement,
    dialect: Annotated[str, typer.Option(help=f"One of {', '.join(DIALECTS)}.")],
    table: Annotated[
        str | None, typer.Option(help="The table to read; default: clicks (a log), for histogram and labels counts.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="For labels: the model file.")] = None,
    columns: Annotated[str, typer.Option(help=COLUMNS.help)] = "",
    context: Annotated[str, typer.Option(help=CONTEXT.help)] = "",
) -> None:
    """Print SQL to run in a warehouse or use in dbt."""
    from clickmix.corrections.mixture_based.fit import MixtureFit
    from clickmix.export import statements

    if (statement == "labels") != (model is not None):
        raise SettingError("labels need --model, and only labels take it: clickmix sql labels --model model.json.")
    if columns and statement in ("histogram", "labels"):
        made = "a histogram is" if statement == "histogram" else "labels are"
        raise SettingError(
            f"--columns: {made} made from counts, whose columns have clickmix's own names. Leave it out."
        )
    if statement == "ga4" and (columns or context):
        raise SettingError("ga4 knows the columns of Google Analytics' events. Leave --columns and --context out.")
    if context and statement == "labels":
        raise SettingError("--context: labels use the context of the model. Leave it out.")
    if context and statement == "refused":
        raise SettingError("--context: no row is refused for its context. Leave it out.")
    if statement == "ga4":
        text = statements.ga4_statement(dialect, table=table or "project.analytics_1.events_*")
    elif statement == "counts":
        text = statements.counts_statement(
            dialect, table=table or "clicks", columns=pairs(columns), context=words(context)
        )
    elif statement == "refused":
        text = statements.refused_statement(dialect, table=table or "clicks", columns=pairs(columns))
    elif statement == "histogram":
        text = statements.histogram_statement(dialect, table=table or "counts", context=words(context))
    else:
        fitted = MixtureFit.read(str(model))
        text = statements.labels_statement(dialect, fitted, table=table or "counts")
    typer.echo(text, nl=False)
