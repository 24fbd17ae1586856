"""Refused rows: which rows of a log could not be counted, where they stand, and why.   log -> counts

Rows are numbered from 1 in every format: the first row after a header is row 1, lines that cannot be cut into columns
count as rows, blank lines do not. (In a CSV file that has both blank lines and lines that cannot be cut, a number can
be off by as many rows as there are blank lines before it.) The rows of another engine's table have no number: there,
the row's key is told.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clickmix.engines.choose import Engines
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import listed, literal, name
from clickmix.errors import InputError
from clickmix.log.open import Log, is_counted
from clickmix.log.rows import flags, json_lines, whole
from clickmix.log.sources import Source

EXAMPLES_PER_KIND = 3
LONGEST_EXAMPLE = 200
# What the CSV reader says of a line it cannot cut into columns, in words.
LINE_REASONS: Mapping[str, str] = {
    "MISSING COLUMNS": "the line has fewer columns than the header",
    "TOO MANY COLUMNS": "the line has more columns than the header",
    "UNQUOTED VALUE": "a quotation mark is not closed, or text follows the closing one",
    "INVALID ENCODING": "the line is not UTF-8 text",
    "LINE SIZE OVER MAXIMUM": "the line is longer than 2,000,000 bytes",
}


@dataclass(frozen=True)
class Example:
    """A refused row: where it stands (its number, or its key) and what stood there; no `column`: the whole line."""

    where: str
    row: int | str
    column: str
    text: str | None

    def __str__(self) -> str:
        row = f"row {self.row}" if isinstance(self.row, int) else self.row
        place = f"{self.where}, {row}" + (f", column {self.column!r}" if self.column else "")
        if self.text is None:
            return f"{place}: nothing" if self.column else place
        return f"{place}: {self.text[:LONGEST_EXAMPLE]!r}"


@dataclass(frozen=True)
class Refused:
    """Rows refused for one reason: how many, and the first of them."""

    reason: str
    rows: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class _Problem:
    """What can be wrong with one value of a row, as SQL that is true for a bad row."""

    column: str
    bad: str
    reason: str


def find_refused(log: Log, engine: Engines) -> list[Refused]:
    """Read a log again to say which rows were refused, and why: one row, one reason."""
    found: list[Refused] = []
    for source in log.sources:
        if engine.embedded is None:
            problems = _problems(source, log)
            found += _by_kind(source, problems, engine.rows(_query(source, log, problems, None)), [])
            continue
        for file in source.files if source.format in ("csv", "ndjson") else [None]:
            found += _refused_in(source, log, engine.embedded, file)
    return _merged(found)


def refusal(refused: Sequence[Refused]) -> InputError:
    """The first of some refused rows as an error, and how many there are."""
    first, rows = refused[0], sum(r.rows for r in refused)
    others = f" {rows:,} rows are bad in all." if rows > 1 else ""
    from_zero = first.reason.startswith("position") and first.examples[0].text == "0"
    hint = " If positions count from 0, add 1 to all of them." if from_zero else ""
    return InputError(
        f"{first.examples[0]}: {first.reason}.{others}{hint} Mend the log, or leave bad rows out with --bad-rows skip "
        "(in Python bad_rows='skip')."
    )


def _refused_in(source: Source, log: Log, engine: DuckDB, file: str | None) -> list[Refused]:
    engine.run("DROP TABLE IF EXISTS reject_errors")
    engine.run("DROP TABLE IF EXISTS reject_scans")
    problems = _problems(source, log)
    with engine.in_order():
        rows = engine.rows(_query(source, log, problems, file))
    lines, cut = _rejected_lines(source, engine, file) if source.format == "csv" and file else ([], [])
    before = [row - 1 - i for i, row in enumerate(cut)]  # good rows before each line that could not be cut
    return [*lines, *_by_kind(source, problems, rows, before)]


def _by_kind(
    source: Source, problems: Sequence[_Problem], rows: Sequence[tuple[Any, ...]], before: Sequence[int]
) -> list[Refused]:
    """The rows of `_query`, kind by kind; `before` tells how many good rows stand before each line that is no row."""
    refused = []
    for i, problem in enumerate(problems):
        mine = [row for row in rows if row[0] == i]
        examples = (
            Example(
                source.shown(where),
                row if isinstance(row, str) else row + bisect_left(before, row),
                problem.column,
                text,
            )
            for _, where, row, text, _ in mine
        )
        refused += [Refused(problem.reason, mine[0][4], tuple(examples))] if mine else []
    return refused


def kinds_query(source: Source, log: Log) -> str:
    """SQL for how many rows of which kind are refused."""
    reasons = " ".join(f"WHEN {problem.bad} THEN {literal(problem.reason)}" for problem in _problems(source, log))
    return (
        f"SELECT reason, count(*) AS refused FROM (SELECT CASE {reasons} END AS reason FROM {source.table()}) "
        "WHERE reason IS NOT NULL GROUP BY reason ORDER BY reason"
    )


def _query(source: Source, log: Log, problems: Sequence[_Problem], file: str | None) -> str:
    """SQL for the first bad rows of each kind: kind, file, row, text, and how many there are of the kind."""
    kind = " ".join(f"WHEN {problem.bad} THEN {i}" for i, problem in enumerate(problems))
    values = [f"CAST({name(p.column)} AS VARCHAR)" if p.column else "NULL" for p in problems]
    # The last one is never shown: with it the reader judges the same columns as when it counted.
    if source.format != "table":
        values.append(f"concat({listed(['NULL', *map(name, log.context)])})")
    selected = listed(f"{value} AS v{i}" for i, value in enumerate(values))
    text = " ".join(f"WHEN {i} THEN left(v{i}, {LONGEST_EXAMPLE})" for i in range(len(values)))
    if source.format == "parquet":
        where, row = '"file read"', "file_row_number + 1"
    elif source.format == "table":
        where, row = literal(str(source)), _key(log)
    else:
        where, row = literal(file or str(source)), "row_number() OVER ()"
    table = json_lines(source, log, file) if source.format == "ndjson" else None
    return f"""
        SELECT kind, place, at_row, text, total FROM (
            SELECT kind, place, at_row, CASE kind {text} END AS text, count(*) OVER (PARTITION BY kind) AS total,
                   row_number() OVER (PARTITION BY kind ORDER BY place, at_row) AS nth
            FROM (SELECT {where} AS place, {row} AS at_row, CASE {kind} END AS kind, {selected}
                  FROM {table or source.table(skip=True, file=file, numbered=True)})
            WHERE kind IS NOT NULL)
        WHERE nth <= {EXAMPLES_PER_KIND} ORDER BY kind, nth"""


def _key(log: Log) -> str:
    """SQL for what tells a row of a table that has no row numbers."""
    words = (("query ", "query_id"), (", document ", "doc_id"), (", position ", "position"))
    parts = (
        f"{literal(word)}, coalesce(left(CAST({name(log.column(role))} AS VARCHAR), {LONGEST_EXAMPLE}), 'missing')"
        for word, role in words
    )
    return f"concat({listed(parts)})"


def any_rejected_line(engine: DuckDB) -> bool:
    """Whether the CSV reader noted lines it could not cut into columns."""
    noted = engine.rows("SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'")
    return bool(noted and engine.rows("SELECT 1 FROM reject_errors LIMIT 1"))


def _rejected_lines(source: Source, engine: DuckDB, file: str) -> tuple[list[Refused], list[int]]:
    """Lines that the CSV reader could not cut into columns, as it noted them; and the rows at which they stand."""
    _check_closed(source, engine, file)
    rows = engine.rows(
        f"SELECT line - 1, any_value(error_type), any_value(left(csv_line, {LONGEST_EXAMPLE})) FROM reject_errors "
        "GROUP BY line ORDER BY line"
    )
    refused = []
    for kind in dict.fromkeys(kind for _, kind, _ in rows):
        mine = [(row, text) for row, of_kind, text in rows if of_kind == kind]
        examples = (Example(source.shown(file), row, "", text.strip("\r\n")) for row, text in mine[:EXAMPLES_PER_KIND])
        reason = LINE_REASONS.get(kind, "the line cannot be cut into the file's columns")
        refused.append(Refused(reason, len(mine), tuple(examples)))
    return refused, [row for row, _, _ in rows]


def _check_closed(source: Source, engine: DuckDB, file: str) -> None:
    """Complain about a quotation mark that took other lines with it: it ends at another one far below, or nowhere.

    Nothing is lost where the line itself shows text after the closing mark. Else the reader tells the lines together,
    or, where a long file is cut for several threads, a line beside.
    """
    d = source.delimiter
    text = "trim(csv_line, chr(10) || chr(13))"
    closed = f"""(?:(?:"(?:[^"]|"")*"|[^"{d}][^{d}]*)?[{d}])*"(?:[^"]|"")*"[^"{d}].*"""
    rows = engine.rows(
        f"SELECT line - 1, {text} FROM reject_errors WHERE (regexp_matches({text}, '[\\r\\n]') "
        f"AND error_type IN ('UNQUOTED VALUE', 'LINE SIZE OVER MAXIMUM')) "
        f"OR (error_type = 'UNQUOTED VALUE' AND NOT regexp_full_match({text}, '{closed}')) ORDER BY line LIMIT 1"
    )
    for row, lines in rows:
        first = lines.splitlines()[0] if '"' in lines else None
        raise InputError(
            f"{Example(source.shown(file), row, '', first)}: a quotation mark is opened here and not closed on the "
            "line, so nobody can say how many rows after it are lost. Close it, or write quotation marks within a "
            "value twice; such a row cannot be left out."
        )


def _problems(source: Source, log: Log) -> list[_Problem]:
    """All that can be wrong with a row, in the order in which it is looked for: one row, one reason."""
    query, document, position = (log.column(role) for role in ("query_id", "doc_id", "position"))
    at = whole(source, position)
    problems = []
    if source.format == "ndjson":
        problems = [
            _Problem("", '"no object"', "the line is not a JSON object"),
            _Problem("", '"key twice"', "a key stands twice in the line"),
            _Problem(query, '"query_id is none"', "query_id is neither text nor a whole number"),
            _Problem(document, '"doc_id is none"', "doc_id is neither text nor a whole number"),
        ]
    if source.of and source.of.broken:
        broken = name(source.of.broken)
        problems = [_Problem(source.of.broken, f"{broken} IS NOT NULL", "the line cannot be cut into columns")]
    problems += [
        _Problem(query, f"{name(query)} IS NULL", "query_id is missing"),
        _Problem(document, f"{name(document)} IS NULL", "doc_id is missing"),
        _Problem(position, f"coalesce({at}, 0) < 1", "position is not a whole number from 1 on"),
    ]
    if log.lists:
        role = "list" if is_counted(source, log) else "session_id"
        missing = f"nullif(CAST({name(log.column(role))} AS VARCHAR), '') IS NULL"
        problems.append(_Problem(log.column(role), missing, f"{role} is missing"))
    if not is_counted(source, log):
        _, readable = flags(source, log)
        bad = f"NOT coalesce({readable}, FALSE)"
        return [*problems, _Problem(log.column("clicked"), bad, "clicked is neither 0 nor 1")]
    n, c = (whole(source, log.column(role)) for role in ("impressions", "clicks"))
    return [
        *problems,
        _Problem(log.column("impressions"), f"coalesce({n}, -1) < 0", "impressions is not a whole number from 0 on"),
        _Problem(log.column("clicks"), f"coalesce({c}, -1) < 0", "clicks is not a whole number from 0 on"),
        _Problem(log.column("clicks"), f"{c} > {n}", "clicks are more than impressions"),
    ]


def _merged(found: Iterable[Refused]) -> list[Refused]:
    """One entry per reason."""
    merged: dict[str, Refused] = {}
    for refused in found:
        known = merged.setdefault(refused.reason, Refused(refused.reason, 0, ()))
        examples = (*known.examples, *refused.examples)[:EXAMPLES_PER_KIND]
        merged[refused.reason] = replace(known, rows=known.rows + refused.rows, examples=examples)
    return list(merged.values())
