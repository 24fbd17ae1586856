"""Counts -> how many contexts there are; raises if there are too many.   counts -> groups

Every context is fitted by itself, in Python. A session id taken for a context would fetch a million of them, so the
engine counts them first.
"""

from __future__ import annotations

from collections.abc import Mapping

from clickmix.engines.engine import Engine
from clickmix.engines.sql import listed
from clickmix.errors import InputError, SettingError

MOST_CONTEXTS = 1_000
MANY_CONTEXTS = 300


def checked_bound(max_contexts: int) -> int:
    """The bound as given; raises if it is below 1."""
    if max_contexts < 1:
        raise SettingError(f"max_contexts {max_contexts}: expected a whole number from 1 on.")
    return max_contexts


def count_contexts(engine: Engine, table: str, columns: Mapping[str, str], *, most: int | None) -> int:
    """How many contexts a table has; raises above `most`. `columns` are their names and their SQL."""
    if not columns:
        return 1
    ((found,),) = engine.rows(f"SELECT count(*) FROM (SELECT DISTINCT {listed(columns.values())} FROM {table})")
    if most is None or found <= most:
        return int(found)
    values = engine.rows(f"SELECT {listed(f'count(DISTINCT {column})' for column in columns.values())} FROM {table}")[0]
    each = ", ".join(f"{name} has {number:,} values" for name, number in zip(columns, values, strict=True))
    several = f"{','.join(columns)} has {found:,} combinations, more than {most:,}; {each}"
    raise InputError(
        f"context: {several if len(columns) > 1 else f'{each}, more than {most:,}'}. A context is something like "
        f"device: each of its values is fitted by itself. Leave it out, or allow this many with --max-contexts {found} "
        f"(in Python max_contexts={found})."
    )


def many_contexts(context: str, number: int) -> str:
    """A warning about hundreds of contexts; empty if there are fewer."""
    if number < MANY_CONTEXTS:
        return ""
    what = "combinations" if "," in context else "values"
    return (
        f"{context} has {number:,} {what}, and each is fitted by itself; a context is something like device. That "
        "takes time, and few documents are left for each."
    )
