"""Yandex: the format of the relevance prediction challenge.   tab separated text, gzipped or not -> sessions

session  time  Q  query  region  url1 url2 ... url10
session  time  C  url
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np

from clickmix.errors import InputError
from clickmix.lab.users.sessions import SessionLog, sessions_from_columns

# A file of one column, so that a line is a row whatever stands in it: chr(1) separates nothing, nothing is quoted.
LINES = """
CREATE TEMP TABLE lines AS
SELECT row_number() OVER () AS number, line, string_split(line, chr(9)) AS fields
FROM read_csv($path, columns = {'line': 'VARCHAR'}, auto_detect = false, header = false, delim = chr(1), quote = '',
              escape = '', strict_mode = false, max_line_size = 1048576)
"""
BAD_LINE = r"""
SELECT number, line FROM lines
WHERE trim(line) <> '' AND NOT regexp_full_match(
    line, '\d{1,18}\t\d{1,18}\t(Q\t\d{1,18}\t\d{1,18}(\t\d{1,18})+|C\t\d{1,18})')
ORDER BY number LIMIT 1
"""
PAGES = """
CREATE TEMP TABLE pages AS
SELECT number AS page, fields[1]::BIGINT AS session, fields[4] || '_' || fields[5] AS query, fields[6:] AS urls
FROM lines WHERE fields[3] = 'Q';
CREATE TEMP TABLE shown AS
SELECT page, session, unnest(urls)::BIGINT AS url, unnest(range(1, len(urls) + 1)) AS position FROM pages;
CREATE TEMP TABLE clicks AS
SELECT click.number, place.page, place.position
FROM (SELECT number, fields[1]::BIGINT AS session, fields[4]::BIGINT AS url FROM lines WHERE fields[3] = 'C') AS click
ASOF LEFT JOIN (SELECT session, url, page, min(position) AS position FROM shown GROUP BY ALL) AS place
  ON click.session = place.session AND click.url = place.url AND click.number > place.page;
CREATE TEMP TABLE queries AS
SELECT query, row_number() OVER (ORDER BY query) - 1 AS code FROM (SELECT DISTINCT query FROM pages);
"""
IMPRESSIONS = """
SELECT queries.code AS query, shown.url, shown.position, clicked.page IS NOT NULL AS clicked, shown.page
FROM shown JOIN pages USING (page) JOIN queries USING (query)
LEFT JOIN (SELECT DISTINCT page, position FROM clicks) AS clicked
  ON clicked.page = shown.page AND clicked.position = shown.position
"""


def read_yandex(path: str | Path) -> SessionLog:
    """One session per result page, in the order of the file; `query_id` is `query_region`, as text.

    A click belongs to the last page of its session above it that showed the url, at the url's first position there;
    clicking twice counts once. Clicks on urls that no such page showed are counted in `clicks_elsewhere`.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "log.tsv")
    >>> _ = path.write_text("0\\t0\\tQ\\t5\\t1\\t11\\t12\\n0\\t3\\tC\\t12\\n")
    >>> read_yandex(path).sessions.clicks.tolist()
    [[False, True]]
    >>> folder.cleanup()
    """
    with duckdb.connect() as connection:
        _read_lines(connection, Path(path))
        for statement in PAGES.split(";")[:-1]:
            connection.execute(statement)
        columns = connection.execute(IMPRESSIONS).fetchnumpy()
        if len(columns["page"]) == 0:
            raise InputError(f"{path}: no queries in it. Expected lines with session, time, Q, query, region and urls.")
        queries = connection.execute("SELECT query FROM queries ORDER BY code").fetchnumpy()["query"]
        pages = connection.execute("SELECT session FROM pages ORDER BY page").fetchnumpy()["session"]
        elsewhere = connection.execute("SELECT count(*) FROM clicks WHERE page IS NULL").fetchall()[0][0]
    log = sessions_from_columns(*(columns[name] for name in ("query", "url", "position", "clicked", "page")))
    names = np.asarray(queries, dtype=np.str_)
    return replace(log, query_id=names[log.query_id], session_id=np.asarray(pages), clicks_elsewhere=elsewhere)


def _read_lines(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: no such file. Expected a log in the Yandex relevance prediction format.")
    try:
        connection.execute(LINES, {"path": str(path)})
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: cannot be read as text, whole and in UTF-8, gzipped or not: {reason}") from None
    bad = connection.execute(BAD_LINE).fetchone()
    if bad:
        number, line = bad
        raise InputError(
            f"{path}, line {number}: found {line[:200]!r}. Expected whole numbers separated by tabs: session, time, Q, "
            "query, region, urls; or session, time, C, url."
        )
