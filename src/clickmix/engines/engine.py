"""What the log stage asks of whoever runs its SQL: keep this, hand me this small result, write that big one.

Statements are written once, in DuckDB's SQL; another engine translates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from clickmix.types import Columns, Progress

# Labels have these or not, by their correction: they are labels all the same.
SOMETIMES = ("estimate", "low", "high")


@dataclass(frozen=True)
class Table:
    """A table of an engine: what the user calls it, its name in SQL, and its columns with DuckDB's type names."""

    shown: str
    name: str
    types: dict[str, str]
    # Whether it is read from CSV, where everything is text.
    untyped: bool = False
    # The column that is not NULL for a line that could not be cut into columns.
    broken: str = ""


def same_kind(old: Iterable[str], new: Iterable[str]) -> bool:
    """Whether a table may be replaced by another one: it has the same columns.

    >>> same_kind(["query_id", "doc_id", "position", "clicked"], ["query_id", "doc_id", "position", "impressions"])
    False
    """
    one, other = ([column for column in columns if column not in SOMETIMES] for columns in (old, new))
    return one == other


class Engine(Protocol):
    """Runs the statements of the log stage where the log lives; only `fetch` and `rows` bring anything over."""

    def keep(self, query: str, *, progress: Progress | None = None) -> str:
        """Compute a result of any size and keep it for this session; says its table's name."""
        ...

    def forget(self, table: str) -> None:
        """Drop what was kept."""
        ...

    def fetch(self, query: str) -> Columns:
        """A result small enough for memory, as numpy columns."""
        ...

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """A very small result, as rows."""
        ...

    def types(self, table: str) -> dict[str, str]:
        """The columns of a table, with DuckDB's names of their types."""
        ...

    def check_target(self, target: str, *, log: Sequence[str] = ()) -> None:
        """Complain now, not after an hour of work, when `target` cannot be written or is part of the log."""
        ...

    def write(self, query: str, target: str, *, progress: Progress | None = None, note: str = "") -> int:
        """Write a result of any size, whole or not at all, and say how many rows it has.

        `note` stays with what was written where the format has a place for it.
        """
        ...

    def close(self) -> None:
        """Give back what the engine holds."""
        ...
