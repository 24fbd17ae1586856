"""Options of a command that follow from a family: the member's name, and whatever options its members take.

The family is asked when the command runs or shows its help, not when it is defined: `clickmix --help` loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import typer
from typer.core import TyperCommand
from typer.main import get_click_param
from typer.models import ParamMeta

from clickmix.registry import Family


def family_command(name: str, family: Callable[[], Family[Any]], *, help: str) -> type[TyperCommand]:
    """A kind of command that also takes `--name MEMBER` and the options of the family's members.

    What was given is in the context's `obj`: the member under `name`, and each option under its own name, None if it
    was not given.
    """

    class FamilyCommand(TyperCommand):
        def get_params(self, ctx: Any) -> list[Any]:
            own = super().get_params(ctx)
            added = [parameter for parameter, _ in _parameters(name, family(), help=help)]
            return [*own[:-1], *added, own[-1]]  # --help comes last

        def invoke(self, ctx: Any) -> Any:
            ctx.obj = {}
            for parameter, convert in _parameters(name, family(), help=help):
                value = ctx.params.pop(parameter.name)
                ctx.obj[parameter.name] = convert(value) if convert and value is not None else value
            return super().invoke(ctx)

    return FamilyCommand


def _parameters(name: str, family: Family[Any], *, help: str) -> list[tuple[Any, Any]]:
    """typer's parameters, each with what converts its value (or None)."""
    members = "; ".join(f"{member.name}: {member.help}" for member in family)
    first = typer.Option(family.names()[0], help=f"{help} {members}.", show_default=True)
    parameters = [ParamMeta(name=name, default=first, annotation=Literal[family.names()])]
    for option in family.options():
        takers = ", ".join(member.name for member in family if option.name in {each.name for each in member.options})
        kind: Any = Literal[option.choices] if option.choices else option.type
        given = typer.Option(None, help=f"{option.help} ({takers})")
        parameters.append(ParamMeta(name=option.name, default=given, annotation=kind | None))
    return [get_click_param(parameter) for parameter in parameters]
