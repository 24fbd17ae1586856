"""SQL statements for people to run elsewhere: counts, refused rows, histogram, labels.   -> SQL text"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.count import GOOD_KEY
from clickmix.engines.dialects import printed
from clickmix.engines.engine import StoredTable
from clickmix.engines.sql import listed, name
from clickmix.errors import SettingError
from clickmix.groups.places import histogram_query
from clickmix.log.bad_rows import reasons_query
from clickmix.log.layout import Part, Roles, counting_query
from clickmix.log.layouts.ga4 import BIGQUERY, IN_ADDRESS
from clickmix.log.layouts.rows import RowLayout
from clickmix.log.open import checked_columns, checked_context
from clickmix.log.source import EngineTable

READ = ("query_id", "doc_id", "position", "clicked")
# A part of a table's name: in quotation marks of either kind, or plain.
PART = r"""(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^."`]+)"""


def counts_statement(
    dialect: str, *, table: str = "clicks", columns: Mapping[str, str] | None = None, context: Sequence[str] = ()
) -> str:
    """Count a raw log: one row per query, document, position and context, without refused rows."""
    part = _assumed(table, columns or {}, context)
    counted = counting_query(part, text_ids={"query_id": False, "doc_id": False})
    keys = listed(["query_id", "doc_id", "position", *map(name, context)])
    statement = f"SELECT {keys}, impressions, clicks FROM ({counted}) WHERE {GOOD_KEY} AND impressions > 0"
    return printed(statement, dialect, quoted=_quoted_parts(table))


def refused_statement(dialect: str, *, table: str = "clicks", columns: Mapping[str, str] | None = None) -> str:
    """How many rows of a raw log are refused, by reason."""
    return printed(reasons_query(_assumed(table, columns or {}, ())), dialect, quoted=_quoted_parts(table))


def ga4_statement(dialect: str, *, table: str) -> str:
    """Impressions from the events of Google Analytics 4, with the columns of a raw log; for BigQuery only."""
    if dialect != "bigquery":
        raise SettingError(f"dialect {dialect!r}: Google Analytics exports to BigQuery. Use --dialect bigquery.")
    if "`" in table:
        raise SettingError(f"table {table!r}: write the name without backticks, as in project.analytics_1.events_*.")
    return BIGQUERY.format(table=f"`{table}`", in_address=IN_ADDRESS)


def histogram_statement(dialect: str, *, table: str = "counts", context: Sequence[str] = ()) -> str:
    """The histogram of a table of counts: all that `clickmix fit` needs if documents stay at their places."""
    return printed(histogram_query(_named(table), context), dialect, quoted=_quoted_parts(table))


def labels_statement(dialect: str, fitted: MixtureFit, *, table: str = "counts") -> str:
    """The labels of a table of counts, with the parameters of a fit as a small inline table."""
    return printed(fitted.statement(_named(table)), dialect, quoted=_quoted_parts(table))


def _assumed(table: str, columns: Mapping[str, str], context: Sequence[str]) -> Part:
    """A log that was not looked at: ids of any kind, whole positions, clicked a number or a truth value."""
    for role in checked_columns(columns):
        if role not in READ:
            raise SettingError(
                f"columns: this statement does not read {role!r}. It is for raw logs: {', '.join(READ)}."
            )
    roles = Roles(columns, checked_context(context))
    kinds = {"query_id": "BIGINT", "doc_id": "BIGINT", "position": "BIGINT", "clicked": "UNKNOWN"}
    types = {roles.column(role): kind for role, kind in kinds.items()}
    return Part(EngineTable(types, of=StoredTable(table, _named(table), types)), RowLayout(), roles)


def _named(table: str) -> str:
    return ".".join(name(part) for part, _ in _parts(table))


def _quoted_parts(table: str) -> frozenset[str]:
    """The parts of a table's name that the user quoted; they stay quoted."""
    return frozenset(part for part, quoted in _parts(table) if quoted)


def _parts(table: str) -> list[tuple[str, bool]]:
    """The parts of a table's name, and whether each was quoted.

    >>> _parts('"My DB".clicks')
    [('My DB', True), ('clicks', False)]
    """
    if not re.fullmatch(rf"{PART}(\.{PART})*", table):
        raise SettingError(
            f"table {table!r}: not the name of a table. Expected something like clicks, web.clicks or "
            "'\"My DB\".clicks'."
        )
    parts = re.findall(PART, table)
    return [(p[1:-1].replace(p[0] * 2, p[0]), True) if p[0] in '"`' else (p, False) for p in parts]
