"""One query in several spellings -> one query, under its most frequent spelling.   counts"""

from __future__ import annotations

from collections.abc import Sequence

from clickmix.engines.engine import Engine
from clickmix.engines.sql import listed
from clickmix.errors import SettingError

# Every blank that Unicode has: what \\s means differs between engines.
BLANKS = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
# What may be ignored, and how SQL does it.
IGNORED = {
    "case": "lower({})",
    "space": f"trim(regexp_replace({{}}, '[{BLANKS}]+', ' ', 'g'))",
    "unicode": "nfc_normalize({})",
}


def checked_normalise(normalise: str | Sequence[str]) -> tuple[str, ...]:
    """What is ignored in queries, in the order in which it is done; `case,space` may be given as one text."""
    given = [word.strip() for word in normalise.split(",")] if isinstance(normalise, str) else list(normalise)
    for word in filter(None, given):
        if word not in IGNORED:
            raise SettingError(f"normalise {word!r}: expected {', '.join(IGNORED)}, or several of them.")
    return tuple(word for word in ("unicode", "case", "space") if word in given)


def joined_query(table: str, normalise: Sequence[str], keys: Sequence[str]) -> str:
    """SQL for a table of counts in which spellings that only differ in what is ignored are one query."""
    by_query = f"SELECT query_id, sum(impressions) AS shown FROM {table} GROUP BY query_id"
    spellings = (
        f"SELECT query_id, first_value(query_id) OVER (PARTITION BY {_form(normalise)} ORDER BY shown DESC, query_id) "
        f"AS spelling FROM ({by_query})"
    )
    rest = listed(keys)
    return (
        f"SELECT spelling AS query_id, {rest}, CAST(sum(impressions) AS BIGINT) AS impressions, "
        f"CAST(sum(clicks) AS BIGINT) AS clicks FROM {table} JOIN ({spellings}) USING (query_id) "
        f"GROUP BY spelling, {rest}"
    )


def spelled_alike(engine: Engine, table: str) -> str:
    """How many queries would remain if everything was ignored, in a sentence; nothing if all would."""
    if engine.types(table)["query_id"] != "VARCHAR":
        return ""
    ((queries, forms),) = engine.rows(
        f"SELECT count(*), count(DISTINCT form) FROM (SELECT {_form(checked_normalise(tuple(IGNORED)))} AS form "
        f"FROM (SELECT DISTINCT query_id FROM {table}))"
    )
    if queries == forms:
        return ""
    return (
        f"{queries:,} queries become {forms:,} if case, blanks and Unicode forms are ignored "
        f"(--normalise {','.join(IGNORED)})."
    )


def _form(normalise: Sequence[str]) -> str:
    """SQL for a query without what is ignored."""
    form = "query_id"
    for word in normalise:
        form = IGNORED[word].format(form)
    return form
