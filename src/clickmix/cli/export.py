"""The command that writes labels and rankers for other tools: export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clickmix.cli.options import given
from clickmix.cli.terminal import say, stages

if TYPE_CHECKING:
    from clickmix.registry import Option


def _show_help(context: typer.Context, asked: bool) -> None:
    """Print the usual help and a line for each target. Targets are loaded only for this."""
    if not asked:
        return
    from clickmix.export.target import EXPORTS

    typer.echo(context.get_help())
    for takes in ("labels", "ranker"):
        typer.echo(f"\nTargets that take {'labels' if takes == 'labels' else 'a ranker'}:")
        for member in EXPORTS:
            if EXPORTS.make(member.name).takes == takes:
                typer.echo(f"  {member.name:<18} {member.help}")
    raise typer.Exit


def export_options() -> list[Option]:
    """The options of all targets except `rating`, which is called --as here."""
    from clickmix.export.target import EXPORTS

    return [option for option in EXPORTS.options() if option.name != "rating"]


def export(
    given_options: typer.Context,
    source: Annotated[
        Path, typer.Argument(metavar="LABELS-OR-RANKER", help="A labels file, or the folder of a ranker.")
    ],
    to: Annotated[str, typer.Option(metavar="TARGET", help="The tool to export to; targets are listed below.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The file to write, or a folder if the target needs several files.")
    ],
    rating: Annotated[
        Literal["grade", "probability", "expected-gain"] | None,
        typer.Option("--as", help="For labels: what a rating is; default: grade."),
    ] = None,
    show_help: Annotated[
        bool, typer.Option("--help", is_eager=True, callback=_show_help, help="Show this message and exit.")
    ] = False,
) -> dict[str, Any]:
    """Write labels or a ranker in the format of another tool. Labels become judgments, a ranker becomes a model."""
    from clickmix.export.target import export as export_to

    with stages() as stage:
        stage(f"exporting to {to}")
        exported = export_to(source, to=to, output=output, rating=rating, **given(given_options))
    for note in exported.notes:
        say(note)
    if exported.requests:
        say("To upload:")
    for request in exported.requests:
        say(f"  {request}")
    return {"output": str(output), "notes": list(exported.notes), "requests": list(map(str, exported.requests))}
