"""Result lists: which documents each session saw together, counted list by list.   log -> lists -> counts

A list is what one session saw for one query: the set of its (position, document). Sessions that saw the same list are
counted together. A list is named by a hash of 128 bits of its contents, so that the counts of two days add up; two
lists of one query share a name with a chance of 2^-128, which nobody will live to see.
"""

from __future__ import annotations

from clickmix.engines.sql import listed, name
from clickmix.log.open import Log, is_counted
from clickmix.log.rows import counting_query, flags, key_values
from clickmix.log.sources import Source


def list_counting_query(source: Source, log: Log, *, skip: bool, text_ids: dict[str, bool]) -> str:
    """Impressions and clicks per (query, document, position, list); the list is NULL if unknown."""
    if is_counted(source, log):
        kept = f"nullif(CAST({name(log.column('list'))} AS VARCHAR), '')"
        return counting_query(source, log, skip=skip, text_ids=text_ids, lists={"list": kept})
    # In the scan, a list is told by two sums of fast hashes; its name for good is made from the few cells that remain.
    sums = {"sum_0": '"sum 0"', "sum_1": '"sum 1"'}
    cells = counting_query(
        source, log, skip=skip, text_ids=text_ids, lists=sums, table=_with_sums(source, log, skip=skip)
    )
    good = "impressions > 0 AND query_id IS NOT NULL AND doc_id IS NOT NULL AND position >= 1"
    halves = listed(
        f"' ', sum(CASE WHEN {good} THEN md5_number_{half}(concat(position, ' ', doc_id)) END) OVER list"
        for half in ("lower", "upper")
    )
    united = f"CASE WHEN sum_0 IS NOT NULL THEN md5(concat({halves})) END AS list, impressions, clicks"
    return (
        f"SELECT query_id, doc_id, position, {united} FROM ({cells}) "
        "WINDOW list AS (PARTITION BY query_id, sum_0, sum_1)"
    )


def sessions_query(source: Source, log: Log) -> str:
    """Query, session, position, whether it was clicked, and the two sums that tell the list, of every row shown."""
    query, _, position = key_values(source, log)
    session, (clicked, _) = name(log.column("session_id")), flags(source, log)
    return (
        f"SELECT {query} AS query_id, {session} AS session_id, {position} AS position, {clicked} AS clicked, "
        f'"sum 0" AS sum_0, "sum 1" AS sum_1 FROM {_with_sums(source, log, skip=False)}'
    )


def _with_sums(source: Source, log: Log, *, skip: bool) -> str:
    """The source's table with two sums of hashes over the good rows of each session and query.

    Sums do not depend on the order of rows and need no list of documents in memory.
    """
    query, document, position = key_values(source, log)
    session = name(log.column("session_id"))
    _, readable = flags(source, log)
    known = f"nullif(CAST({session} AS VARCHAR), '') IS NOT NULL"
    good = f"{readable} AND {document} IS NOT NULL AND {position} >= 1 AND {known}"
    hashes = (f"hash({position}, {document})", f"hash({document}, {position})")
    sums = listed(f'sum(CASE WHEN {good} THEN {value} END) OVER page AS "sum {i}"' for i, value in enumerate(hashes))
    return f"(SELECT *, {sums} FROM {source.table(skip=skip)} WINDOW page AS (PARTITION BY {query}, {session}))"
