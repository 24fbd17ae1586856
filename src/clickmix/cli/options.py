"""Command-line options that come from families, those of all commands that report (--json, --fail-on), and their texts.

A family is loaded only when its command is used. A command returns what it reports, as a dictionary for --json.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from clickmix.cli.terminal import messages_on_error_stream, print_json, say_error
from clickmix.errors import SettingError
from clickmix.registry import Family, Option

GIVEN = "clickmix.given"
FAIL_ON = "clickmix.fail_on"
FAILED = 3  # exit code of --fail-on
JSON = Option("json", "Print what is reported as one JSON object; messages go to standard error.", type=bool)


def command_with(options: Callable[[], Sequence[Option]] = tuple, *, judges: bool = False) -> type[TyperCommand]:
    """A class of commands that also take these options, --json and, if they judge, --fail-on.

    A command reads its options with `given(context)` and returns a dictionary of what it reports.
    """

    class CommandWithOptions(TyperCommand):
        @cached_property
        def added(self) -> list[TyperOption]:
            return [_typer_option(option) for option in options()]

        @cached_property
        def reporting(self) -> list[TyperOption]:
            return [_typer_option(option) for option in ([_fail_on()] if judges else []) + [JSON]]

        def get_params(self, ctx: Any) -> Any:
            own = super().get_params(ctx)
            required = sum(param.required for param in own)  # required ones come first, then those of the family
            *optional, help = own[required:]
            return [*own[:required], *self.added, *optional, *self.reporting, help]

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
    """Lists the verdicts, but for the best one: nothing is better than that."""
    from clickmix.judging.judgement import Judgement

    names = tuple(judgement.machine_name for judgement in Judgement)[1:]
    return Option("fail_on", f"End with exit code {FAILED} if the verdict on the log is this or worse.", choices=names)


def _check_verdict(results: dict[str, Any], worst: str | None) -> None:
    from clickmix.judging.judgement import Judgement

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
    """The family's options that the user set."""
    values: dict[str, Any] = context.meta[GIVEN]
    return dict(values)


def member_option(family: Family[Any], name: str, *, default: str) -> Option:
    """The option that chooses a member of a family; its help describes each member."""
    help = "; ".join(f"{member.name}: {member.help.rstrip('.')}" for member in family)
    return Option(name, f"{help}. [default: {default}]", choices=family)


def _typer_option(option: Option) -> TyperOption:
    flag = f"--{option.name.replace('_', '-')}"
    named = "|".join(option.names) or option.type.__name__.lower()

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
        help=option.help,
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
