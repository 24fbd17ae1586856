"""Labels and the labels before them -> how they moved.   corrections -> terminal"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clickmix.corrections import Labels
from clickmix.errors import InputError
from clickmix.log import find_sources

MOST_EXAMPLES = 3
FAR = 0.1


@dataclass(frozen=True)
class Moved:
    """Documents labelled both times, only now, only before; how far the first kind moved, and which ones furthest."""

    both: int
    new: int
    gone: int
    mean_move: float
    far: int
    furthest: tuple[tuple[str, str, float, float], ...]

    def sentences(self) -> list[str]:
        """In words."""
        told = [
            f"Against the labels before: {self.both:,} documents in both, {self.new:,} new, {self.gone:,} gone; they "
            f"moved by {self.mean_move:.4f} on average, {self.far:,} of them by more than {FAR}."
        ]
        return told + [
            f"Moved most: query {query!r}, document {document!r} from {before:.3f} to {after:.3f}."
            for query, document, before, after in self.furthest
        ]


def labels_moved(labels: Labels, before: object) -> Moved:
    """Compare labels with those of a labels file or table, where the counts live."""
    engine = labels.counts.engine
    (old, *more) = find_sources(before, engine)
    missing = [column for column in ("query_id", "doc_id", "relevance") if column not in old.types]
    if more or missing:
        raise InputError(f"{old}: no labels. Expected one file or table with query_id, doc_id and relevance.")
    table = engine.keep(
        f"SELECT coalesce(a.q, b.q) AS q, coalesce(a.d, b.d) AS d, b.r AS old_r, a.r AS new_r, "
        f"abs(a.r - b.r) AS move FROM ({_keyed(f'({labels.query})')}) AS a "
        f"FULL OUTER JOIN ({_keyed(old.table())}) AS b ON a.q = b.q AND a.d = b.d"
    )
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


def _keyed(table: str) -> str:
    """Ids as text: they may be numbers in one file and text in another."""
    keys = "CAST(query_id AS VARCHAR) AS q, CAST(doc_id AS VARCHAR) AS d"
    return f"SELECT {keys}, CAST(relevance AS DOUBLE) AS r FROM {table}"
