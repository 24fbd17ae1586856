"""The commands for research: simulate, demo, reproduce."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from clickmix.cli.options import given, member_option
from clickmix.cli.terminal import print_fit, progress_bar, say, say_table, stages, terminal_width
from clickmix.errors import several
from clickmix.lab.families import USERS
from clickmix.registry import Option


def user_options() -> list[Option]:
    """The options of `simulate`: the name of a user model, and the options of all user models."""
    return [member_option(USERS, "user", default="pbm"), *USERS.options()]


def simulate(
    given_options: typer.Context,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")],
    clicks: Annotated[int, typer.Option(help="How many clicks to simulate.")] = 1_000_000,
    relevance: Annotated[
        Literal["binarized", "graded"], typer.Option(help="How grades become relevance.")
    ] = "binarized",
    data: Annotated[Path | None, typer.Option(help="A LETOR collection; default: a synthetic one.")] = None,
    queries: Annotated[
        int | None, typer.Option(help="Training queries of the synthetic collection; default: 2000.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
) -> dict[str, Any]:
    """Simulate users: write a log, the truth and the features. The users search a collection."""
    from clickmix.lab.simulate import Simulation, check_inputs_stay, open_collection, write_simulation

    options = given(given_options)
    person = USERS.make(options.pop("user", "pbm"), **options)
    settings = Simulation(clicks=clicks, user=person, relevance=relevance, seed=seed)
    if data is not None:
        check_inputs_stay(data, output)
    with stages() as stage:
        stage("reading the collection" if data else "making the collection")
        collection = open_collection(data, queries=queries, seed=seed)
        for note in collection.notes:
            say(note)
        rows = write_simulation(collection, output, settings, stage=stage)
    sizes = f"{several(rows, 'impression')} of {several(collection.train.queries, 'query', 'queries')}"
    say(f"Wrote {sizes} to {output / 'log.parquet'}.")
    return {"output": str(output), "impressions": rows, "queries": collection.train.queries}


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("demo"),
) -> dict[str, Any]:
    """See it work on a simulated log. Labels its clicks, trains rankers, compares with the truth, writes a report."""
    from clickmix.lab.demo import run_demo

    with stages() as stage:
        done = run_demo(output, say=say, stage=stage, date=datetime.date.today().isoformat())
    results = print_fit(done.fit)
    say("")
    say("Labels compared with the truth:")
    for known in done.known:
        say(str(known))
    results["compared_with_the_truth"] = [str(known) for known in done.known]
    if done.rankers is not None:
        say("")
        say_table(done.rankers)
        results["rankers"] = json.loads(done.rankers.json())
    say("")
    say(f"Report: {output / 'report.html'} (open it in a browser)")
    return results | {"report": str(output / "report.html")}


def reproduce(
    experiment: Annotated[
        Literal["table1", "table2", "figure1", "figure2", "figure3", "efficiency", "peers"],
        typer.Argument(
            metavar="EXPERIMENT",
            help="table1, table2, figure1, figure2, figure3, efficiency; peers is table 1 with more rankers.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to, and to resume from.")],
    data: Annotated[Path | None, typer.Option(help="A LETOR collection; default: a synthetic one.")] = None,
    runs: Annotated[int, typer.Option(help="Independent runs; you can add more later.")] = 8,
    scale: Annotated[float, typer.Option(help="Share of the queries to use, for a quick look.")] = 1.0,
    top: Annotated[int | None, typer.Option(help="Length of result lists; default: the paper's.")] = None,
    ranker: Annotated[Literal["lambdamart", "dnn"] | None, typer.Option(help="One ranker only.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes of one thread each; default: one per core.")] = None,
) -> dict[str, Any]:
    """Reproduce a table or figure of the paper. After an interruption, run the same command to resume."""
    from clickmix.lab.experiments import Request
    from clickmix.lab.experiments import reproduce as make
    from clickmix.lab.experiments.request import RANKERS

    rankers = tuple(RANKERS) if ranker is None else (ranker,)
    request = Request(experiment, None if data is None else str(data), scale, top, runs, rankers)
    with progress_bar(experiment, left=True) as progress:
        made = make(request, output, workers=workers, progress=progress, width=terminal_width())
    for line in made.text.splitlines():
        say(line)
    costs = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in made.seconds.items())
    say(f"{several(made.tasks, 'result')}; typical time per task: {costs}.")
    say(f"Wrote {', '.join(str(file) for file in made.files)}.")
    return {"files": list(map(str, made.files)), "results": made.tasks, "seconds": made.seconds}
