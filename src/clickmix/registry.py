"""Families: what can be chosen by name. A member is one file that registers itself.

A family imports its modules and packages when it is first used. Other installed packages can add members through the
entry point group `clickmix`: each entry names a module that registers its members when imported.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from inspect import signature
from typing import Any, Generic, TypeVar

from clickmix.errors import SettingError

T = TypeVar("T")
Make = TypeVar("Make", bound=Callable[..., Any])
ENTRY_POINTS = "clickmix"


@dataclass(frozen=True)
class Option:
    """A setting that some members take: `--name` on the command line, a keyword in Python.

    `type` is str, int, float, bool or Path. `choices` is a closed list of texts, or a family whose names are allowed.
    """

    name: str
    help: str
    type: type = str
    choices: tuple[str, ...] | Family[Any] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The allowed texts; empty if any text will do."""
        return self.choices if isinstance(self.choices, tuple) else self.choices.names()


@dataclass(frozen=True)
class Member(Generic[T]):
    """A member of a family: its name, one line of help, its options, and the function or class that makes it."""

    name: str
    help: str
    make: Callable[..., T]
    options: tuple[Option, ...] = ()


class Family(Generic[T]):
    """Members by name, in alphabetical order after the `first` one."""

    def __init__(self, noun: str, *modules: str, first: str = "") -> None:
        self.noun = noun
        self._modules = modules
        self._first = first
        self._members: dict[str, Member[T]] = {}
        self._loaded = False

    def register(self, name: str, *, help: str, options: tuple[Option, ...] = ()) -> Callable[[Make], Make]:
        """Decorate the class or function that makes the member; it takes the options as keywords."""

        def add(make: Make) -> Make:
            self._members[name] = Member(name, help, make, options)
            return make

        return add

    def remove(self, name: str) -> None:
        """Remove a member."""
        self._members.pop(name, None)

    def __getitem__(self, name: str) -> Member[T]:
        self._load()
        if name not in self._members:
            raise SettingError(f"{self.noun} {name!r}: expected one of {', '.join(self.names())}.")
        return self._members[name]

    def __iter__(self) -> Iterator[Member[T]]:
        self._load()
        return iter(sorted(self._members.values(), key=lambda member: (member.name != self._first, member.name)))

    def names(self) -> tuple[str, ...]:
        """The names of all members."""
        return tuple(member.name for member in self)

    def options(self) -> tuple[Option, ...]:
        """The options of all members, each once."""
        found = {option.name: option for member in self for option in member.options}
        return tuple(found.values())

    def make(self, name: str, **given: Any) -> T:
        """Make the member of that name with these options; None means not given."""
        member = self[name]
        taken = [option.name for option in member.options]
        for key, value in given.items():
            if value is not None and key not in taken:
                takers = [other.name for other in self if key in {option.name for option in other.options}]
                if not takers:
                    raise unknown_option(key, of=f"the {self.noun} {name}", known=taken)
                belongs = f"the option {key} belongs to the {self.noun} {' or '.join(takers)}"
                raise SettingError(f"{belongs}, not to {name}. Leave it out.")
        return member.make(**{key: value for key, value in given.items() if value is not None})

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for name in self._modules:
            for module in pkgutil.iter_modules(getattr(importlib.import_module(name), "__path__", [])):
                importlib.import_module(f"{name}.{module.name}")
        for entry in entry_points(group=ENTRY_POINTS):
            entry.load()


def check_known(given: Iterable[str], function: Callable[..., Any], *families: Family[Any]) -> None:
    """Refuse options that neither a function's own keywords nor any member of these families takes."""
    own = [key.name for key in signature(function).parameters.values() if key.kind is key.KEYWORD_ONLY]
    known = [*own, *(option.name for family in families for option in family.options())]
    for name in given:
        if name not in known:
            raise unknown_option(name, of=function.__name__, known=known)


def unknown_option(name: str, *, of: str, known: Sequence[str]) -> SettingError:
    """An error that lists the options there are, the ones with a similar name first."""
    near = difflib.get_close_matches(name.lower(), known, cutoff=0.6)
    expected = f"Expected {', '.join(dict.fromkeys([*near, *known]))}." if known else "It has none."
    return SettingError(f"{name}: {of} has no such option. {expected}")
