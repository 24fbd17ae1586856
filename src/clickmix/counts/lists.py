"""Result lists: which documents each session saw together, counted list by list.   log -> lists -> counts

A list is what one session saw for one query: its set of (position, document). Sessions that saw the same list are
counted together. The name of a list is a 128-bit hash of its contents, so that the counts of two days add up; two lists
of one query share a name with probability 2^-128.

If lists are also separated by clicks, a list is what one session saw and clicked, and only sessions that clicked the
same are counted together. Every cell of such a list has no clicks, or as many as impressions. Click models need this,
to know which clicks belong together.
"""

from __future__ import annotations

from clickmix.engines.sql import listed, name
from clickmix.log.layout import Part, counting_query, key_values
from clickmix.log.layouts.rows import flags


def list_counting_query(part: Part, *, text_ids: dict[str, bool]) -> str:
    """Impressions and clicks per (query, document, position, list); the list is NULL if unknown."""
    if not part.layout.row_is_impression:
        kept = f"nullif(CAST({name(part.column(part.layout.list_role))} AS VARCHAR), '')"
        return counting_query(part, text_ids=text_ids, lists={"list": kept})
    # The scan identifies a list by two sums of fast hashes; the few cells that remain give its final name.
    sums = {"sum_0": '"sum 0"', "sum_1": '"sum 1"'}
    by_clicks = part.roles.lists == "clicks"
    table = _with_sums(part, by_clicks=by_clicks)
    cells = counting_query(part, text_ids=text_ids, lists=sums, table=table)
    good = "impressions > 0 AND query_id IS NOT NULL AND doc_id IS NOT NULL AND position >= 1"
    clicked = ", CASE WHEN clicks > 0 THEN ' clicked' ELSE '' END" if by_clicks else ""
    halves = listed(
        f"' ', sum(CASE WHEN {good} THEN md5_number_{half}(concat(position, ' ', doc_id{clicked})) END) OVER list"
        for half in ("lower", "upper")
    )
    united = f"CASE WHEN sum_0 IS NOT NULL THEN md5(concat({halves})) END AS list, impressions, clicks"
    return (
        f"SELECT query_id, doc_id, position, {united} FROM ({cells}) "
        "WINDOW list AS (PARTITION BY query_id, sum_0, sum_1)"
    )


def sessions_query(part: Part) -> str:
    """SQL for query, session, position, clicked, and the two sums that identify the list, of every impression."""
    query, _, position = key_values(part)
    session, (clicked, _) = name(part.column("session_id")), flags(part)
    return (
        f"SELECT {query} AS query_id, {session} AS session_id, {position} AS position, {clicked} AS clicked, "
        f'"sum 0" AS sum_0, "sum 1" AS sum_1 FROM {_with_sums(part)}'
    )


def _with_sums(part: Part, *, by_clicks: bool = False) -> str:
    """The source's table with two sums of hashes over the good rows of each session and query.

    Sums do not depend on the order of rows and need no list of documents in memory.
    """
    query, document, position = key_values(part)
    session = name(part.column("session_id"))
    clicked, readable = flags(part)
    known = f"nullif(CAST({session} AS VARCHAR), '') IS NOT NULL"
    good = f"{readable} AND {document} IS NOT NULL AND {position} >= 1 AND {known}"
    more = f", {clicked}" if by_clicks else ""
    hashes = (f"hash({position}, {document}{more})", f"hash({document}, {position}{more})")
    sums = listed(f'sum(CASE WHEN {good} THEN {value} END) OVER page AS "sum {i}"' for i, value in enumerate(hashes))
    return f"(SELECT *, {sums} FROM {part.source.table()} WINDOW page AS (PARTITION BY {query}, {session}))"
