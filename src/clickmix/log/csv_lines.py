"""Lines of CSV that cannot be rows: those that DuckDB cannot split into columns, and those it would lose.

A line longer than DuckDB's buffer of 32 MB disappears, and so does the row after it. A power failure that filled the
end of a file with zeros leaves such a line. A copy of the file has the line cut. It is still too long to be a row, so
the reader reports it.   paths -> sources -> bad_rows
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clickmix.engines.sql import listed, name
from clickmix.errors import InputError
from clickmix.log.refused import EXAMPLES_PER_REASON, LONGEST_EXAMPLE, Example, Refused
from clickmix.storage.packed import BLOCK, LONG_LINE, write_blocks

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB

MOST_BROKEN = 200_000
# Text after the quotation mark that closes a value.
AFTER_CLOSING = re.compile(r'(?:^|[,;|\t])"(?:[^"]|"")*"[^",;|\t\n]')
# DuckDB's name of an error, and what it means.
REASONS: Mapping[str, str] = {
    "MISSING COLUMNS": "the line has fewer columns than the header",
    "TOO MANY COLUMNS": "the line has more columns than the header",
    "UNQUOTED VALUE": "a quotation mark is not closed, or text follows the closing one",
    "INVALID ENCODING": "the line is not UTF-8 text",
    "LINE SIZE OVER MAXIMUM": "the line is longer than 2,000,000 bytes",
}


def forget_rejects(engine: DuckDB) -> None:
    """Drop the errors that earlier scans noted."""
    engine.run("DROP TABLE IF EXISTS reject_errors")
    engine.run("DROP TABLE IF EXISTS reject_scans")


def count_lines(file: str, shown: str, columns: Sequence[str], delimiter: str, *, gzipped: bool) -> int:
    """Count the lines below the header that are not blank; raise if more look broken than the reader can note.

    The reader notes each broken line in about a kilobyte, whatever its memory limit. This count does not rely on the
    reader, which loses lines after a quotation mark that is never closed.
    """
    path, lines, odd, delimiters = Path(file), 0, 0, len(columns) - 1
    with gzip.open(path, "rt", encoding="latin-1") if gzipped else path.open(encoding="latin-1") as data:
        for line in data:
            quoted = '"' in line
            if quoted and (line.count('"') % 2 or AFTER_CLOSING.search(line)):
                odd += 1
            elif line.count(delimiter) < delimiters or (not quoted and line.count(delimiter) > delimiters):
                if line == "\n":
                    continue
                odd += 1
            lines += 1
    if odd > MOST_BROKEN:
        raise InputError(
            f"{shown}: about {odd:,} lines cannot be split into the {len(columns)} columns of the header, which is too "
            "many to skip. Check the delimiter and the quotation marks."
        )
    return lines - 1 - sum(column.count("\n") for column in columns)


def check_none_swallowed(engine: DuckDB, shown: str, lines: int, good_rows: str, columns: Sequence[str]) -> None:
    """Raise if a file has more lines than the good rows and the lines that the last scan noted."""
    values = f"replace(concat({listed(map(name, columns))}), chr(13) || chr(10), chr(10))"
    inside = "length({0}) - length(translate({0}, chr(10) || chr(13), ''))"
    ((good, more),) = engine.rows(f"SELECT count(*), coalesce(sum({inside.format(values)}), 0) FROM {good_rows}")
    text = "trim(replace(any_value(csv_line), chr(13) || chr(10), chr(10)), chr(10) || chr(13))"
    noted = f"SELECT {inside.format(text)} AS more FROM reject_errors GROUP BY line"
    ((broken, more_broken),) = engine.rows(f"SELECT count(*), coalesce(sum(more), 0) FROM ({noted})")
    if good + more + broken + more_broken < lines:
        raise _swallowed(Example(shown, good + broken + 1, "", None))


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
        raise _swallowed(Example(shown, row, "", first))


def _swallowed(where: Example) -> InputError:
    return InputError(
        f"{where}: a quotation mark opens here and is not closed on the line, so it is unknown how many of the rows "
        "below are lost. Close it, or double quotation marks inside a value; such a row cannot be skipped."
    )


KEPT = 4 << 20  # bytes of a line: twice as many as the reader accepts
LOOK = 1 << 16
LINE_ENDS = re.compile(rb"[\r\n]")


def has_long_line(file: Path) -> bool:
    """Whether an unpacked file has a line of 2 * LONG_LINE bytes or more; also true for some shorter lines.

    Such a line fills a block of LONG_LINE bytes. Usually the first bytes of a block already show a line end.
    """
    with file.open("rb") as data:
        for start in range(0, file.stat().st_size - LONG_LINE + 1, LONG_LINE):
            data.seek(start)
            if not any(LINE_ENDS.search(data.read(LOOK)) for _ in range(LONG_LINE // LOOK)):
                return True
    return False


def write_cut(file: Path, target: Path, *, gzipped: bool) -> None:
    """Write a file's lines to a new file, unpacked, and cut to about KEPT bytes."""
    with gzip.open(file) if gzipped else file.open("rb") as data:
        write_blocks(_cut(iter(lambda: data.read(BLOCK), b"")), target)


def _cut(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same lines, with long ones cut; a quotation mark is added if the rest would have closed one."""
    kept, quotes = 0, 0  # of the line that the last block ended in: bytes written, quotation marks left out
    for block in blocks:
        first = LINE_ENDS.search(block)
        end = first.start() if first else len(block)
        room = min(end, max(0, KEPT - kept))
        yield block[:room]
        kept, quotes = kept + room, quotes + block.count(b'"', room, end)
        if first:
            yield b'"' * (quotes % 2) + block[end:]
            kept, quotes = len(block) - 1 - max(block.rfind(b"\n"), block.rfind(b"\r")), 0
    yield b'"' * (quotes % 2)
