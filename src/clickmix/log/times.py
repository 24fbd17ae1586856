"""Times as logs write them, in SQL.   source -> counts"""

from __future__ import annotations

OFFSET = r"[T ].*([+-])(\d\d):?(\d\d)?$"
TIME = (
    "CASE WHEN regexp_full_match({0}, '[0-9]+') THEN epoch_ms(CASE WHEN length({0}) > 11 THEN 1 ELSE 1000 END * "
    "TRY_CAST({0} AS BIGINT)) ELSE TRY_CAST({0} AS TIMESTAMP) - coalesce(to_minutes(TRY_CAST(concat("
    f"regexp_extract({{0}}, '{OFFSET}', 1), 60 * TRY_CAST(regexp_extract({{0}}, '{OFFSET}', 2) AS INTEGER) + "
    f"coalesce(TRY_CAST(nullif(regexp_extract({{0}}, '{OFFSET}', 3), '') AS INTEGER), 0)) AS INTEGER)), "
    "INTERVAL 0 MINUTE) END"
)


def utc(text: str) -> str:
    """SQL for the time of a text, in UTC: DuckDB's cast ignores offsets such as +02:00.

    Numbers are milliseconds, or seconds if they are too small for that.
    """
    return TIME.format(text)
