"""Which rows of a log could not be counted, where they are, and why.   log -> counts

Rows are numbered from 1 in every format: the first row after a header is row 1. Lines that cannot be split into columns
count as rows, blank lines do not. (In a CSV file with both, a number can be off by the blank lines before it.) Rows of
another engine's table have no number, so their key names them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clickmix.engines.engine import Engine
from clickmix.engines.sql import listed, literal, name
from clickmix.log.csv_lines import forget_rejects
from clickmix.log.json_lines import LINE_FLAGS
from clickmix.log.layout import Layout, Part, Roles, id_columns, used_columns
from clickmix.log.layouts.rows import RowLayout
from clickmix.log.refused import EXAMPLES_PER_REASON, LONGEST_EXAMPLE, BadValue, Example, Refused, merged
from clickmix.log.source import Registered, Source

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB


def find_refused(parts: Sequence[Part], engine: Engine) -> list[Refused]:
    """Read a log again to say which rows were refused or decided on, and why. Each row gets one reason."""
    found: list[Refused] = []
    for counted in parts:
        part = counted.judged or counted
        problems = part.layout.problems(part)
        for file in part.source.parts:
            if engine.embedded is None:
                found += _by_reason(part, problems, engine.rows(_query(part, problems, file)), [])
                continue
            expected = part.source.lines(file)
            forget_rejects(engine.embedded)
            with engine.embedded.in_order():
                rows = engine.rows(_query(part, problems, file))
            lines, cut = part.source.rejected(engine.embedded, file, expected)
            before = [row - 1 - i for i, row in enumerate(cut)]  # good rows before each line that could not be split
            found += [*lines, *_by_reason(part, problems, rows, before)]
    return merged(found)


def _by_reason(
    part: Part, problems: Sequence[BadValue], rows: Sequence[tuple[Any, ...]], before: Sequence[int]
) -> list[Refused]:
    """The rows of `_query` by reason; `before` counts the good rows before each line that is not a row."""
    refused = []
    for i, problem in enumerate(problems):
        mine = [row for row in rows if row[0] == i]
        examples = (
            Example(
                part.source.shown(where),
                row if isinstance(row, str) else row + bisect_left(before, row),
                problem.column,
                text,
            )
            for _, where, row, text, _ in mine
        )
        refused += [Refused(problem.reason, mine[0][4], tuple(examples), problem.decided)] if mine else []
    return refused


def reasons_query(part: Part) -> str:
    """SQL for how many rows are refused, by reason."""
    problems = part.layout.problems(part)
    reasons = " ".join(f"WHEN {p.bad} THEN {literal(p.reason)}" for p in problems if not p.decided)
    return (
        f"SELECT reason, count(*) AS refused FROM (SELECT CASE {reasons} END AS reason FROM {part.source.table()}) "
        "WHERE reason IS NOT NULL GROUP BY reason ORDER BY reason"
    )


def _query(part: Part, problems: Sequence[BadValue], file: str | None) -> str:
    """SQL for the first bad rows of each kind: kind, file, row, text, and how many there are of the kind."""
    source = part.source
    kind = " ".join(f"WHEN {problem.bad} THEN {i}" for i, problem in enumerate(problems))
    values = [f"CAST({name(p.column)} AS VARCHAR)" if p.column else "NULL" for p in problems]
    # The last value is never shown. It makes the reader judge the same columns as when it counted.
    if not source.foreign:
        values.append(f"concat({listed(['NULL', *map(name, part.roles.context)])})")
    selected = listed(f"{value} AS v{i}" for i, value in enumerate(values))
    text = " ".join(f"WHEN {i} THEN left(v{i}, {LONGEST_EXAMPLE})" for i in range(len(values)))
    table, where, row = source.numbered(file, used=used_columns(part), ids=id_columns(part), key=_key(part))
    return f"""
        SELECT kind, place, at_row, text, total FROM (
            SELECT kind, place, at_row, CASE kind {text} END AS text, count(*) OVER (PARTITION BY kind) AS total,
                   row_number() OVER (PARTITION BY kind ORDER BY place, at_row) AS nth
            FROM (SELECT {where} AS place, {row} AS at_row, CASE {kind} END AS kind, {selected}
                  FROM {table})
            WHERE kind IS NOT NULL)
        WHERE nth <= {EXAMPLES_PER_REASON} ORDER BY kind, nth"""


def _key(part: Part) -> str:
    """SQL for the words that name a row of a table without row numbers."""
    words = {"query ": "query_id", ", document ": "doc_id", ", position ": "position"}
    parts = (
        f"{literal(word)}, coalesce(left(CAST({name(part.column(role))} AS VARCHAR), {LONGEST_EXAMPLE}), 'missing')"
        for word, role in words.items()
        if part.has(role)
    )
    return f"concat({listed(parts)})"


class _Lines(RowLayout):
    """The lines of a file, some of which may not be JSON objects; the contents of objects do not matter."""

    def problems(self, part: Part) -> list[BadValue]:
        return [BadValue("", name(flag), reason) for flag, reason in LINE_FLAGS.items() if flag == "no object"]


def broken_lines(sources: Sequence[Source], layout: Layout, roles: Roles, engine: DuckDB) -> tuple[Part, ...]:
    """A part for each source with lines that are not objects: a bad row, without a query, for each such line."""
    parts = []
    columns = {"query_id": "VARCHAR", "doc_id": "VARCHAR", "position": "BIGINT", "clicked": "INTEGER"}
    columns |= {"session_id": "VARCHAR"} | dict.fromkeys(roles.context, "VARCHAR")
    nothing = listed(f"CAST(NULL AS {type}) AS {name(column)}" for column, type in columns.items())
    for source in sources:
        bad = f"SELECT {nothing} FROM {source.objects()} WHERE coalesce(json_type(json), '') <> 'OBJECT'"
        table = engine.keep(bad)
        if engine.rows(f"SELECT 1 FROM {table} LIMIT 1"):
            judged = Part(source, _Lines(), Roles({"query_id": source.own_columns[0]}))
            frame = Registered(columns, registered=table, shown_as=str(source))
            parts.append(Part(frame, layout, Roles({}, roles.context, roles.lists), judged=judged))
    return tuple(parts)
