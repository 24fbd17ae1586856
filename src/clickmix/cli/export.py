"""The command that hands labels and rankers to other tools: export. Parse, call, print; `cli` takes it in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from clickmix.cli.terminal import say, stages


def _show_help(context: typer.Context, asked: bool) -> None:
    """The usual help, and a line for each target; the targets are loaded for this."""
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


def export(
    source: Annotated[
        Path, typer.Argument(metavar="LABELS-OR-RANKER", help="A labels file, or the folder of a ranker.")
    ],
    to: Annotated[str, typer.Option(metavar="TARGET", help="Which tool it is for; the targets are below.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The file to write, or the folder where a target needs several.")
    ],
    scale: Annotated[int | None, typer.Option(help="Labels: the largest grade; 3 if not given.")] = None,
    rating: Annotated[
        Literal["grade", "probability", "expected-gain"] | None,
        typer.Option("--as", help="Labels: what a rating is; a grade if not given."),
    ] = None,
    min_impressions: Annotated[int | None, typer.Option(help="Labels: leave out what was shown less often.")] = None,
    max_width: Annotated[float | None, typer.Option(help="Labels: leave out what has a wider interval.")] = None,
    top: Annotated[int | None, typer.Option(help="Labels: keep so many documents of each query, the best.")] = None,
    title: Annotated[str | None, typer.Option(help="What to call it in the other tool.")] = None,
    index: Annotated[str | None, typer.Option(help="rank-eval and rre: the index of the documents.")] = None,
    show_help: Annotated[
        bool, typer.Option("--help", is_eager=True, callback=_show_help, help="Show this message and exit.")
    ] = False,
) -> None:
    """Write labels as judgments, or a ranker as a model, in the format of another tool."""
    from clickmix.export.target import export as export_to

    options = {
        "scale": scale,
        "rating": rating,
        "min_impressions": min_impressions,
        "max_width": max_width,
        "top": top,
        "title": title,
        "index": index,
    }
    with stages() as stage:
        stage(f"exporting to {to}")
        exported = export_to(source, to=to, output=output, **options)
    for note in exported.notes:
        say(note)
    if exported.requests:
        say("To upload:")
    for request in exported.requests:
        say(f"  {request}")
