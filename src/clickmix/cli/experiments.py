"""The command about the paper: reproduce. Parse, call, print; `cli` takes it in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from clickmix.cli.terminal import progress_bar, say


def reproduce(
    experiment: Annotated[
        Literal["table1", "table2", "figure1", "figure2", "figure3", "efficiency"],
        typer.Argument(help="Of the paper.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to, and to go on from.")],
    data: Annotated[Path | None, typer.Option(help="A LETOR collection; a synthetic one if not given.")] = None,
    runs: Annotated[int, typer.Option(help="Independent runs; more of them later add to these.")] = 8,
    scale: Annotated[float, typer.Option(help="Share of the queries to use, for a quick look.")] = 1.0,
    top: Annotated[int | None, typer.Option(help="Length of result lists; the paper's if not given.")] = None,
    ranker: Annotated[Literal["lambdamart", "dnn"] | None, typer.Option(help="One ranker only.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes, of one thread each; one per core.")] = None,
) -> None:
    """Make a table or figure of the paper again; after an interruption, the same command goes on."""
    from clickmix.lab.experiments import Study
    from clickmix.lab.experiments import reproduce as make
    from clickmix.lab.experiments.study import RANKERS

    rankers = tuple(RANKERS) if ranker is None else (ranker,)
    study = Study(experiment, None if data is None else str(data), scale, top, runs, rankers)
    try:
        with progress_bar(experiment, left=True) as progress:
            made = make(study, output, workers=workers, progress=progress)
    except KeyboardInterrupt:
        say(f"Stopped. What was finished is kept in {output / experiment}.jsonl; the same command goes on from there.")
        raise typer.Exit(130) from None
    for line in made.text.splitlines():
        say(line)
    costs = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in made.seconds.items())
    say(f"{made.tasks} results; the usual time of a task: {costs}.")
    say(f"Written: {', '.join(str(file) for file in made.files)}.")
