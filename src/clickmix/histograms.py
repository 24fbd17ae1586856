"""A histogram that a warehouse computed, downloaded as a file -> Histogram.   groups -> mixtures

Columns position, the context's, impressions, clicks, documents, and moving: how many of these documents were seen at
other places too. `clickmix sql histogram` prints the statement that makes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clickmix.engines.duckdb import DuckDB
from clickmix.errors import InputError
from clickmix.groups import Histogram, make_histogram
from clickmix.log import find_sources
from clickmix.rows import whole
from clickmix.sources import Source
from clickmix.sql import listed, name

NUMBERS = ("position", "impressions", "clicks", "documents", "moving")
GOOD = "position >= 1 AND impressions >= 1 AND clicks BETWEEN 0 AND impressions AND moving BETWEEN 0 AND documents"


def histogram_query(table: str, context: Sequence[str]) -> str:
    """SQL for the histogram of a table of counts."""
    keys = ["position", *map(name, context)]
    grouped = listed([*keys, "impressions", "clicks"])
    return (
        f"SELECT {grouped}, count(*) AS documents, sum(CASE WHEN cells > 1 THEN 1 ELSE 0 END) AS moving FROM ("
        f"SELECT {grouped}, count(*) OVER (PARTITION BY query_id, doc_id) AS cells FROM {table}) "
        f"GROUP BY {grouped} ORDER BY {grouped}"
    )


def is_histogram(log: object) -> bool:
    """Whether files hold histograms: documents are counted in them, not named."""
    sources = find_sources(log, DuckDB())
    return all("documents" in source.types and "query_id" not in source.types for source in sources)


def read_downloaded(log: object, *, context: Sequence[str] = ()) -> tuple[Histogram, float]:
    """The histogram of some files, and which share of its documents was seen at other places too."""
    engine = DuckDB()
    sources = find_sources(log, engine)
    parts = [_part(source, context) for source in sources]
    table = engine.keep(" UNION ALL ".join(parts))
    ((bad, rows),) = engine.rows(f"SELECT count(CASE WHEN {GOOD} THEN NULL ELSE 1 END), count(*) FROM {table}")
    where = ", ".join(map(str, sources))
    if bad or not rows:
        raise InputError(
            f"{where}: {bad:,} of {rows:,} rows are no part of a histogram. Expected position from 1 on, impressions "
            "from 1 on, clicks up to impressions, documents, and moving up to documents, as whole numbers."
        )
    keys = listed(["position", *map(name, context), "impressions", "clicks"])
    columns = engine.fetch(
        f"SELECT {keys}, CAST(sum(documents) AS BIGINT) AS documents, CAST(sum(moving) AS BIGINT) AS moving "
        f"FROM {table} GROUP BY {keys} ORDER BY {keys}"
    )
    moving = float(np.sum(columns["moving"]) / np.sum(columns["documents"]))
    return make_histogram(columns, context), moving


def _part(source: Source, context: Sequence[str]) -> str:
    missing = [column for column in (*NUMBERS, *context) if column not in source.types]
    if missing:
        raise InputError(
            f"{source}: no column {missing[0]!r}. Found {', '.join(source.types)}. Expected what the statement of "
            "`clickmix sql histogram` gives."
        )
    numbers = listed(f"{whole(source, column)} AS {column}" for column in NUMBERS)
    texts = (
        listed(["", *(f"coalesce(CAST({name(c)} AS VARCHAR), '') AS {name(c)}" for c in context)]) if context else ""
    )
    return f"SELECT {numbers}{texts} FROM {source.table()}"
