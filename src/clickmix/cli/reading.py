"""Reading a log: the options that all commands which read one share, the counting, and where outputs may go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clickmix.cli.options import member_option, pairs, words
from clickmix.cli.terminal import progress_bar, say
from clickmix.errors import InputError, SettingError, several
from clickmix.registry import Option

if TYPE_CHECKING:
    from clickmix.counts.counts import Counts
    from clickmix.engines.engine import Engine
    from clickmix.log.layout import Lists

Log = Annotated[
    list[str], typer.Argument(help="Files, folders or globs (Parquet, CSV, NDJSON, gzipped or not), or tables.")
]
Columns = Annotated[str, typer.Option(help="Other column names: query_id=search_term,doc_id=sku.")]
Context = Annotated[str, typer.Option(help="Columns that change what people look at: device,layout.")]
MaxContexts = Annotated[int, typer.Option(min=1, help="Refuse a log with more contexts; each is fitted separately.")]
BadRows = Annotated[Literal["fail", "skip"], typer.Option(help="Stop at a bad row, or skip bad rows and count them.")]
Memory = Annotated[str | None, typer.Option(help="Memory limit, for instance 4GB; the rest goes to disk.")]


def log_options() -> list[Option]:
    """The options of every command that reads a log: the layout, the options of all layouts, and spellings."""
    from clickmix.log.layout import LAYOUTS

    joined = Option("normalise", "Ignore differences between queries in case, space, unicode; several with commas.")
    return [member_option(LAYOUTS, "format", default="auto"), *LAYOUTS.options(), joined]


def reading_options() -> list[Option]:
    """The options of `counts` and `label`."""
    return [*log_options(), *engine_options()]


def engine_options() -> list[Option]:
    """The engine; its help describes each kind."""
    from clickmix.engines.engine import DEFAULT, ENGINES

    help = " ".join(f"{member.make().argument}: {member.help}" for member in ENGINES)
    return [Option("engine", f"Who runs the SQL. {help} [default: {DEFAULT}]")]


def open_engine(engine: str | None, memory: str | None) -> Engine:
    """The engine of that name."""
    from clickmix.engines.engine import choose_engine

    return choose_engine(engine, memory=memory)


def split_reading(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """How to read the log, and the other options."""
    from clickmix.log.open import split_options

    layout, others = split_options(options.pop("format", "auto"), options)
    return {"format": layout, "normalise": others.pop("normalise", "")}, others


def count_log(
    log: list[str],
    engine: Engine,
    reading: dict[str, Any],
    columns: str,
    context: str,
    max_contexts: int,
    bad_rows: Literal["fail", "skip"],
    *,
    lists: Lists = False,
    before: tuple[int, int] | None = None,
) -> Counts:
    """Count a log and say what was read, what was odd, and what was refused."""
    from clickmix.counts.count import count, many_contexts, spelled_alike

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
    say(f"Read {several(impressions - old[0], 'impression')} and {several(clicks - old[1], 'click')}.")
    if before:
        say(f"Including earlier counts: {several(impressions, 'impression')} and {several(clicks, 'click')}.")
    for note in counted.notes:
        say(str(note))
    if not reading["normalise"] and (alike := spelled_alike(counted.engine, counted.table)):
        say(alike)
    for refused in counted.refused:
        say(f"Skipped bad rows ({refused.rows:,}): {refused.reason}. For instance {refused.examples[0]}.")
    if many := many_contexts(context, counted.contexts):
        say(many)
    return counted


def read_json(counts: Counts) -> dict[str, Any]:
    """What was read, for --json."""
    impressions, clicks = counts.totals()
    refused = [{"rows": each.rows, "reason": each.reason, "example": str(each.examples[0])} for each in counts.refused]
    return {
        "impressions": impressions,
        "clicks": clicks,
        "notes": [str(note) for note in counts.notes],
        "refused": refused,
    }


def counted_before(counts: Path) -> tuple[int, int]:
    """Impressions and clicks of a counts file."""
    import duckdb

    from clickmix.engines.duckdb import DuckDB
    from clickmix.log.open import unreadable
    from clickmix.log.source import file_list

    sums = "CAST(coalesce(sum(impressions), 0) AS BIGINT), CAST(coalesce(sum(clicks), 0) AS BIGINT)"
    files = f"{file_list([str(counts)])}, hive_partitioning = false"
    try:
        ((impressions, clicks),) = DuckDB().rows(f"SELECT {sums} FROM read_parquet({files})")
    except duckdb.Error as error:
        raise unreadable(str(counts), error) from None
    return impressions, clicks


def check_outputs(
    log: list[str],
    engine: Engine,
    *,
    table: str | None = None,
    others: Sequence[Path] = (),
    read: Sequence[Path] = (),
) -> None:
    """Refuse an output that cannot be written, or that is an input or another output."""
    from clickmix.log.paths import find_files
    from clickmix.storage.atomic import check_writable

    if table is not None:
        engine.check_target(table, log=log)
    files = find_files([*(log if engine.embedded else []), *map(str, read)])
    taken = {file.resolve(): "an input" for file in files}
    written = [Path(table)] if table is not None and engine.embedded else []
    for output in (*written, *others):
        check_writable(output)
        if output.resolve() in taken:
            raise InputError(f"{output}: would replace {taken[output.resolve()]}. Choose another name for the output.")
        taken[output.resolve()] = "another output"


def check_report(path: Path) -> None:
    """Refuse a report if browsers would not open its name."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise SettingError(f"{path}: a report is an HTML file. Expected a name ending in .html.")


def counts_target(output: str | None, merge: Path | None, engine: str | None) -> str:
    """Where counts go: a new file or table, or the counts file to add to."""
    if (output is None) == (merge is None):
        raise SettingError("counts: give an output, either -o counts.parquet or --merge counts.parquet.")
    if merge is None:
        return str(output)
    from clickmix.engines.engine import DEFAULT, find_kind

    if not find_kind(engine or DEFAULT).embedded:
        raise SettingError(
            "--merge: works on counts files, with DuckDB only. In another engine, write one table per day."
        )
    return str(merge)
