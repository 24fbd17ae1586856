"""Lines of CSV that could not be split into columns, as DuckDB noted them while it read.   source -> bad_rows"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from clickmix.errors import InputError
from clickmix.log.refused import EXAMPLES_PER_REASON, LONGEST_EXAMPLE, Example, Refused

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB

# DuckDB's name of an error, and what it means.
REASONS: Mapping[str, str] = {
    "MISSING COLUMNS": "the line has fewer columns than the header",
    "TOO MANY COLUMNS": "the line has more columns than the header",
    "UNQUOTED VALUE": "a quotation mark is not closed, or text follows the closing one",
    "INVALID ENCODING": "the line is not UTF-8 text",
    "LINE SIZE OVER MAXIMUM": "the line is longer than 2,000,000 bytes",
}


def forget_rejects(engine: DuckDB) -> None:
    """Drop what earlier scans noted."""
    engine.run("DROP TABLE IF EXISTS reject_errors")
    engine.run("DROP TABLE IF EXISTS reject_scans")


def any_rejected_line(engine: DuckDB) -> bool:
    """Whether a scan noted lines that it could not split into columns."""
    noted = engine.rows("SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'")
    return bool(noted and engine.rows("SELECT 1 FROM reject_errors LIMIT 1"))


def rejected_lines(engine: DuckDB, shown: str, delimiter: str) -> tuple[list[Refused], list[int]]:
    """The lines that the scan of one file could not split, by reason, and their row numbers."""
    _check_closed(engine, shown, delimiter)
    rows = engine.rows(
        f"SELECT line - 1, any_value(error_type), any_value(left(csv_line, {LONGEST_EXAMPLE})) FROM reject_errors "
        "GROUP BY line ORDER BY line"
    )
    refused = []
    for kind in dict.fromkeys(kind for _, kind, _ in rows):
        mine = [(row, text) for row, of_kind, text in rows if of_kind == kind]
        examples = (Example(shown, row, "", text.strip("\r\n")) for row, text in mine[:EXAMPLES_PER_REASON])
        reason = REASONS.get(kind, "the line cannot be split into the file's columns")
        refused.append(Refused(reason, len(mine), tuple(examples)))
    return refused, [row for row, _, _ in rows]


def _check_closed(engine: DuckDB, shown: str, delimiter: str) -> None:
    """Raise if a quotation mark swallowed other lines: it is closed far below, or nowhere.

    Nothing is lost if the line itself shows text after the closing mark. Otherwise DuckDB notes all swallowed lines
    together, or, if several threads read a long file, a line nearby.
    """
    d = delimiter
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
            f"{Example(shown, row, '', first)}: a quotation mark opens here and is not closed on the line, so nobody "
            "can say how many of the rows below are lost. Close it, or double quotation marks inside a value; such a "
            "row cannot be skipped."
        )
