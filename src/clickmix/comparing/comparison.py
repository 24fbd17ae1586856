"""Compare corrections on one log, against judgments or the truth.   log, judgments -> Comparison"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clickmix.comparing.contenders import Contender, DealtLog, Field, NotCompared, run_all
from clickmix.comparing.crossed import CROSSED, HELP, crossed_labels
from clickmix.corrections.click_rates import position_rates
from clickmix.corrections.correction import CORRECTIONS
from clickmix.counts import MOST_CONTEXTS
from clickmix.counts.count import BadRows, count
from clickmix.counts.counts import Counts
from clickmix.counts.judgments import JudgedTable, read_judgments
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import choose_engine, embedded
from clickmix.errors import ClickmixError, InputError, SettingError
from clickmix.evaluate.agreement import JudgedDocuments
from clickmix.evaluate.resampling import Bootstrap, Measured, Resampled
from clickmix.judging.changes import open_labels
from clickmix.judging.held_out import Prediction, held_out_bits
from clickmix.log.layout import LAYOUTS, Layout
from clickmix.log.open import split_options
from clickmix.registry import check_known
from clickmix.types import CorrectionName, Floats, Frame, LayoutName, Paths, Spelling, Table

if TYPE_CHECKING:
    from clickmix.comparing.results import ComparisonResults

PRODUCTION = "production order"
FEWEST_QUERIES = 20  # resamples of fewer say nothing about other queries
LOWER_IS_BETTER = ("bits", "error")
AGREEMENT = ("ndcg", "pairs", "same_place", "overturned", "right")


@dataclass(frozen=True, eq=False)
class Row:
    """One contender: what it is, its seconds, its held-out prediction, its measures and its labels.

    `kind` is correction, order (of production), judged (labels with judgments) or labels (given). `relevance` are its
    labels of the judged documents, from 0 to 1; nan for documents without one.
    """

    name: str
    help: str
    kind: str
    seconds: float | None
    prediction: Prediction | None
    measures: Mapping[str, Measured] = field(default_factory=dict)
    relevance: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Comparison:
    """All contenders on one log. `against` says what they are measured by: judgments, truth, or clicks alone.

    `judged` are the judged documents that the log shows, None without judgments; `notes` are about them. `dealt` and
    `share` say where held-out clicks come from.

    >>> import numpy as np
    >>> from clickmix import Counts, compare
    >>> ids = np.arange(200)
    >>> counts = Counts.from_arrays(ids // 4, ids, 1 + ids % 4, [50] * 200, np.where(ids % 3 == 0, 25, 3))
    >>> compared = compare(counts, corrections=["coec-smoothed"])
    >>> compared.measured("bits")
    ('coec-smoothed', 'coec', 'production order', 'none')
    """

    rows: tuple[Row, ...]
    left_out: tuple[NotCompared, ...]
    against: str
    judged: JudgedDocuments | None
    notes: tuple[str, ...]
    dealt: str
    share: float
    seed: int

    def __str__(self) -> str:
        """The table and the answer, 80 columns wide."""
        from clickmix.report.rows import text_lines

        return "\n".join([*text_lines(self.results.side_by_side, width=80), *self.results.sentences])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from clickmix.report.notebook import paragraph, rows_html

        sentences = "".join(map(paragraph, self.results.sentences))
        return f"{rows_html(self.results.side_by_side)}\n{sentences}"

    @cached_property
    def results(self) -> ComparisonResults:
        """The answer in sentences, and rows for terminal, HTML and JSON."""
        from clickmix.comparing.results import ComparisonResults

        return ComparisonResults(self)

    def write(
        self, path: str | Path, *, sources: Sequence[str] = (), command: Sequence[str] = (), date: str = ""
    ) -> None:
        """Write a report (.html) or all figures (.json), whole or not at all; `sources` and `command` are shown."""
        from clickmix.comparing.page import comparison_page
        from clickmix.report.pages import write_page
        from clickmix.report.rows import json_text
        from clickmix.storage.atomic import write_atomically

        if Path(path).suffix.lower() == ".json":
            write_atomically(path, json_text(self.results.json()).encode())
        else:
            write_page(comparison_page(self.results, sources=sources, command=command, date=date), path)

    def row(self, name: str) -> Row:
        """The contender of that name."""
        return next(row for row in self.rows if row.name == name)

    def interval(self, name: str, measure: str) -> Resampled:
        """A measure of one contender, with its bootstrap interval over queries."""
        return self._resamples[measure].interval(self._measured(self.row(name), measure))

    def difference(self, first: str, second: str, measure: str) -> Resampled:
        """The measure of the first minus that of the second, paired by query."""
        one, other = (self._measured(self.row(name), measure) for name in (first, second))
        return self._resamples[measure].difference(one, other)

    def better(self, first: str, second: str, measure: str) -> str:
        """Which of two is significantly better, or empty. Corrected for looking at all pairs."""
        if not self.enough(measure):
            return ""
        low, high = self.widened(first, second, measure)
        if not (low > 0 or high < 0):
            return ""
        return first if (low > 0) != (measure in LOWER_IS_BETTER) else second

    def widened(self, first: str, second: str, measure: str) -> tuple[float, float]:
        """The interval of a difference, widened so that the intervals of all pairs hold at once."""
        one, other = (self._measured(self.row(name), measure) for name in (first, second))
        return self._resamples[measure].ends(one, other, self._tail(measure))

    def _tail(self, measure: str) -> float:
        if measure not in self._tails:
            all_of_them = [self._measured(self.row(name), measure) for name in self.measured(measure)]
            self._tails[measure] = self._resamples[measure].tail(all_of_them)
        return self._tails[measure]

    @cached_property
    def _tails(self) -> dict[str, float]:
        return {}

    def enough(self, measure: str) -> bool:
        """Whether there are enough queries to say that a difference is significant."""
        bits = next((len(row.prediction.bits) for row in self.rows if row.prediction), 0)
        judged = len(self.judged.varied) if self.judged else 0
        return (bits if measure == "bits" else judged) >= FEWEST_QUERIES

    def measured(self, measure: str) -> tuple[str, ...]:
        """The contenders that have a measure, best first."""
        found = [row for row in self.rows if (row.prediction if measure == "bits" else measure in row.measures)]
        higher_is_better = measure not in LOWER_IS_BETTER
        order = sorted(found, key=lambda row: self._measured(row, measure).value, reverse=higher_is_better)
        return tuple(row.name for row in order)

    def _measured(self, row: Row, measure: str) -> Measured:
        if measure == "bits":
            if row.prediction is None:
                raise InputError(f"{row.name} predicts no clicks.")
            return Measured(row.prediction.bits, row.prediction.impressions)
        return row.measures[measure]

    @cached_property
    def _resamples(self) -> Mapping[str, Bootstrap]:
        """The same resamples for all contenders: of held-out queries for bits, of judged ones for the rest."""
        held_out = next((len(row.prediction.bits) for row in self.rows if row.prediction), 0)
        judged = Bootstrap(self.judged.queries if self.judged else 0, seed=self.seed)
        return {"bits": Bootstrap(held_out, seed=self.seed), **dict.fromkeys((*AGREEMENT, "error"), judged)}


def compare(
    log: Paths | Frame | Counts,
    *,
    judgments: Table | None = None,
    truth: Table | None = None,
    labels: Table | Sequence[Table] = (),
    features: Table | None = None,
    corrections: Sequence[CorrectionName | str] = (),
    format: LayoutName | str | Layout = "auto",
    context: str | Sequence[str] = (),
    max_contexts: int = MOST_CONTEXTS,
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRows = "fail",
    normalise: str | Sequence[Spelling] = (),
    memory: str | None = None,
    seed: int = 0,
    stage: Callable[[str], None] = lambda title: None,
    **options: Any,
) -> Comparison:
    """Compare every correction that a log allows: held-out clicks, agreement with judgments or truth, and time.

    `judgments` has the columns query_id, doc_id and grade, on any scale; `truth` the columns query_id, doc_id and
    relevance. `labels` are labels from anywhere, one more row each. `features` adds corrections that need them.
    `corrections` names those to compare with the simple ones, which always take part; all by default. `stage` is
    called with the name of each step.

    >>> import numpy as np
    >>> from clickmix import Counts, compare
    >>> ids = np.arange(200)
    >>> counts = Counts.from_arrays(ids // 4, ids, 1 + ids % 4, [50] * 200, np.where(ids % 3 == 0, 25, 3))
    >>> compared = compare(counts, corrections=["coec-smoothed"])
    >>> "coec-smoothed" in [row.name for row in compared.rows]
    True
    """
    if judgments is not None and truth is not None:
        raise SettingError("compare: pass judgments or the truth, not both.")
    if seed < 0:
        raise SettingError(f"seed={seed}: expected a whole number from 0.")
    for name in corrections:
        CORRECTIONS[name]  # refuses unknown names
    check_known(options, compare, LAYOUTS)
    layout, _ = split_options(format, options)
    chosen = log.engine if isinstance(log, Counts) else choose_engine(log=log, memory=memory)
    engine = embedded(chosen, of="compare")
    given = [labels] if isinstance(labels, str) or not isinstance(labels, Sequence) else list(labels)
    opened = [(_shown(each), open_labels(each, engine)) for each in given]  # complain before the log is read

    def counted(lists: Any) -> Counts:
        if isinstance(log, Counts):
            if lists and log.by_list is None:
                raise InputError("these counts have no result lists, which this correction needs.")
            return log
        return count(
            log,
            format=layout,
            columns=columns,
            context=() if lists else context,
            max_contexts=max_contexts,
            bad_rows=bad_rows,
            normalise=normalise,
            lists=lists,
            engine=engine,
        )

    stage("reading")
    whole = counted(False)
    known, judged, notes = None, None, []
    if judgments is not None or truth is not None:
        known = read_judgments(
            judgments if truth is None else truth, whole, column="grade" if truth is None else "relevance"
        )
        judged, notes = _documents(known, whole, engine), known.sentences()
    field, parts = run_all(
        lambda lists: counted(lists) if lists else whole, chosen=corrections, features=features, seed=seed, stage=stage
    )
    stage("measuring")
    rows = [_production(parts, judged)]
    rows += [_correction(each, known, judged, engine, truth=truth is not None) for each in field.contenders]
    if known is not None and judged is not None and truth is None:
        rows += _crossed(field, known, judged, engine, seed=seed)
    for name, source in opened:
        table = engine.keep(f"SELECT query_id, doc_id, CAST(relevance AS DOUBLE) AS relevance FROM {source.table()}")
        rows.append(_given(name, table, known, judged, engine, notes, truth=truth is not None))
    notes += [f"{each.name} is left out: {each.reason}" for each in field.left_out if each.name in corrections]
    against = "judgments" if judgments is not None else "truth" if truth is not None else "clicks"
    return Comparison(tuple(rows), tuple(field.left_out), against, judged, tuple(notes), parts.dealt, parts.share, seed)


def _shown(labels: Any) -> str:
    return f"labels: {Path(labels).name}" if isinstance(labels, str | Path) else "labels"


def _documents(known: JudgedTable, counts: Counts, engine: DuckDB) -> JudgedDocuments:
    """Judged documents that people saw, sorted by their ids as text."""
    columns = engine.fetch(
        "SELECT dense_rank() OVER (ORDER BY q) - 1 AS query, grade, position FROM "
        f"(SELECT q, d, grade FROM {known.table} WHERE shown) JOIN (SELECT CAST(query_id AS VARCHAR) AS q, "
        "CAST(doc_id AS VARCHAR) AS d, sum(CAST(position AS DOUBLE) * impressions) / sum(impressions) AS position "
        f"FROM {counts.table} GROUP BY query_id, doc_id) USING (q, d) ORDER BY q, d"
    )
    return JudgedDocuments(columns["query"], columns["grade"].astype(np.float64), columns["position"])


def _production(parts: DealtLog, judged: JudgedDocuments | None) -> Row:
    """Documents in the order of their mean position; its prediction is the click rate of the position."""
    rates = position_rates(parts.seen)[parts.asked.place]
    prediction = held_out_bits(PRODUCTION, rates, parts.asked)
    measures = dict(judged.measures(-judged.position)) if judged else {}
    for turned in ("overturned", "right"):
        measures.pop(turned, None)  # it cannot overturn itself
    return Row(PRODUCTION, "The mean position; no clicks.", "order", None, prediction, measures)


def _correction(
    each: Contender, known: JudgedTable | None, judged: JudgedDocuments | None, engine: DuckDB, *, truth: bool
) -> Row:
    row = Row(each.name, each.help, "correction", each.seconds, each.prediction)
    if known is None or judged is None:
        return row
    estimate = "estimate" if "estimate" in engine.types(each.table) else "relevance"
    scores, relevance = _labelled(each.table, estimate, known, engine)
    return _measured(row, scores, relevance, judged, truth=truth)


def _crossed(field: Field, known: JudgedTable, judged: JudgedDocuments, engine: DuckDB, *, seed: int) -> list[Row]:
    """The mixture with judgments, if the mixture takes part."""
    for mixture in (each for each in field.contenders if each.name == "mixture"):
        begun = time.perf_counter()
        try:
            labels, fold = crossed_labels(mixture, known, engine, seed=seed)
        except ClickmixError as error:
            field.left_out.append(NotCompared(CROSSED, str(error)))
            return []
        seconds = mixture.seconds + time.perf_counter() - begun
        # Labels of different folds can be on different scales, so documents are at the same place within a fold only.
        apart = replace(judged, position=judged.position + fold * (2 + judged.position.max()))
        return [_measured(Row(CROSSED, HELP, "judged", seconds, None), labels, labels, apart, truth=False)]
    return []


def _given(
    name: str,
    table: str,
    known: JudgedTable | None,
    judged: JudgedDocuments | None,
    engine: DuckDB,
    notes: list[str],
    *,
    truth: bool,
) -> Row:
    """Labels from elsewhere; judged documents without one come last."""
    row = Row(name, "Labels you supplied.", "labels", None, None)
    if known is None or judged is None:
        return row
    scores, relevance = _labelled(table, "relevance", known, engine)
    missing = int(np.isnan(scores).sum())
    if missing:
        notes.append(f"{name}: no label for {missing:,} of the judged documents. They are put last.")
    return _measured(row, np.where(np.isnan(scores), -1.0, scores), relevance, judged, truth=truth)


def _labelled(table: str, score: str, known: JudgedTable, engine: DuckDB) -> tuple[Floats, Floats]:
    """Scores that order the judged documents, and their labels; nan for documents without one."""
    columns = engine.fetch(
        f"SELECT coalesce(score, 'nan'::DOUBLE) AS score, coalesce(relevance, 'nan'::DOUBLE) AS relevance FROM "
        f"(SELECT q, d FROM {known.table} WHERE shown) LEFT JOIN (SELECT CAST(query_id AS VARCHAR) AS q, "
        f"CAST(doc_id AS VARCHAR) AS d, CAST({score} AS DOUBLE) AS score, CAST(relevance AS DOUBLE) AS relevance "
        f"FROM {table}) USING (q, d) ORDER BY q, d"
    )
    return columns["score"], columns["relevance"]


def _measured(row: Row, scores: Floats, relevance: Floats, judged: JudgedDocuments, *, truth: bool) -> Row:
    measures = dict(judged.measures(scores))
    if truth:
        error = np.nan_to_num((relevance - judged.grade) ** 2)
        documents = (~np.isnan(relevance)).astype(np.float64)
        squares, labelled = (np.bincount(judged.query, values, judged.queries) for values in (error, documents))
        measures["error"] = Measured(squares, labelled, root=True)
    return replace(row, measures=measures, relevance=relevance)
