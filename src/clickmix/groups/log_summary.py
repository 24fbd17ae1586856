"""A log at a glance: layout, first impressions, click rate by position, sessions.   log -> summary"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from clickmix.counts.count import count
from clickmix.counts.counts import Counts
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import name
from clickmix.groups.places import read_histogram
from clickmix.groups.sample import read_moving
from clickmix.log.files import unreadable
from clickmix.log.layout import LAYOUTS, Layout, key_values, line_by_line
from clickmix.log.layouts.rows import flags
from clickmix.log.open import OpenedLog, open_log
from clickmix.types import Frame, Paths

FIRST_ROWS = 5


@dataclass(frozen=True)
class AtPosition:
    """Impressions and clicks at a position, in all contexts."""

    position: int
    impressions: int
    clicks: int

    @property
    def rate(self) -> float:
        """Clicks per impression."""
        return self.clicks / self.impressions


@dataclass(frozen=True)
class LogSummary:
    """A log at a glance; `first` has query, document, position and clicked of its first impressions, if it has any.

    `twice` counts repeated documents in a list, if the log has sessions or lists.
    """

    formats: tuple[str, ...]
    counts: Counts
    queries: int
    documents: int
    moving: float
    sessions: int | None
    twice: int
    positions: tuple[AtPosition, ...]
    first: tuple[tuple[Any, ...], ...]


def summarise(log: Paths | Frame, *, layout: Layout, columns: Mapping[str, str] | None = None) -> LogSummary:
    """Count a log, leaving bad rows out, and look at it."""
    engine = DuckDB()
    opened = open_log(log, engine=engine, layout=layout, columns=columns)
    counts = count(log, format=layout, columns=columns, bad_rows="skip", engine=engine)
    histogram = read_histogram(counts)
    totals = (histogram.total(column).tolist() for column in (histogram.impressions, histogram.clicks))
    seen = (AtPosition(place.position, *numbers) for place, *numbers in zip(histogram.places, *totals, strict=True))
    ((queries, documents),) = engine.rows(
        f"SELECT count(DISTINCT query_id), count(*) FROM (SELECT DISTINCT query_id, doc_id FROM {counts.table})"
    )
    if counts.refused:  # the fast reader may stop at a bad line
        slow = (line_by_line(part, engine, f"looked_at_{i}") for i, part in enumerate(counts.parts))
        opened = replace(opened, parts=tuple(slow))
    try:
        sessions, twice, first = _sessions(opened, engine), _twice(opened, engine), _first(opened, engine)
    except duckdb.Error as error:  # in a column that counting does not read
        raise unreadable(str(opened), error) from None
    names = {member.make: member.name for member in LAYOUTS}
    formats = tuple(dict.fromkeys(names[type(part.layout)] for part in opened.parts))
    moving = read_moving(counts, histogram)
    return LogSummary(formats, counts, queries, documents, moving, sessions, twice, tuple(seen), first)


def _sessions(opened: OpenedLog, engine: DuckDB) -> int | None:
    """How many sessions or lists there are, if the log names them."""
    parts = [part for part in opened.parts if part.layout.row_is_impression and part.has("session_id")]
    if not parts:
        return None
    found = (
        engine.rows(f"SELECT count(DISTINCT {name(part.column('session_id'))}) FROM {part.source.table()}")
        for part in parts
    )
    return sum(int(rows[0][0]) for rows in found)


def _twice(opened: OpenedLog, engine: DuckDB) -> int:
    """How often a document appears again in the same list, by session and query."""
    again = 0
    for part in opened.parts:
        if part.layout.row_is_impression and part.has("session_id"):
            query, document, position = key_values(part)
            keys = f"{name(part.column('session_id'))}, {query}, {document}"
            rows = f"SELECT count(*) AS n FROM {part.source.table()} WHERE {position} >= 1 GROUP BY {keys}"
            again += int(engine.rows(f"SELECT coalesce(sum(n - 1), 0) FROM ({rows}) WHERE n > 1")[0][0])
    return again


def _first(opened: OpenedLog, engine: DuckDB) -> tuple[tuple[Any, ...], ...]:
    part = opened.parts[0]
    if not part.layout.row_is_impression:
        return ()
    query, document, position = key_values(part)
    clicked, _ = flags(part)
    with engine.in_order():
        rows = engine.rows(
            f"SELECT {query}, {document}, {position}, CAST({clicked} AS INTEGER) FROM {part.source.table()} "
            f"LIMIT {FIRST_ROWS}"
        )
    return tuple(rows)
