"""A click log in any layout -> its sources, and which of their columns means what.   sources -> log -> counts

A log is one or many sources. Text formats (CSV, NDJSON) are read as text and judged in `rows`, so that a bad value can
be shown as it stands in the file.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clickmix.engines.choose import Engines
from clickmix.errors import InputError, MissingColumnError, SettingError
from clickmix.log.paths import are_paths, find_files
from clickmix.log.sources import Source, file_list, file_sources, frame_source, kind_of, table_source

KEYS = ("query_id", "doc_id", "position")
RAW = ("clicked",)
COUNTED = ("impressions", "clicks")
RESERVED = ("query_id", "doc_id", "position", "list", "impressions", "clicks", "relevance")
MOST_NAMES = 12
ROLES = (*KEYS, *RAW, *COUNTED, "session_id", "list")


@dataclass(frozen=True)
class Log:
    """The sources of a log, which of their columns means what, and whether its result lists are kept apart."""

    sources: tuple[Source, ...]
    columns: Mapping[str, str]
    context: tuple[str, ...] = ()
    lists: bool = False

    def column(self, role: str) -> str:
        """The log's own name for a column."""
        return self.columns.get(role, role)


def open_log(
    log: object,
    *,
    engine: Engines,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
    lists: bool = False,
) -> Log:
    """Find the files, tables or the frame, look at their columns, and say what is missing."""
    columns = checked_columns(columns or {})
    if lists and context:
        raise SettingError(f"context {context[0]!r}: result lists are kept without context columns. Leave one out.")
    checked_context(context)
    sources = tuple(_named_alike(source, columns, engine) for source in find_sources(log, engine))
    opened = Log(sources, columns | _in_capitals(sources, columns), tuple(context), lists)
    for source in sources:
        _check_columns(source, opened)
    return opened


def find_sources(log: object, engine: Engines) -> tuple[Source, ...]:
    """What a log is read from: DuckDB reads files and frames, the other engines what they call tables."""
    if engine.embedded is None:
        return tuple(table_source(table) for table in engine.tables(log))
    if not are_paths(log):
        return (frame_source(log, engine.embedded),)
    if log == "" or (isinstance(log, (list, tuple)) and "" in log):  # to pathlib, this is the current folder
        raise InputError("'': no such file. The path is empty; check the variable it came from.")
    return file_sources(find_files(log), engine.embedded)


def _named_alike(source: Source, columns: Mapping[str, str], engine: Engines) -> Source:
    """A counts file of ours has the standard names, whatever the raw log's columns are called: it goes by those."""
    if not (columns and engine.embedded and source.format == "parquet"):
        return source
    if len(engine.embedded.notes(file_list(source.files))) < len(source.files):
        return source
    renamed = {role: column for role, column in columns.items() if role in source.types and role != column}
    types = {renamed.get(column, column): type for column, type in source.types.items()}
    twice = [role for role, column in renamed.items() if column in source.types and column not in renamed]
    if twice:
        raise InputError(
            f"{source}: the columns {twice[0]} and {columns[twice[0]]!r} would both be called {columns[twice[0]]!r}. "
            "Count the raw log again, or leave one of the two out."
        )
    return replace(source, renamed=renamed, types=types)


def checked_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Which column means what, as it was given; complains about meanings that no log has."""
    for role in columns:
        if role not in ROLES:
            raise SettingError(f"columns: {role!r} is no column of a click log. Expected {_either(role)}.")
    return dict(columns)


def checked_context(context: Sequence[str]) -> tuple[str, ...]:
    """The context columns, as they were given; complains about names that mean something else."""
    lower = [column.lower() for column in context]
    for column in context:
        if column.lower() in RESERVED or lower.count(column.lower()) > 1:
            raise SettingError(
                f"context {column!r}: stands twice, or means something else in a log. Take another name."
            )
    return tuple(context)


def _in_capitals(sources: Sequence[Source], columns: Mapping[str, str]) -> dict[str, str]:
    """Columns that all sources write in another case than was expected, as Snowflake does: QUERY_ID."""
    counted = any(columns.get(role, role) in source.types for role in COUNTED for source in sources)
    found = {}
    for role in ROLES if not counted else (role for role in ROLES if role not in RAW):
        wanted = columns.get(role, role)
        names = {same_but_case(wanted, source.types) for source in sources}
        if len(names) == 1 and names not in ({None}, {wanted}):
            found[role] = str(names.pop())
    return found


def same_but_case(wanted: str, among: Iterable[str]) -> str | None:
    """The name itself where it is there; else the only one that differs in capitals, if one does.

    >>> same_but_case("clicks", ["CLICKS", "position"])
    'CLICKS'
    """
    names = list(among)
    same = [column for column in names if column.lower() == wanted.lower()]
    return wanted if wanted in names else same[0] if len(same) == 1 else None


def _check_columns(source: Source, log: Log) -> None:
    counted = is_counted(source, log)
    for role in (*KEYS, *(COUNTED if counted else RAW)):
        column = log.column(role)
        if column not in source.types:
            raise _missing(source, role, column)
        # The first rows of NDJSON do not speak for the others: each is judged by itself.
        kind = "text" if source.format == "ndjson" and role in KEYS[:2] else kind_of(source.types[column])
        allowed = ("text", "integer") if role in KEYS[:2] else ("text", "integer", "real")
        if kind not in allowed and not (role == "clicked" and kind == "boolean"):
            raise InputError(
                f"{source}, column {column!r}: found {source.types[column]} values, expected "
                f"{'text or whole numbers' if role in KEYS[:2] else 'whole numbers'} for {role}."
            )
    if log.lists:
        _check_lists(source, log, counted=counted)
    for column in log.context:
        if column not in source.types:
            near = _nearest(column, source.types)
            advice = f"Did you mean {' or '.join(near)}?" if near else "Name one of those."
            problem = f"{source}: no context column {column!r}. Found {_some(source.types)}."
            raise MissingColumnError(problem, advice, role="context", column=column)


def _check_lists(source: Source, log: Log, *, counted: bool) -> None:
    """Which documents were shown together must be known: by session, or by lists that were counted apart."""
    role = "list" if counted else "session_id"
    if log.column(role) in source.types:
        return
    if not counted:
        raise _missing(source, role, log.column(role))
    raise InputError(
        f"{source}: counts without result lists, so nobody can say what stood above a document. Count the raw log with "
        "clickmix counts --lists (in Python count(log, lists=True)); that needs its session_id."
    )


def _missing(source: Source, role: str, column: str) -> MissingColumnError:
    also = " (or 'impressions' and 'clicks', if it is counted already)" if role == "clicked" else ""
    near = _nearest(column, source.types) or ["YOUR_COLUMN"]
    option = shlex.quote(f"{role}={near[0]}")
    return MissingColumnError(
        f"{source}: no column {column!r}{also}. Found {_some(source.types)}.",
        f"Say which column is meant, for instance --columns {option} (in Python columns={{{role!r}: {near[0]!r}}}).",
        role=role,
        column=column,
    )


def _either(role: str) -> str:
    return " or ".join(_nearest(role, ROLES) or ROLES)


def _nearest(word: str, among: Iterable[str]) -> list[str]:
    """The names that are really similar: a bad guess would be pasted and do harm."""
    lower = {option.lower(): option for option in among}
    return [lower[found] for found in difflib.get_close_matches(word.lower(), list(lower), n=2, cutoff=0.6)]


def _some(names: Iterable[str]) -> str:
    """The first names of many."""
    listed = list(names)
    more = f" and {len(listed) - MOST_NAMES} more" if len(listed) > MOST_NAMES else ""
    return ", ".join(listed[:MOST_NAMES]) + more


def is_counted(source: Source, log: Log) -> bool:
    """Whether a source holds impressions and clicks instead of one row per impression."""
    return log.column("clicked") not in source.types and any(log.column(role) in source.types for role in COUNTED)
