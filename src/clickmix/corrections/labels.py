"""Labels: one relevance per query and document.   corrections -> rankers"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from clickmix.counts.counts import Counts
from clickmix.engines.sql import listed
from clickmix.types import Columns, Floats, Progress

KEY = ("query_id", "doc_id")
IN_ORDER = f"ORDER BY {listed(KEY)}"
OPTIONAL = ("estimate", "low", "high")  # by correction; with or without them, a table holds labels


@dataclass(frozen=True)
class Labels:
    """query_id, doc_id, relevance, impressions, clicks, low, high: one row per query and document, in order.

    Corrections with an interval give `low` and `high`; those that are unbiased only before clipping (affine, ips, coec)
    give `estimate`.

    Columns are computed when first used; `write` never brings them into memory. `added_up` is SQL for the labels, in
    any order. `one_cell` is faster SQL for the same, valid if every document has only one cell.
    """

    counts: Counts = field(repr=False)
    added_up: str = field(repr=False)
    one_cell: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """The number of labels, if they have been computed."""
        known = f"{len(self):,} documents" if "columns" in self.__dict__ else "not computed yet"
        return f"Labels({known}; columns, write(path), to_pandas(), to_polars(), to_arrow())"

    @cached_property
    def query(self) -> str:
        """SQL for the labels, in any order."""
        return self.one_cell if self.one_cell and self.counts.one_cell_each() else self.added_up

    @cached_property
    def columns(self) -> Columns:
        """All columns, as numpy arrays."""
        return self.counts.engine.fetch(f"{self.query} {IN_ORDER}")

    @property
    def query_id(self) -> Floats:
        """Query ids, unchanged."""
        return self.columns["query_id"]

    @property
    def doc_id(self) -> Floats:
        """Document ids, unchanged."""
        return self.columns["doc_id"]

    @property
    def relevance(self) -> Floats:
        """Relevance, from 0 to 1."""
        return self.columns["relevance"]

    @property
    def impressions(self) -> Floats:
        """How often the document was shown for the query, at all positions together."""
        return self.columns["impressions"]

    @property
    def clicks(self) -> Floats:
        """How often it was clicked."""
        return self.columns["clicks"]

    @property
    def estimate(self) -> Floats:
        """The correction's result before clipping; equal to relevance if nothing is clipped."""
        return self.columns.get("estimate", self.relevance)

    def __len__(self) -> int:
        return len(self.relevance)

    def write(self, path: str | Path, *, progress: Progress | None = None) -> int:
        """Write a labels file (Parquet, CSV or NDJSON, by its suffix) atomically; return the number of labels."""
        engine = self.counts.engine
        if self.one_cell is None or engine.embedded is None:
            return engine.write(f"{self.query} {IN_ORDER}", str(path), optional=OPTIONAL, progress=progress)
        one_cell, added_up = f"{self.one_cell} {IN_ORDER}", f"{self.added_up} {IN_ORDER}"
        return engine.embedded.write(one_cell, path, key=KEY, otherwise=added_up, progress=progress)

    def to_pandas(self) -> Any:
        """The labels as a pandas frame."""
        return self._to("pandas")

    def to_polars(self) -> Any:
        """The labels as a polars frame."""
        return self._to("polars")

    def to_arrow(self) -> Any:
        """The labels as an arrow table."""
        return self._to("pyarrow")

    def like(self, frame: Any) -> Any:
        """The labels as the same kind of frame as `frame`; DuckDB relations and Spark frames stay in their session."""
        found = self.counts.engine.frame_like(frame, f"{self.query} {IN_ORDER}")
        if found is not None:
            return found
        import narwhals as nw  # late: files do not need it

        native = nw.from_native(frame)
        made = self._to(native.implementation)
        return made.lazy() if isinstance(native, nw.LazyFrame) else made

    def _to(self, backend: Any) -> Any:
        import narwhals as nw

        columns = {key: values.tolist() if values.dtype == object else values for key, values in self.columns.items()}
        return nw.from_dict(columns, backend=backend).to_native()
