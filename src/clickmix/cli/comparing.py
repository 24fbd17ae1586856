"""The command that compares corrections on one log: compare."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from clickmix.cli.options import Log, check_outputs, check_report, given, split_reading, words
from clickmix.cli.terminal import say, say_rows, say_sentences, stages
from clickmix.errors import SettingError


def compare(
    given_options: typer.Context,
    log: Log,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write a report (.html) or the figures (.json).")
    ] = None,
    judgments: Annotated[
        str | None, typer.Option(help="Judged documents: query_id, doc_id and grade, on any scale.")
    ] = None,
    truth: Annotated[
        str | None, typer.Option(help="True relevance, if it is known: query_id, doc_id, relevance.")
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option(help="Labels from anywhere as one more row; can be given several times.")
    ] = None,
    features: Annotated[Path | None, typer.Option(help="Features, for corrections that need them.")] = None,
    corrections: Annotated[str, typer.Option(help="Compare only these, and the simple ones: mixture,pbm.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of splits and resamples; the same seed gives the same figures.")] = 0,
) -> dict[str, Any]:
    """Compare every correction that a log allows. Compares held-out clicks, agreement with judgments, and time."""
    from clickmix.comparing.comparison import compare as run_comparison

    _check_output(output)
    read = [Path(path) for path in (judgments, truth, features, *(labels or ())) if path is not None]
    reading, _ = split_reading(given(given_options))
    check_outputs(log, reading.open_engine(), others=[output] if output else [], read=read)
    with stages() as stage:
        comparison = run_comparison(
            log,
            judgments=judgments,
            truth=truth,
            labels=labels or (),
            features=features,
            corrections=words(corrections),
            memory=reading.memory,
            seed=seed,
            stage=stage,
            **reading.settings,
        )
        results = comparison.results
        stage("resampling")
        sentences, table = results.sentences, results.side_by_side
    say_sentences(sentences)
    say("")
    say_rows(table)
    named = words(corrections)  # the notes say why these were left out
    if left_out := [each.name for each in comparison.left_out if each.name not in named]:
        say(f"Left out: {', '.join(left_out)}; {output or 'a report (-o compare.html)'} says why.")
    if output is not None:
        today = datetime.date.today().isoformat()
        comparison.write(output, sources=log, command=["clickmix", *sys.argv[1:]], date=today)
        say(f"Wrote {output}.")
    return results.json()


def _check_output(output: Path | None) -> None:
    if output is None or output.suffix.lower() == ".json":
        return
    if output.suffix.lower() not in (".html", ".htm"):
        raise SettingError(f"{output}: expected a name ending in .html, for a report, or .json.")
    check_report(output)
