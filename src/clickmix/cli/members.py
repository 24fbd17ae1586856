"""Command-line options that come from families. A family is loaded only when its command is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from clickmix.errors import SettingError
from clickmix.registry import Family, Option

GIVEN = "clickmix.given"


def command_with(options: Callable[[], Sequence[Option]]) -> type[TyperCommand]:
    """A class of commands that also take these options; the command reads them with `given(context)`."""

    class CommandWithOptions(TyperCommand):
        @cached_property
        def added(self) -> list[TyperOption]:
            return [_typer_option(option) for option in options()]

        def get_params(self, ctx: Any) -> Any:
            own = super().get_params(ctx)
            required = sum(param.required for param in own)  # required ones come first, then those of the family
            return [*own[:required], *self.added, *own[required:]]

        def invoke(self, ctx: Any) -> Any:
            values = {str(option.name): ctx.params.pop(option.name, None) for option in self.added}
            ctx.meta[GIVEN] = {name: value for name, value in values.items() if value is not None}
            return super().invoke(ctx)

    return CommandWithOptions


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
        param_decls=[f"{flag}/--no-{flag[2:]}" if option.type is bool else flag, option.name],
        type=str if option.type is Path else option.type,
        metavar=None if option.type is bool else f"<{named}>",
        default=None,
        is_flag=option.type is bool or None,
        help=option.help,
        callback=convert,
    )
