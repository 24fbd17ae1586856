"""How labels changed since an earlier file.   labels, earlier labels -> Moved"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb

from clickmix.corrections.correction import Labels
from clickmix.drawn import Drawn
from clickmix.engines.engine import Engine
from clickmix.errors import InputError, several
from clickmix.log.files import find_sources, unreadable
from clickmix.log.source import Source, kind_of

MOST_EXAMPLES = 20
MOST_SENTENCES = 3
FAR = 0.1
SHOWN = 0.001  # what three digits can tell apart
DIGITS = 9  # of a change: sums in another order differ beyond them


@dataclass(frozen=True, repr=False)
class Moved(Drawn):
    """How many documents have labels in both files, only now, or only before; how far labels moved; the furthest."""

    both: int
    new: int
    gone: int
    mean_move: float
    far: int
    furthest: tuple[tuple[str, str, float, float], ...]

    def __repr__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """The summary, and the largest changes."""
        if not self.both:
            return [
                f"Compared with the previous labels: no document is in both, {self.new:,} are new, {self.gone:,} are "
                "gone. Check that both are labels of the same log."
            ]
        summary = (
            f"Compared with the previous labels: {several(self.both, 'document')} in both, {self.new:,} new, "
            f"{self.gone:,} gone."
        )
        if not self.mean_move:
            return [f"{summary} No label changed."]
        mean = f"{self.mean_move:.3f}" if self.mean_move >= SHOWN / 2 else f"less than {SHOWN}"
        moved = f"Labels in both changed by {mean} on average, {self.far:,} of them by more than {FAR}."
        examples = [
            f"Largest change: query {query!r}, document {document!r} from {before:.3f} to {after:.3f}."
            for query, document, before, after in self.furthest[:MOST_SENTENCES]
            if abs(after - before) >= SHOWN
        ]
        return [f"{summary} {moved}", *examples]


def open_labels(before: object, engine: Engine) -> Source:
    """Open earlier labels, a file or table; refuse anything else now, not after an hour of counting."""
    (old, *more) = find_sources(before, engine)
    missing = [column for column in ("query_id", "doc_id", "relevance") if column not in old.types]
    if more or missing:
        raise InputError(
            f"{old}: these are not labels. Expected one file or table with query_id, doc_id and relevance."
        )
    if not _is_text(old) and kind_of(old.types["relevance"]) not in ("integer", "real"):
        raise InputError(f"{old}, column 'relevance': found {old.types['relevance']} values, expected numbers.")
    try:
        _check_rows(old, engine)
    except duckdb.Error as error:
        raise unreadable(str(old), error) from None
    return old


def find_labels(found: object, engine: Engine) -> Source | None:
    """The labels of a file or table; None if it is a log."""
    sources = find_sources(found, engine)
    names = {column for source in sources for column in source.types}
    return open_labels(found, engine) if "relevance" in names and "position" not in names else None


def _check_rows(old: Source, engine: Engine) -> None:
    """Refuse rows without a query, a document or a relevance, and documents that appear twice."""
    rows = f"({_keyed(old.table(), relevance=_number(old), more=', CAST(relevance AS VARCHAR) AS found')}) AS before"
    good = "q IS NOT NULL AND d IS NOT NULL AND r BETWEEN 0 AND 1"  # NaN is more than any number
    bad = engine.rows(
        f"SELECT q, d, found, count(*) OVER () AS bad FROM {rows} WHERE NOT coalesce({good}, FALSE) "
        "ORDER BY q, d, found LIMIT 1"
    )
    for query, document, found, count in bad:
        raise InputError(
            f"{old}: query {query!r}, document {document!r}, relevance {found!r} is not a label (bad rows: {count:,}). "
            "Expected a query, a document and a relevance from 0 to 1. Use labels as clickmix wrote them."
        )
    twice = engine.rows(f"SELECT q, d, count(*) FROM {rows} GROUP BY q, d HAVING count(*) > 1 ORDER BY q, d LIMIT 1")
    for query, document, count in twice:
        raise InputError(
            f"{old}: query {query!r}, document {document!r} appears {count:,} times. Expected every document "
            "once. Use labels as clickmix wrote them."
        )


def labels_moved(labels: Labels, old: Source) -> Moved:
    """Compare labels with those from `open_labels`, in the engine of the counts."""
    engine = labels.counts.engine
    try:
        table = engine.keep(_joined(labels, old))
    except duckdb.Error as error:  # the file may have changed since it was opened
        raise unreadable(str(old), error) from None
    ((both, new, gone, mean, far),) = engine.rows(
        "SELECT count(move), count(CASE WHEN old_r IS NULL THEN 1 END), count(CASE WHEN new_r IS NULL THEN 1 END), "
        f"avg(move), count(CASE WHEN move > {FAR} THEN 1 END) FROM {table}"
    )
    furthest: list[tuple[Any, ...]] = engine.rows(
        f"SELECT q, d, old_r, new_r FROM {table} WHERE move > 0 ORDER BY move DESC, q, d LIMIT {MOST_EXAMPLES}"
    )
    engine.forget(table)
    examples = tuple((str(q), str(d), float(b), float(a)) for q, d, b, a in furthest)
    return Moved(int(both), int(new), int(gone), float(mean or 0), int(far), examples)


def _joined(labels: Labels, old: Source) -> str:
    """SQL for every document of either side, with its relevance before and now."""
    return (
        f"SELECT coalesce(a.q, b.q) AS q, coalesce(a.d, b.d) AS d, b.r AS old_r, a.r AS new_r, "
        f"round(abs(a.r - b.r) * 1e{DIGITS}) / 1e{DIGITS} AS move FROM ({_keyed(f'({labels.sql})')}) AS a "
        f"FULL OUTER JOIN ({_keyed(old.table(), relevance=_number(old))}) AS b ON a.q = b.q AND a.d = b.d"
    )


def _keyed(table: str, *, relevance: str = "CAST(relevance AS DOUBLE)", more: str = "") -> str:
    """SQL for labels with ids as text: they can be numbers in one file and text in another."""
    keys = "CAST(query_id AS VARCHAR) AS q, CAST(doc_id AS VARCHAR) AS d"
    return f"SELECT {keys}, {relevance} AS r{more} FROM {table}"


def _number(old: Source) -> str:
    """SQL for relevance; NULL if a text is not a number."""
    return f"{'TRY_CAST' if _is_text(old) else 'CAST'}(relevance AS DOUBLE)"


def _is_text(old: Source) -> bool:
    return old.untyped or old.is_text
