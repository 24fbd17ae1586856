"""The log stage's statements for people to run elsewhere: counts, refused rows, histogram, labels.   -> SQL text"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clickmix.corrections import MixtureFit
from clickmix.counts import GOOD_KEY
from clickmix.dialects import printed
from clickmix.engines.engine import Table
from clickmix.histograms import histogram_query
from clickmix.log import Log
from clickmix.refused import kinds_query
from clickmix.rows import counting_query
from clickmix.sources import Source, table_source
from clickmix.sql import listed, name


def counts_statement(
    dialect: str, *, table: str = "clicks", columns: Mapping[str, str] | None = None, context: Sequence[str] = ()
) -> str:
    """Counts a raw log: one row per query, document, position and context; refused rows are left out."""
    source, log = _assumed(table, columns or {}, context)
    counted = counting_query(source, log, skip=True, text_ids={"query_id": False, "doc_id": False})
    keys = listed(["query_id", "doc_id", "position", *map(name, context)])
    statement = f"SELECT {keys}, impressions, clicks FROM ({counted}) WHERE {GOOD_KEY} AND impressions > 0"
    return printed(statement, dialect)


def refused_statement(dialect: str, *, table: str = "clicks", columns: Mapping[str, str] | None = None) -> str:
    """How many rows of a raw log are refused, by reason."""
    return printed(kinds_query(*_assumed(table, columns or {}, ())), dialect)


def histogram_statement(dialect: str, *, table: str = "counts", context: Sequence[str] = ()) -> str:
    """The histogram of a table of counts: what `clickmix fit` needs where documents stay at their place."""
    return printed(histogram_query(_quoted(table), context), dialect)


def labels_statement(dialect: str, fitted: MixtureFit, *, table: str = "counts") -> str:
    """The labels of a table of counts, with the parameters of a fit as a small inline table."""
    return printed(fitted.statement(_quoted(table)), dialect)


def _assumed(table: str, columns: Mapping[str, str], context: Sequence[str]) -> tuple[Source, Log]:
    """A log nobody has looked at: ids of any kind, whole positions, clicked a number or a truth value."""
    log = Log((), columns, tuple(context))
    kinds = {"query_id": "BIGINT", "doc_id": "BIGINT", "position": "BIGINT", "clicked": "UNKNOWN"}
    types = {log.column(role): kind for role, kind in kinds.items()}
    return table_source(Table(table, _quoted(table), types)), log


def _quoted(table: str) -> str:
    return ".".join(name(part) for part in table.split("."))
