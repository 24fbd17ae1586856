"""The oracle: true relevance as labels, for experiments where it is known.   Counts -> Labels"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickmix.corrections.correction import Labels
from clickmix.counts.counts import SUMS, Counts, TakesCounts
from clickmix.engines.engine import embedded
from clickmix.errors import InputError
from clickmix.log.source import kind_of
from clickmix.types import Columns, Progress


@dataclass(frozen=True, eq=False)
class Oracle(TakesCounts):
    """Labels are the true relevance, whatever was clicked: three columns of equal length, one row per document.

    >>> from clickmix import Counts
    >>> counts = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 2], [100, 100], [60, 20])
    >>> Oracle(["q", "q"], ["a", "b"], [1.0, 0.0]).label(counts).relevance.tolist()
    [1.0, 0.0]
    """

    title: ClassVar[str] = "true relevance"

    truth: Columns = field(repr=False)

    def __init__(self, query_id: ArrayLike, doc_id: ArrayLike, relevance: ArrayLike) -> None:
        truth: dict[str, NDArray[Any]] = {
            "query_id": np.asarray(query_id),
            "doc_id": np.asarray(doc_id),
            "relevance": np.asarray(relevance, dtype=np.float64),
        }
        wrong = ~((truth["relevance"] >= 0) & (truth["relevance"] <= 1))
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"The truth, row {row + 1}: found relevance {truth['relevance'][row]:g}, expected a number from 0 to 1."
            )
        object.__setattr__(self, "truth", truth)

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> Oracle:
        """Nothing to fit."""
        return self

    def label(self, counts: Counts) -> Labels:
        """The true relevance of every document of the log; refuse documents without one."""
        engine = embedded(counts.engine, of="oracle")
        table = engine.new_name("truth")
        engine.register(table, self.truth)
        self._check_types(counts, table)
        joined = f"{counts.table} AS cells LEFT JOIN {table} AS truth USING (query_id, doc_id)"
        self._check_complete(counts, table, joined)
        return Labels(
            counts,
            f"SELECT query_id, doc_id, max(relevance) AS relevance, {SUMS} FROM {joined} GROUP BY query_id, doc_id",
        )

    def _check_types(self, counts: Counts, table: str) -> None:
        types, true_types = counts.engine.types(counts.table), counts.engine.types(table)
        for column in ("query_id", "doc_id"):
            found, expected = kind_of(true_types[column]), kind_of(types[column])
            if found != expected:
                raise InputError(f"The truth: {column} is {found}, but {expected} in the log. Use the same type.")

    def _check_complete(self, counts: Counts, table: str, joined: str) -> None:
        twice = counts.engine.rows(
            f"SELECT query_id, doc_id FROM {table} GROUP BY query_id, doc_id HAVING count(*) > 1 "
            "ORDER BY query_id, doc_id LIMIT 1"
        )
        if twice:
            raise InputError(f"The truth: query {twice[0][0]}, document {twice[0][1]} appears twice. List it once.")
        missing = counts.engine.rows(
            f"SELECT query_id, doc_id FROM {joined} WHERE relevance IS NULL ORDER BY query_id, doc_id LIMIT 1"
        )
        if missing:
            raise InputError(
                f"The truth: no relevance for query {missing[0][0]}, document {missing[0][1]}. "
                "Add one for every document of the log."
            )
