"""Yandex: the format of the relevance prediction challenge.   tab separated text, gzipped or not -> sessions

`log/layouts/yandex.py` explains its lines.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np

from clickmix.errors import InputError
from clickmix.lab.users.sessions import SessionLog, sessions_from_columns
from clickmix.log.files import is_gzipped
from clickmix.log.layouts.yandex import GOOD, IMPRESSIONS, LINES, cut_long_lines
from clickmix.log.source import reader_arguments

IS_GOOD = f"regexp_full_match(line, '{GOOD}')"
PAGES = """
SELECT CAST(fields[1] AS BIGINT) AS session
FROM (SELECT number, string_split(line, chr(9)) AS fields FROM lines) WHERE fields[3] = 'Q' ORDER BY number
"""


def read_yandex(path: str | Path) -> SessionLog:
    """One session per result page, in the order of the file; `query_id` is `query_region`, as text.

    A click belongs to the last page of its session, above it, that showed the url, at the url's first position there;
    clicking twice counts once. `clicks_elsewhere` counts clicks on urls that no such page showed.

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
        shown = connection.execute(IMPRESSIONS.format(lines="lines", good=IS_GOOD)).fetchnumpy()
        if len(shown["doc_id"]) == 0:
            raise InputError(f"{path}: no queries in it. Expected lines with session, time, Q, query, region and urls.")
        pages = connection.execute(PAGES).fetchnumpy()
        ((clicks,),) = connection.execute("SELECT count(*) FROM lines WHERE line LIKE '%\tC\t%'").fetchall()
    names, query = np.unique(np.asarray(shown["query_id"], dtype=np.str_), return_inverse=True)
    page = np.array([text.partition("/")[2] for text in shown["session_id"]], dtype=np.int64)
    log = sessions_from_columns(query, shown["doc_id"], shown["position"], shown["clicked"], page)
    elsewhere = clicks - int(shown["times"].sum())
    return replace(
        log, query_id=names[log.query_id], session_id=np.asarray(pages["session"]), clicks_elsewhere=elsewhere
    )


def _read_lines(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: no such file. Expected a log in the Yandex relevance prediction format.")
    try:
        with tempfile.TemporaryDirectory(prefix="clickmix-") as folder:
            (readable,) = cut_long_lines([path], Path(folder))
            files = reader_arguments([str(readable)], gzipped=is_gzipped(readable))
            connection.execute(f"CREATE TEMP TABLE lines AS {LINES.format(number=0, files=files)}")
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: cannot be read as text, whole and in UTF-8, gzipped or not: {reason}") from None
    bad = f"SELECT number, line FROM lines WHERE trim(line) <> '' AND NOT {IS_GOOD} ORDER BY number LIMIT 1"
    for number, line in connection.execute(bad).fetchall():
        raise InputError(
            f"{path}, line {number}: found {line[:200]!r}. Expected whole numbers separated by tabs: session, time, Q, "
            "query, region, urls; or session, time, C, url."
        )
