"""Yandex: the format of the relevance prediction challenge, tab separated lines without a header.   sources -> parts

session  time  Q  query  region  url1 url2 ... url10
session  time  C  url

The query is `query_region`. A click belongs to the last earlier page of its session that showed the url, at the
url's first position there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clickmix.engines.engine import embedded
from clickmix.engines.sql import literal
from clickmix.errors import InputError, SettingError
from clickmix.log.csv_lines import has_long_line, write_cut
from clickmix.log.files import find_files, is_gzipped
from clickmix.log.layout import LAYOUTS, Part, Roles
from clickmix.log.layouts.rows import RowLayout
from clickmix.log.refused import BadValue, Note
from clickmix.log.source import Registered, Source, reader_arguments
from clickmix.storage.packed import LONG_LINE, check_packed

if TYPE_CHECKING:
    from clickmix.engines.engine import Engine

# One column, so that every line is a row: chr(1) separates nothing, and nothing is quoted.
LINES = (
    "SELECT {number} AS file, row_number() OVER () AS number, line FROM read_csv({files}, "
    "columns = {{'line': 'VARCHAR'}}, "
    "auto_detect = false, header = false, delim = chr(1), quote = '', escape = '', strict_mode = false, "
    f"max_line_size = {2 * LONG_LINE}, buffer_size = {4 * LONG_LINE})"  # shorter lines may not be cut
)
GOOD = r"\d{1,18}\t\d{1,18}\t(Q\t\d{1,18}\t\d{1,18}(\t\d{1,18})+|C\t\d{1,18})"
IMPRESSIONS = """
WITH fields AS (SELECT file, number, string_split(line, chr(9)) AS f FROM {lines} WHERE {good}),
pages AS (SELECT file, number, f[1] AS session, f[4] || '_' || f[5] AS query, f[6:] AS urls FROM fields
          WHERE f[3] = 'Q'),
shown AS (SELECT file, number, session, query, CAST(unnest(urls) AS BIGINT) AS url,
                 unnest(range(1, len(urls) + 1)) AS position FROM pages),
clicks AS (SELECT file, number, f[1] AS session, CAST(f[4] AS BIGINT) AS url FROM fields WHERE f[3] = 'C'),
placed AS (SELECT p.file, p.number, p.position
    FROM clicks AS c
    ASOF LEFT JOIN (SELECT file, number, session, url, min(position) AS position FROM shown GROUP BY ALL) AS p
      ON c.file = p.file AND c.session = p.session AND c.url = p.url AND c.number > p.number)
SELECT query AS query_id, url AS doc_id, position, k.times IS NOT NULL AS clicked,
       concat(s.file, '/', s.number) AS session_id, coalesce(k.times, 0) AS times
FROM shown AS s LEFT JOIN (SELECT file, number, position, count(*) AS times FROM placed GROUP BY ALL) AS k
  USING (file, number, position)
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, 0 FROM {lines} WHERE NOT ({good}) AND trim(line) <> ''
"""


def cut_long_lines(files: Sequence[Path], folder: Path) -> list[Path]:
    """The files as they can be read: instead of one with a line that DuckDB would lose, a copy with that line cut."""
    packed = [file for file in files if is_gzipped(file)]
    long_lines = check_packed(packed) if packed else []
    readable = []
    for number, file in enumerate(files):
        if file in long_lines or (file not in packed and has_long_line(file)):
            folder.mkdir(exist_ok=True)
            write_cut(file, folder / str(number), gzipped=is_gzipped(file))
            readable.append(folder / str(number))
        else:
            readable.append(file)
    return readable


@dataclass(frozen=True)
class Lines(Registered):
    """The lines of some files in a table with file, number and line."""

    names: tuple[str, ...] = ()

    def numbered(self, file: str | None, *, used: Sequence[str], ids: Mapping[str, str], key: str) -> tuple[str, ...]:
        """Lines know their file and number."""
        names = "[" + ", ".join(map(literal, self.names)) + "]"
        return self.table(), f"{names}[file + 1]", "number"


@LAYOUTS.register("yandex", help="The Yandex relevance prediction challenge: lines of queries (Q) and clicks (C).")
class Yandex(RowLayout):
    """Pages and clicks of the Yandex relevance prediction challenge."""

    def find(self, log: object, engine: Engine) -> tuple[Source, ...]:
        """Files of any name."""
        files = find_files(log)
        return (Source({"line": "VARCHAR"}, tuple(map(str, files))),)

    def recognises(self, source: Source, roles: Roles) -> bool:
        """Whether the first line, which was read as a header, is a page."""
        first = [column.split(" (")[0] for column in source.types]
        return bool(source.files) and len(first) > 5 and first[2] == "Q" and all(c.isdigit() for c in first[:2])

    def open(
        self, sources: Sequence[Source], roles: Roles, engine: Engine
    ) -> tuple[tuple[Part, ...], tuple[Note, ...]]:
        """One part: the impressions of all files."""
        database = embedded(engine, of="reading the Yandex challenge")
        if roles.context:
            raise SettingError(f"context {roles.context[0]!r}: the Yandex challenge has no such column. Leave it out.")
        files = [source.shown(file) for source in sources for file in source.files]
        readable = cut_long_lines(list(map(Path, files)), database.folder / "cut")
        with database.in_order():
            lines = database.keep(
                " UNION ALL ".join(
                    f"({LINES.format(number=i, files=reader_arguments([str(file)], gzipped=is_gzipped(file)))})"
                    for i, file in enumerate(readable)
                )
            )
        bad_line = f"NOT regexp_full_match(line, '{GOOD}') AND trim(line) <> ''"
        table = database.keep(IMPRESSIONS.format(lines=lines, good=f"regexp_full_match(line, '{GOOD}')"))
        where = ", ".join(files)
        if not database.rows(f"SELECT 1 FROM {table} WHERE position IS NOT NULL LIMIT 1"):
            raise InputError(f"{where}: no line is a page (session, time, Q, query, region, urls). Check the format.")
        ((clicks,),) = database.rows(f"SELECT count(*) FROM {lines} WHERE regexp_matches(line, '^[0-9]+\\t[0-9]+\\tC')")
        ((used, times),) = database.rows(f"SELECT count(*) FILTER (clicked), sum(times)::BIGINT FROM {table}")
        judged = Part(Lines({"line": "VARCHAR"}, registered=lines, names=tuple(files)), _Judged(bad_line), Roles())
        source = Registered(database.types(table), registered=table, shown_as=where)
        part = Part(source, self, Roles({}, (), roles.lists), judged=judged)
        notes = (
            Note("click", "repeating a click on the same page: counted once", times - used),
            Note("click", "on a url that no earlier page of the session shows: left out", clicks - times),
        )
        return (part,), tuple(note for note in notes if note.times)


@dataclass(frozen=True)
class _Judged(Yandex):
    """Lines that are neither a page nor a click."""

    bad: str = ""

    def problems(self, part: Part) -> list[BadValue]:
        """Lines that are neither."""
        reason = (
            "the line is neither a page (session, time, Q, query, region, urls) nor a click (session, time, C, url)"
        )
        return [BadValue("line", self.bad, reason)]
