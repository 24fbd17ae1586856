"""What commands share: options from families, --json and --fail-on, how to read a log, where outputs may go.

A family is loaded only when its command is used. A command returns its results as a dictionary, for --json.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from clickmix.cli.terminal import messages_on_error_stream, print_json, progress_bar, say, say_error
from clickmix.counts import BAD_ROWS, MOST_CONTEXTS
from clickmix.errors import InputError, SettingError, several
from clickmix.registry import Family, Option
from clickmix.storage.atomic import check_writable, real_path

if TYPE_CHECKING:
    from clickmix.counts.count import BadRows
    from clickmix.counts.counts import Counts
    from clickmix.engines.engine import Engine
    from clickmix.log.layout import Layout, Lists


GIVEN = "clickmix.given"
FAIL_ON = "clickmix.fail_on"
FAILED = 3  # exit code of --fail-on
LONGEST_CHOICE = 50  # letters of all choices together, to list them next to the option's name in --help
JSON = Option("json", "Print results as one JSON object; messages go to standard error.", type=bool)


def command_with(options: Callable[[], Sequence[Option]] = tuple, *, judges: bool = False) -> type[TyperCommand]:
    """A class of commands that also take these options, --json and, if they judge a log, --fail-on.

    A command reads these options with `given(context)` and returns a dictionary of results.
    """

    class CommandWithOptions(TyperCommand):
        @cached_property
        def added(self) -> list[TyperOption]:
            return [_typer_option(option) for option in options()]

        @cached_property
        def reporting(self) -> list[TyperOption]:
            return [_typer_option(option) for option in ([_fail_on()] if judges else []) + [JSON]]

        def get_params(self, ctx: Any) -> Any:
            *own, help = super().get_params(ctx)
            return [*own, *self.reporting, *self.added, help]

        def invoke(self, ctx: Any) -> Any:
            values = {str(option.name): ctx.params.pop(option.name, None) for option in self.added}
            ctx.meta[GIVEN] = {name: value for name, value in values.items() if value is not None}
            asked = bool(ctx.params.pop("json", None))
            ctx.meta[FAIL_ON] = ctx.params.pop("fail_on", None)
            with messages_on_error_stream(asked):
                results = super().invoke(ctx)
                if asked:
                    print_json(results or {})
                _check_verdict(results or {}, ctx.meta[FAIL_ON])
            return results

    return CommandWithOptions


def _fail_on() -> Option:
    """The option --fail-on. Its choices leave out the best verdict: every verdict is that or worse."""
    from clickmix.corrections.check import Judgement

    names = tuple(judgement.machine_name for judgement in Judgement)[1:]
    return Option("fail_on", f"End with exit code {FAILED} if the verdict on the log is this or worse.", choices=names)


def _check_verdict(results: dict[str, Any], worst: str | None) -> None:
    from clickmix.corrections.check import Judgement

    if worst is None or "verdict" not in results:
        return
    by_name = {judgement.machine_name: judgement for judgement in Judgement}
    if by_name[results["verdict"]].as_bad_as(by_name[worst]):
        say_error(f"the verdict is {results['verdict']} (--fail-on {worst}).")
        raise typer.Exit(FAILED)


def fail_on(context: typer.Context) -> str | None:
    """The verdict that --fail-on names."""
    asked: str | None = context.meta[FAIL_ON]
    return asked


def given(context: typer.Context) -> dict[str, Any]:
    """The options of `command_with` that the user set."""
    values: dict[str, Any] = context.meta[GIVEN]
    return dict(values)


def member_option(family: Family[Any], name: str, *, default: str) -> Option:
    """The option that chooses a member of a family; its help describes each member."""
    help = "; ".join(f"{member.name}: {member.help.rstrip('.')}" for member in family)
    return Option(name, f"{help}. [default: {default}]", choices=family)


def _typer_option(option: Option) -> TyperOption:
    flag = f"--{option.name.replace('_', '-')}"
    named = "|".join(option.names) or option.type.__name__.lower()
    described = option.help
    if len(named) > LONGEST_CHOICE:
        named = "name"
        if not all(name in described for name in option.names):
            described += f" One of {', '.join(option.names)}."

    def convert(context: Any, param: Any, value: Any) -> Any:
        if value is not None and option.names and value not in option.names:
            raise SettingError(f"{flag} {value!r}: expected one of {', '.join(option.names)}.")
        return option.type(value) if value is not None else None

    return TyperOption(
        param_decls=[f"{flag}/--no-{flag[2:]}" if option.type is bool and option is not JSON else flag, option.name],
        type=str if option.type is Path else option.type,
        metavar=None if option.type is bool else f"<{named}>",
        default=None,
        is_flag=option.type is bool or None,
        help=described,
        callback=convert,
    )


def pairs(text: str) -> dict[str, str]:
    """query_id=a,doc_id=b as a dictionary."""
    parts = words(text)
    for part in parts:
        if "=" not in part:
            raise SettingError(f"--columns {part!r}: expected name=column, for instance query_id=search_term.")
    return dict(part.split("=", 1) for part in parts)


def words(text: str) -> list[str]:
    """a,b as a list."""
    return [word.strip() for word in text.split(",") if word.strip()]


Log = Annotated[
    list[str], typer.Argument(help="Files, folders or globs (Parquet, CSV, NDJSON, gzipped or not), or tables.")
]
COLUMNS = Option("columns", "Other column names: query_id=search_term,doc_id=sku.")
CONTEXT = Option("context", "Columns that change what people look at: device,layout.")


@dataclass(frozen=True)
class LogOptions:
    """How to read a log, from the options."""

    layout: Layout
    engine: str | None
    columns: dict[str, str]
    context: tuple[str, ...]
    max_contexts: int
    bad_rows: BadRows
    normalise: str
    memory: str | None

    def open_engine(self) -> Engine:
        """The engine of that name."""
        from clickmix.engines.engine import choose_engine

        return choose_engine(self.engine, memory=self.memory)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `count`, apart from the engine."""
        names = ("columns", "context", "max_contexts", "bad_rows", "normalise")
        return {"format": self.layout, **{name: getattr(self, name) for name in names}}


def layout_options() -> list[Option]:
    """The options for how a log is written: its layout, the options of all layouts, spellings, columns."""
    from clickmix.log.layout import LAYOUTS

    joined = Option(
        "normalise", "Ignore differences between queries in case, space or unicode; separate several with commas."
    )
    return [COLUMNS, joined, member_option(LAYOUTS, "format", default="auto"), *LAYOUTS.options()]


def log_options() -> list[Option]:
    """The options of a command that counts a log in DuckDB."""
    most = f"Refuse a log with more contexts; each is fitted separately. [default: {MOST_CONTEXTS}]"
    bad = Option("bad_rows", "Stop at a bad row, or skip bad rows and count them. [default: fail]", str, BAD_ROWS)
    memory = Option("memory", "Memory limit, for instance 4GB; the rest goes to disk.")
    return [CONTEXT, bad, memory, *layout_options(), Option("max_contexts", most, type=int)]


def engine_options() -> list[Option]:
    """The options of a command that counts a log in any engine; the help describes each kind."""
    from clickmix.engines.engine import DEFAULT, ENGINES

    help = " ".join(f"{member.make().argument}: {member.help}" for member in ENGINES)
    return [*log_options(), Option("engine", f"What runs the SQL. {help} [default: {DEFAULT}]")]


def label_options() -> list[Option]:
    """The options of `label`, without --context: the model has it."""
    return [option for option in engine_options() if option is not CONTEXT]


def split_reading(options: dict[str, Any]) -> tuple[LogOptions, dict[str, Any]]:
    """How to read the log, and the other options."""
    from clickmix.log.open import split_options

    layout, others = split_options(options.pop("format", "auto"), options)
    reading = LogOptions(
        layout,
        engine=others.pop("engine", None),
        columns=pairs(others.pop("columns", "")),
        context=tuple(words(others.pop("context", ""))),
        max_contexts=others.pop("max_contexts", MOST_CONTEXTS),
        bad_rows=others.pop("bad_rows", "fail"),
        normalise=others.pop("normalise", ""),
        memory=others.pop("memory", None),
    )
    return reading, others


def count_log(
    log: list[str], engine: Engine, reading: LogOptions, *, lists: Lists = False, before: tuple[int, int] | None = None
) -> Counts:
    """Count a log and say what was read, what was odd, and what was refused."""
    from clickmix.counts.count import count, many_contexts, spelled_alike
    from clickmix.log.refused import hint

    with progress_bar("reading") as progress:
        counted = count(log, **reading.settings, lists=lists, engine=engine, progress=progress)
    impressions, clicks = counted.totals()
    old = before or (0, 0)
    say(f"Read {several(impressions - old[0], 'impression')} and {several(clicks - old[1], 'click')}.")
    if before:
        say(f"Including earlier counts: {several(impressions, 'impression')} and {several(clicks, 'click')}.")
    for note in counted.notes:
        say(str(note))
    if not reading.normalise and (alike := spelled_alike(counted.engine, counted.table)):
        say(alike)
    for refused in counted.refused:
        example = f"For instance {refused.examples[0]}.{hint(refused)}"
        say(f"Skipped bad rows ({refused.rows:,}): {refused.reason}. {example}")
    if many := many_contexts(",".join(reading.context), counted.contexts):
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
    from clickmix.log.files import unreadable
    from clickmix.log.source import file_list

    sums = "CAST(coalesce(sum(impressions), 0) AS BIGINT), CAST(coalesce(sum(clicks), 0) AS BIGINT)"
    files = f"{file_list([str(counts)])}, hive_partitioning = false"
    try:
        ((impressions, clicks),) = DuckDB().rows(f"SELECT {sums} FROM read_parquet({files})")
    except duckdb.Error as error:
        raise unreadable(str(counts), error) from None
    return impressions, clicks


def check_outputs(
    log: list[str], engine: Engine, *, table: str | None = None, others: Sequence[Path] = (), read: Sequence[Path] = ()
) -> None:
    """Refuse an output that cannot be written, or that is an input or another output."""
    from clickmix.log.files import find_files

    if table is not None:
        engine.check_target(table, log=log)
    files = find_files([*(log if engine.embedded else []), *map(str, read)])
    taken = {real_path(file): "an input" for file in files}
    written = [Path(table)] if table is not None and engine.embedded else []
    for output in (*written, *others):
        check_writable(output)
        place = real_path(output)
        if place in taken:
            raise InputError(f"{output}: would replace {taken[place]}. Choose another name for the output.")
        taken[place] = "another output"


def check_report(path: Path) -> None:
    """Refuse a report if browsers would not open its name."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise SettingError(f"{path}: a report is an HTML file. Expected a name ending in .html.")


def counts_target(output: str | None, merge: Path | None, engine: str | None) -> str:
    """Where counts go: a new file or table, or the counts file to add to."""
    if (output is None) == (merge is None):
        raise SettingError("counts: name an output, either -o counts.parquet or --merge counts.parquet.")
    if merge is None:
        return str(output)
    from clickmix.engines.engine import DEFAULT, find_kind

    if not find_kind(engine or DEFAULT).embedded:
        raise SettingError(
            "--merge: works on counts files, with DuckDB only. In another engine, write one table per day."
        )
    return str(merge)
