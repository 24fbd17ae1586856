"""Judgments: the grades that people gave documents, as query_id, doc_id and grade.   file -> grades"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from clickmix.counts.counts import Counts
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import Engine, embedded
from clickmix.errors import InputError
from clickmix.log.files import find_sources, unreadable
from clickmix.log.source import Source, kind_of
from clickmix.types import Floats

EXPECTED = "Expected one row per judged document: query_id, doc_id, {column}."


@dataclass(frozen=True)
class JudgedTable:
    """A table of the counts' engine: q, d (ids as text) and grade; `where` names its source in messages.

    `missing` are judged documents that the log does not show, `examples` some of their ids.
    """

    where: str
    table: str
    documents: int
    missing: int
    strange_queries: int
    examples: tuple[tuple[str, str], ...]

    def sentences(self) -> list[str]:
        """What was judged, and which judged documents the log does not have."""
        found = self.documents - self.missing
        said = [f"{found:,} of {self.documents:,} judged documents are in the log."]
        if self.missing:
            query, document = self.examples[0]
            strange = f"; {self.strange_queries:,} of them belong to queries that the log does not have"
            said.append(
                f"Not in the log: {self.missing:,}, for instance query {query!r}, document {document!r}"
                f"{strange if self.strange_queries else ''}."
            )
        return said


@dataclass(frozen=True, eq=False)
class Grades:
    """Judgments of a file or frame: ids as text, and grades; `where` names their source in messages."""

    where: str
    query_id: Floats
    doc_id: Floats
    grade: Floats


def read_grades(given: Any) -> Grades:
    """Read judgments, sorted by their ids; refuse bad rows."""
    with closing(DuckDB()) as engine:
        source, table = _opened(given, engine, "grade")
        columns = engine.fetch(f"SELECT q, d, any_value(grade) AS grade FROM {table} GROUP BY q, d")
    order = sorted(range(len(columns["q"])), key=lambda i: (columns["q"][i], columns["d"][i]))
    q, d, grade = (columns[name][order] for name in ("q", "d", "grade"))
    return Grades(str(source), q, d, grade.astype(np.float64))


def read_judgments(given: Any, counts: Counts, *, column: str = "grade") -> JudgedTable:
    """Read judgments of a log's documents; refuse bad rows, and judgments of other documents only.

    `column` holds the grade: any finite number. A document judged twice must have the same grade both times.
    """
    engine = embedded(counts.engine, of="judgments")
    return _joined(*_opened(given, engine, column), counts, engine)


def _opened(given: Any, engine: Engine, column: str) -> tuple[Source, str]:
    """The source, and a table of its checked rows."""
    source = _source(given, engine, column)
    try:
        table = engine.keep(_rows(source, column))
        _check(source, table, engine, column)
    except duckdb.Error as error:
        raise unreadable(str(source), error) from None
    return source, table


def none_in_the_log(where: str, documents: int, judged: Sequence[str], logged: Sequence[str]) -> InputError:
    """The error if no judged document is in the log, with an example of either."""
    return InputError(
        f"{where}: none of the {documents:,} judged documents is in the log. For instance, query {judged[0]!r}, "
        f"document {judged[1]!r} is judged; the log has query {logged[0]!r}, document {logged[1]!r}. Check that both "
        "use the same ids."
    )


def _source(given: Any, engine: Engine, column: str) -> Source:
    (source, *more) = find_sources(given, engine)
    expected = EXPECTED.format(column=column)
    if more:
        raise InputError(f"{source} and {more[0]} have different columns or formats. Pass only one file. {expected}")
    missing = [name for name in ("query_id", "doc_id", column) if name not in source.types]
    if missing:
        raise InputError(f"{source}: no column {missing[0]!r}. Found {', '.join(source.types)}. {expected}")
    if not (source.untyped or source.is_text) and kind_of(source.types[column]) not in ("integer", "real"):
        raise InputError(f"{source}, column {column!r}: found {source.types[column]} values, expected numbers.")
    return source


def _rows(source: Source, column: str) -> str:
    """SQL for ids as text, the grade (NULL if it is not a number), and the text that was found there."""
    text = f'CAST("{column}" AS VARCHAR)'
    ids = "nullif(CAST(query_id AS VARCHAR), '') AS q, nullif(CAST(doc_id AS VARCHAR), '') AS d"
    # concat hides the column: the CSV reader would run a bare cast itself, and fail where TRY_CAST gives NULL.
    value = f"concat({text}, '')" if source.untyped or source.is_text else f'"{column}"'
    return f"SELECT {ids}, TRY_CAST({value} AS DOUBLE) AS grade, {text} AS found FROM {source.table()}"


def _check(source: Source, table: str, engine: Engine, column: str) -> None:
    good = "q IS NOT NULL AND d IS NOT NULL AND grade IS NOT NULL AND isfinite(grade)"
    bad = engine.rows(
        f"SELECT q, d, found, count(*) OVER () FROM {table} WHERE NOT coalesce({good}, FALSE) "
        "ORDER BY q, d, found LIMIT 1"
    )
    for query, document, found, count in bad:
        raise InputError(
            f"{source}: query {query!r}, document {document!r}, {column} {found!r} is not a judgment (bad rows: "
            f"{count:,}). {EXPECTED.format(column=column)} The {column} is a number, on any scale."
        )
    twice = engine.rows(
        f"SELECT q, d, min(grade), max(grade) FROM {table} GROUP BY q, d HAVING min(grade) < max(grade) "
        "ORDER BY q, d LIMIT 1"
    )
    for query, document, low, high in twice:
        raise InputError(
            f"{source}: query {query!r}, document {document!r} has two grades, {low:g} and {high:g}. Give each "
            "document one grade, for instance the mean of its judges."
        )
    if not engine.rows(f"SELECT 1 FROM {table} LIMIT 1"):
        raise InputError(f"{source}: the file has no rows. {EXPECTED.format(column=column)}")


def _joined(source: Source, table: str, counts: Counts, engine: Engine) -> JudgedTable:
    """Find the judged documents in the log; raise if none is there."""
    pairs = f"(SELECT DISTINCT CAST(query_id AS VARCHAR) AS q, CAST(doc_id AS VARCHAR) AS d FROM {counts.table})"
    kept = engine.keep(
        "SELECT q, d, grade, shown, known FROM (SELECT q, d, any_value(grade) AS grade "
        f"FROM {table} GROUP BY q, d) LEFT JOIN (SELECT q, d, TRUE AS shown FROM {pairs}) USING (q, d) "
        f"LEFT JOIN (SELECT DISTINCT q, TRUE AS known FROM {pairs}) USING (q)"
    )
    engine.forget(table)
    ((documents, missing, strange),) = engine.rows(
        f"SELECT count(*), count(*) FILTER (WHERE shown IS NULL), count(*) FILTER (WHERE known IS NULL) FROM {kept}"
    )
    examples = engine.rows(f"SELECT q, d FROM {kept} WHERE shown IS NULL ORDER BY known IS NULL DESC, q, d LIMIT 3")
    if missing == documents:
        judged, logged = examples[0], engine.rows(f"SELECT q, d FROM {pairs} ORDER BY q, d LIMIT 1")[0]
        raise none_in_the_log(str(source), documents, judged, logged)
    return JudgedTable(str(source), kept, documents, missing, strange, tuple(examples))
