"""A row of a log as SQL: its values, NULL where they are not what they should be, and why a row is refused.

log -> counts. Types are judged once per source, so that a clean Parquet log costs no more than its bare GROUP BY.
"""

from __future__ import annotations

from dataclasses import dataclass

from clickmix.engines.duckdb import DuckDB
from clickmix.log import Log, Source, is_counted, kind_of
from clickmix.sql import listed, literal, name

EXAMPLES_PER_KIND = 3
LONGEST_EXAMPLE = 200


@dataclass(frozen=True)
class Example:
    """A refused row: where it stands and what stood there."""

    where: str
    row: int
    column: str
    text: str | None

    def __str__(self) -> str:
        shown = "nothing" if self.text is None else repr(self.text[:LONGEST_EXAMPLE])
        return f"{self.where}, row {self.row}, column {self.column!r}: {shown}"


@dataclass(frozen=True)
class Refused:
    """Rows refused for one reason: how many, and the first of them."""

    reason: str
    rows: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Problem:
    """What can be wrong with one value of a row, as SQL that is true for a bad row."""

    column: str
    bad: str
    reason: str


def counting_query(source: Source, log: Log, *, skip: bool, text_ids: dict[str, bool]) -> str:
    """One scan: impressions, clicks and refused rows per (query, document, position, context).

    Bad keys are not looked at here: they come out as cells of their own, which costs nothing.
    """
    ids = [_id(source, log, role, as_text=text_ids[role]) for role in ("query_id", "doc_id")]
    keys = [*ids, whole(source, log.column("position")), *(_context(column) for column in log.context)]
    names = ["query_id", "doc_id", "position", *(name(column) for column in log.context)]
    selected = listed(f"{value} AS {alias}" for value, alias in zip(keys, names, strict=True))
    ordinals = listed(str(i + 1) for i in range(len(keys)))
    table = source.table(skip=skip)
    if is_counted(source, log):
        n, c = (whole(source, log.column(role)) for role in ("impressions", "clicks"))
        good = "n >= 0 AND c >= 0 AND c <= n"
        # A name of ours for each key: the log's own columns may be called n or c.
        return (
            f"SELECT {listed(names)}, CAST(sum(CASE WHEN {good} THEN n ELSE 0 END) AS BIGINT) AS impressions, "
            f"CAST(sum(CASE WHEN {good} THEN c ELSE 0 END) AS BIGINT) AS clicks, "
            f"count(CASE WHEN {good} THEN NULL ELSE 1 END) AS refused "
            f"FROM (SELECT {selected}, {n} AS n, {c} AS c FROM {table}) GROUP BY {ordinals}"
        )
    clicked, skipped = _flags(source, log)
    # Three plain counts are the cheapest way to check and count at once (measured: as fast as count and sum alone).
    return (
        f"SELECT {listed(names)}, clicks + skips AS impressions, clicks, all_rows - clicks - skips AS refused FROM ("
        f"SELECT {selected}, count(*) AS all_rows, count(CASE WHEN {clicked} THEN 1 END) AS clicks, "
        f"count(CASE WHEN {skipped} THEN 1 END) AS skips FROM {table} GROUP BY {ordinals})"
    )


def whole(source: Source, column: str) -> str:
    """A column as whole numbers, NULL where it holds none.

    In text, 3 and 3.0 are whole numbers (frames write them so when a value is missing); +3, 1e3 and ' 3' are not.
    """
    value, kind = name(column), _kind(source, column)
    if kind == "integer":
        return value
    if kind == "real":
        return (
            f"CASE WHEN {value} = floor({value}) AND abs({value}) < 9007199254740992 THEN CAST({value} AS BIGINT) END"
        )
    digits = f"regexp_matches({value}, '^[0-9]{{1,18}}([.]0+)?$')"
    return f"CASE WHEN {digits} THEN CAST(split_part({value}, '.', 1) AS BIGINT) END"


def find_refused(source: Source, log: Log, engine: DuckDB) -> list[Refused]:
    """Read a source again to say which rows were refused, and why."""
    if source.format in ("csv", "ndjson"):
        tables = [(file, source.table(skip=True, file=file)) for file in source.files]
    else:
        tables = [(str(source), source.table(numbered=True))]
    found = [refused for where, table in tables for refused in _refused_in(source, log, engine, where, table)]
    return _merged(found)


def _refused_in(source: Source, log: Log, engine: DuckDB, where: str, table: str) -> list[Refused]:
    problems = _problems(source, log)
    kind = " ".join(f"WHEN {problem.bad} THEN {i}" for i, problem in enumerate(problems))
    text = " ".join(f"WHEN {i} THEN CAST({name(p.column)} AS VARCHAR)" for i, p in enumerate(problems))
    in_parquet = source.format == "parquet"
    file = "filename" if in_parquet else literal(where)
    row = "file_row_number + 1" if in_parquet else "row_number() OVER ()"
    query = f"""
        SELECT kind, file, row, text, total FROM (
            SELECT *, count(*) OVER (PARTITION BY kind) AS total,
                   row_number() OVER (PARTITION BY kind ORDER BY file, row) AS nth
            FROM (SELECT file, row, kind, CASE kind {text} END AS text
                  FROM (SELECT *, {file} AS file, {row} AS row, CASE {kind} END AS kind FROM {table})
                  WHERE kind IS NOT NULL))
        WHERE nth <= {EXAMPLES_PER_KIND} ORDER BY kind, nth"""
    engine.run("SET preserve_insertion_order = true")  # row numbers of text files follow the file
    rows = engine.rows(query)
    engine.run("SET preserve_insertion_order = false")
    return [
        Refused(
            problem.reason,
            next(row[4] for row in rows if row[0] == i),
            tuple(Example(row[1], row[2], problem.column, row[3]) for row in rows if row[0] == i),
        )
        for i, problem in enumerate(problems)
        if any(row[0] == i for row in rows)
    ]


def _problems(source: Source, log: Log) -> list[Problem]:
    """All that can be wrong with a row, in the order in which it is looked for: one row, one reason."""
    query, document, position = (log.column(role) for role in ("query_id", "doc_id", "position"))
    at = whole(source, position)
    problems = [
        Problem(query, f"{name(query)} IS NULL", "query_id is missing"),
        Problem(document, f"{name(document)} IS NULL", "doc_id is missing"),
        Problem(position, f"coalesce({at}, 0) < 1", "position is not a whole number from 1 on"),
    ]
    if not is_counted(source, log):
        clicked, skipped = _flags(source, log)
        bad = f"NOT coalesce({clicked} OR {skipped}, FALSE)"
        return [*problems, Problem(log.column("clicked"), bad, "clicked is neither 0 nor 1")]
    n, c = (whole(source, log.column(role)) for role in ("impressions", "clicks"))
    return [
        *problems,
        Problem(log.column("impressions"), f"coalesce({n}, -1) < 0", "impressions is not a whole number from 0 on"),
        Problem(log.column("clicks"), f"coalesce({c}, -1) < 0", "clicks is not a whole number from 0 on"),
        Problem(log.column("clicks"), f"{c} > {n}", "clicks are more than impressions"),
    ]


def _flags(source: Source, log: Log) -> tuple[str, str]:
    """SQL that is true for a click, and SQL that is true for an impression without one; else false or NULL."""
    value, kind = name(log.column("clicked")), _kind(source, log.column("clicked"))
    if kind == "boolean":
        return value, f"NOT {value}"
    if kind in ("integer", "real"):
        return f"{value} = 1", f"{value} = 0"
    return f"lower({value}) IN ('1', 'true', '1.0')", f"lower({value}) IN ('0', 'false', '0.0')"


def _kind(source: Source, column: str) -> str:
    """What a column holds as it is read: text formats hold text whatever was guessed from their first rows."""
    return "text" if source.format in ("csv", "ndjson") else kind_of(source.types[column])


def _id(source: Source, log: Log, role: str, *, as_text: bool) -> str:
    column = log.column(role)
    plain = _kind(source, column) == "integer" or source.types[column] == "VARCHAR"
    return name(column) if plain and not as_text else f"CAST({name(column)} AS VARCHAR)"


def _context(column: str) -> str:
    """A context value as text; a missing one is a value of its own."""
    return f"coalesce(CAST({name(column)} AS VARCHAR), '')"


def _merged(found: list[Refused]) -> list[Refused]:
    """One entry per reason."""
    reasons = list(dict.fromkeys(refused.reason for refused in found))
    return [
        Refused(
            reason,
            sum(r.rows for r in found if r.reason == reason),
            tuple(example for r in found if r.reason == reason for example in r.examples)[:EXAMPLES_PER_KIND],
        )
        for reason in reasons
    ]
