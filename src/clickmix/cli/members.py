"""An option whose choices are the members of a family, looked up only when somebody asks."""

from __future__ import annotations

from typing import Any

from clickmix.registry import Family

try:  # typer brings its own click since 0.26
    from typer._click.types import ParamType
except ImportError:
    from click import ParamType  # type: ignore[import-not-found, no-redef]


class MemberName(ParamType):
    """The name of a member of `family`."""

    name = "name"

    def __init__(self, family: Family[Any]) -> None:
        self.family = family

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        """The choices, as help shows them."""
        return f"<{'|'.join(self.family.names())}>"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """The name itself, if a member has it."""
        if value not in self.family.names():
            self.fail(f"{value!r} is not one of {', '.join(map(repr, self.family.names()))}.", param, ctx)
        return str(value)
