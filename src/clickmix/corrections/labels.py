"""Labels: one relevance per query and document, with the evidence it rests on.   corrections -> rankers"""

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

    `low` and `high` are there where a correction gives an interval, `estimate` where one is unbiased only before
    clipping (affine, ips, coec).

    The columns are computed when they are first asked for; `write` never brings them into memory. `added_up` is SQL
    for the labels, in any order; `one_cell` is faster SQL for the same, if every document has one cell only.
    """

    counts: Counts = field(repr=False)
    added_up: str = field(repr=False)
    one_cell: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """How many there are, if they have been asked for."""
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
        """Queries, as they came."""
        return self.columns["query_id"]

    @property
    def doc_id(self) -> Floats:
        """Documents, as they came."""
        return self.columns["doc_id"]

    @property
    def relevance(self) -> Floats:
        """Between 0 and 1."""
        return self.columns["relevance"]

    @property
    def impressions(self) -> Floats:
        """How often the document was shown for the query, wherever."""
        return self.columns["impressions"]

    @property
    def clicks(self) -> Floats:
        """How often it was clicked there."""
        return self.columns["clicks"]

    @property
    def estimate(self) -> Floats:
        """What the correction's formula gives, before clipping; relevance itself where nothing is clipped."""
        return self.columns.get("estimate", self.relevance)

    def __len__(self) -> int:
        return len(self.relevance)

    def write(self, path: str | Path, *, progress: Progress | None = None) -> int:
        """Write a labels file: Parquet, CSV or NDJSON by its name, whole or not at all; says how many labels."""
        engine = self.counts.engine
        if self.one_cell is None or engine.embedded is None:
            return engine.write(f"{self.query} {IN_ORDER}", str(path), optional=OPTIONAL, progress=progress)
        one_cell, added_up = f"{self.one_cell} {IN_ORDER}", f"{self.added_up} {IN_ORDER}"
        return engine.embedded.write(one_cell, path, key=KEY, otherwise=added_up, progress=progress)

    def to_pandas(self) -> Any:
        """As a pandas frame."""
        return self._to("pandas")

    def to_polars(self) -> Any:
        """As a polars frame."""
        return self._to("polars")

    def to_arrow(self) -> Any:
        """As an arrow table."""
        return self._to("pyarrow")

    def like(self, frame: Any) -> Any:
        """As the same kind of frame as `frame`; a relation of DuckDB or a frame of Spark stays in its session."""
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
