"""What every correction has in common: `fit(counts)` returns a fit, whose `label(counts)` gives Labels.

A correction is one file that registers itself in `CORRECTIONS`; `coec.py` is a short one. `--help` loads every member,
so members import scipy and other slow modules inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from clickmix.counts.counts import Counts
from clickmix.drawn import Drawn, Plot, report
from clickmix.engines.sql import listed, literal
from clickmix.errors import InputError, SettingError
from clickmix.log.layout import Lists
from clickmix.registry import Family
from clickmix.types import Columns, Floats, Progress

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from clickmix.groups.places import Place


class Fitted(Protocol):
    """A correction that has learned from a log.

    A fit that can predict clicks also has `click_rates(seen, asked)`; `click_rates.py` describes both arguments.
    """

    def label(self, counts: Counts) -> Labels:
        """One relevance per query and document."""


class Correction(Protocol):
    """The settings of a correction.

    Three attributes are optional: `needs_lists` says that it needs result lists counted separately ("clicks": also by
    what was clicked in them), `saves_model` that its fit can be saved to a file, `gives_verdict` that its fit can be
    judged.
    """

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> Fitted:
        """Learn from a log."""


@runtime_checkable
class Saved(Protocol):
    """A fit that can be saved."""

    def write(self, path: str | Path) -> None:
        """Write it, whole or not at all."""


@runtime_checkable
class Described(Protocol):
    """A fit with a one-sentence summary."""

    summary: ClassVar[str]


@runtime_checkable
class Rated(Protocol):
    """A fit that knows how often people click relevant and other documents. `clickmix explain` shows it."""

    def usual_rates(self, place: Place) -> tuple[float, float] | None:
        """The click rates of documents that are not relevant and of relevant ones; None if clicks say nothing there."""


CORRECTIONS: Family[Correction] = Family(
    "correction", "clickmix.corrections", "clickmix.lab.regression_em", first="mixture"
)


def needs_lists(correction: object) -> Lists:
    """Whether a correction needs result lists, and how: to see what was above, or also which clicks belong together."""
    needed: Lists = getattr(correction, "needs_lists", False)
    return needed


def saves_model(correction: object) -> bool:
    """Whether a correction's fit can be saved."""
    return bool(getattr(correction, "saves_model", False))


def gives_verdict(correction: object) -> bool:
    """Whether a correction's fit can be judged."""
    return bool(getattr(correction, "gives_verdict", False))


def check_positions_only(counts: Counts, *, correction: str) -> None:
    """Refuse context columns for a correction that knows only positions."""
    if counts.context:
        raise SettingError(
            f"{correction} knows only positions, but the counts have context columns: {', '.join(counts.context)}. "
            "Count the log without context columns, or one context at a time."
        )


KEY = ("query_id", "doc_id")
IN_ORDER = f"ORDER BY {listed(KEY)}"
OPTIONAL = ("estimate", "low", "high")  # columns that only some corrections give


def of_query(query_id: object) -> str:
    """SQL that is true for the rows of a query; ids can be numbers or texts."""
    return f"CAST(query_id AS VARCHAR) = {literal(str(query_id))}"


@dataclass(frozen=True)
class Labels(Drawn):
    """query_id, doc_id, relevance, impressions, clicks, low, high: one row per query and document, in order.

    >>> from clickmix import Counts, debias
    >>> labels = debias(Counts.from_arrays(["q", "q"], ["a", "b"], [1, 2], [100, 100], [60, 2]), correction="none")
    >>> labels.relevance.tolist(), labels.clicks.tolist()
    ([0.6, 0.02], [60, 2])

    Corrections with an interval give `low` and `high`; those that are unbiased only before clipping (affine, ips, coec)
    give `estimate`.

    Columns are computed when first used; `write` never brings them into memory. `added_up` is SQL for the labels, in
    any order. `one_cell` is faster SQL for the same, valid if every document has only one cell.
    """

    counts: Counts = field(repr=False)
    added_up: str = field(repr=False)
    one_cell: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """The first labels, if they have been computed: printing a variable must not take an hour."""
        if "columns" in self.__dict__:
            text: str = report().text(self)
            return text
        return "Labels(not computed yet; head(), query(text), columns, write(path), to_pandas(), plot())"

    @cached_property
    def sql(self) -> str:
        """SQL for the labels, in any order."""
        return self.one_cell if self.one_cell and self.counts.one_cell_each() else self.added_up

    @cached_property
    def columns(self) -> Columns:
        """All columns, as numpy arrays."""
        return self.counts.engine.fetch(f"{self.sql} {IN_ORDER}")

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

    @property
    def low(self) -> Floats:
        """The lower end of each label's interval, if the correction gives one."""
        return self._end("low")

    @property
    def high(self) -> Floats:
        """The upper end of each label's interval, if the correction gives one."""
        return self._end("high")

    def _end(self, name: str) -> Floats:
        if name not in self.columns:
            raise InputError(f"{name}: this correction gives labels without intervals. Use one that has them: mixture.")
        return self.columns[name]

    def head(self, most: int = 5) -> Labels:
        """The first labels, in order, computed.

        >>> from clickmix import Counts, debias
        >>> counts = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 2], [100, 100], [60, 2])
        >>> debias(counts, correction="none").head(1)
        query  document  label  impressions  clicks
        q      a          0.60          100      60
        """
        if not (isinstance(most, Integral) and most >= 0):
            raise SettingError(f"head({most!r}): expected a whole number of labels, from 0.")
        first = f"SELECT * FROM ({self.sql}) AS labels {IN_ORDER} LIMIT {int(most)}"
        return self._part(f"SELECT * FROM ({first}) AS first")

    def query(self, query_id: object) -> Labels:
        """The labels of one query, computed; empty if the query is not in the log.

        >>> from clickmix import Counts, debias
        >>> counts = Counts.from_arrays(["red shoes", "hats"], ["a", "b"], [1, 1], [100, 100], [60, 2])
        >>> debias(counts, correction="none").query("red shoes").doc_id.tolist()
        ['a']
        """
        return self._part(f"SELECT * FROM ({self.sql}) AS labels WHERE {of_query(query_id)}")

    def _part(self, sql: str) -> Labels:
        part = Labels(self.counts, sql)
        _ = part.columns
        return part

    def plot(self) -> Plot:
        """The report's figure of how labels are distributed, and the click-through rates they replace."""
        plot: Plot = report().plot_labels(self)
        return plot

    def __len__(self) -> int:
        return len(self.relevance)

    def write(self, path: str | Path, *, progress: Progress | None = None) -> int:
        """Write a labels file (Parquet, CSV or NDJSON, by its suffix) atomically; return the number of labels."""
        engine = self.counts.engine
        if self.one_cell is None or engine.embedded is None:
            return engine.write(f"{self.sql} {IN_ORDER}", str(path), optional=OPTIONAL, progress=progress)
        one_cell, added_up = f"{self.one_cell} {IN_ORDER}", f"{self.added_up} {IN_ORDER}"
        return engine.embedded.write(one_cell, path, key=KEY, otherwise=added_up, progress=progress)

    def to_pandas(self) -> pandas.DataFrame:
        """The labels as a pandas frame."""
        return self._to("pandas")

    def to_polars(self) -> polars.DataFrame:
        """The labels as a polars frame."""
        return self._to("polars")

    def to_arrow(self) -> pyarrow.Table:
        """The labels as an arrow table."""
        return self._to("pyarrow")

    def like(self, frame: Any) -> Any:
        """The labels as the same kind of frame as `frame`; DuckDB relations and Spark frames stay in their session."""
        found = self.counts.engine.frame_like(frame, f"{self.sql} {IN_ORDER}")
        if found is not None:
            return found
        import narwhals as nw  # here, because files do not need it

        native = nw.from_native(frame)
        made = self._to(native.implementation)
        return made.lazy() if isinstance(native, nw.LazyFrame) else made

    def _to(self, backend: Any) -> Any:
        import narwhals as nw

        columns = {key: values.tolist() if values.dtype == object else values for key, values in self.columns.items()}
        return nw.from_dict(columns, backend=backend).to_native()
