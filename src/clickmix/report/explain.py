"""Explanations: a query's documents and their labels, and why a document has its label.   counts, fit -> Explanation"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import duckdb

from clickmix.corrections.correction import Fitted, of_query
from clickmix.counts.count import checked_normalise, spelling_of
from clickmix.counts.counts import Counts
from clickmix.drawn import Drawn
from clickmix.engines.engine import Engine
from clickmix.engines.sql import listed, literal
from clickmix.errors import InputError, printable, several
from clickmix.log.files import unreadable
from clickmix.log.source import Source
from clickmix.report.evidence import SeenCell, read_cells
from clickmix.report.judgments import judged_sentence
from clickmix.report.results import mixture_of
from clickmix.report.rows import Column, LabelInterval, Rows, Value, cut, label_text, text_lines

MOST_DOCUMENTS = 30  # documents to list: those shown most near the top
MOST_TEXTS = 5_000  # texts to search for near spellings; those that share most pairs of letters come first
MOST_PAIRS = 30
MOST_NEAR = 3
MOST_NAMED = 3  # positions in a sentence
MOSTLY = 0.6  # share of a document's impressions that positions in a sentence must have
WIDTH = 80
RESULTS = (
    Column("mean_position", "tenths", title="position", help="Where it was shown, on average."),
    Column("doc_id", "text", title="document"),
    Column("relevance", "label", title="label"),
    Column("interval", "interval", title="0 to 1", help="The label between 0 and 1, and its 95% interval."),
    Column("place_by_label", "count", title="by label", help="Its place if results were sorted by label.", rank=3),
    Column("impressions", "count", title="shown", help="How often it was shown.", rank=1),
    Column("clicks", "count", help="How often it was clicked."),
    Column("if_relevant", "tenths", help="Clicks that a relevant document would have there.", rank=2),
    Column("if_not", "tenths", help="Clicks that a document that is not relevant would have there.", rank=2),
)
CELLS = (
    Column("place", "text", help="A position, in its context where there is one."),
    Column("impressions", "count"),
    Column("clicks", "count"),
    Column("click_rate", "rate"),
    Column("if_relevant", "rate", help="The click rate of relevant documents there."),
    Column("if_not", "rate", help="The click rate of documents that are not relevant there."),
)
COUNTED = ("impressions", "clicks")


@dataclass(frozen=True, repr=False)
class Explanation(Drawn):
    """A query's documents with their labels; with `doc_id` also where that document was shown, in words and by place.

    >>> import clickmix as cm
    >>> counts = cm.Counts.from_arrays(["hats"] * 2, ["a", "b"], [1, 2], [100, 100], [60, 2])
    >>> cm.explain(counts, "hats", "b", correction="none")
    Query 'hats': 2 documents, 200 impressions, 62 clicks.
    position  document  label  by label  shown  clicks
         1.0  a          0.60         1    100      60
         2.0  b          0.02         2    100       2
    <BLANKLINE>
    Document 'b': label 0.02.
    Shown 100 times, at position 2; clicked 2 times.
    place       impressions  clicks  click rate
    position 2          100       2          2%
    """

    query_id: str
    doc_id: str | None
    documents: int
    impressions: int
    clicks: int
    results: Rows
    cells: Rows | None = None
    sentences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "\n".join(self.lines(width=WIDTH))

    def lines(self, *, width: int) -> list[str]:
        """The explanation as lines of a terminal of this width."""
        tables = [text_lines(table, width=width) if table else [] for table in (self.results, self.cells)]
        apart = [""] if self.sentences else []
        return [self.summary, *tables[0], *self.results.notes, *apart, *self.sentences, *tables[1], *self.notes]

    @property
    def summary(self) -> str:
        """The query and its sums, in one sentence."""
        sums = [several(self.impressions, "impression"), several(self.clicks, "click")] if self.impressions else []
        return f"Query {_quoted(self.query_id)}: {', '.join([several(self.documents, 'document'), *sums])}."

    def json(self) -> dict[str, Any]:
        """Raw values for `--json`."""
        names = ("query_id", "doc_id", "documents", "impressions", "clicks")
        return {
            **{name: getattr(self, name) for name in names},
            "results": self.results.json(),
            "cells": self.cells.json() if self.cells else [],
            "sentences": list(self.sentences),
            "notes": [*self.results.notes, *self.notes],
        }


@dataclass(frozen=True)
class _Document:
    doc_id: str
    relevance: float
    low: float | None
    high: float | None
    impressions: int
    clicks: int
    place_by_label: int
    mean_position: float | None = None


def explain_query(counts: Counts, fitted: Fitted, query_id: object, doc_id: object = None) -> Explanation:
    """Explain the labels that a fit gives to a query of its log, and to one of its documents."""
    engine, labels = counts.engine, fitted.label(counts)
    query_id = spelling_of(query_id, counts.table, engine, counts.normalise)
    kept = engine.keep(f"SELECT * FROM ({labels.sql}) AS labels WHERE {of_query(query_id)}")
    try:
        means = (
            "SELECT doc_id, CAST(sum(CAST(position AS DOUBLE) * impressions) AS DOUBLE) / sum(impressions) AS shown_at"
            ", CAST(sum(CAST(impressions AS DOUBLE) / position) AS DECIMAL(38, 6)) AS seen "
            f"FROM {counts.table} WHERE {of_query(query_id)} GROUP BY doc_id"
        )
        table = f"(SELECT l.*, shown_at, seen FROM {kept} AS l JOIN ({means}) AS m ON l.doc_id = m.doc_id) AS listed"
        documents, sums = _read(engine, table, set(engine.types(kept)) | {"shown_at"}, doc_id)
    finally:
        engine.forget(kept)
    _check_found(documents, engine, counts.table, query_id, doc_id)
    cells = read_cells(counts, fitted, query_id, [document.doc_id for document in documents])
    by_document: dict[str, list[SeenCell]] = {}
    for cell in cells:
        by_document.setdefault(cell.doc_id, []).append(cell)
    rows = tuple(_row(document, _expected(by_document[document.doc_id])) for document in documents)
    results = _without_blanks(Rows(RESULTS, rows, notes=_more(sums[0], len(documents))))
    notes = _on_differences(fitted)
    if doc_id is None:
        return Explanation(str(query_id), None, *sums, results, notes=notes)
    chosen = next(document for document in documents if document.doc_id == str(doc_id))
    own = by_document[chosen.doc_id]
    seen = Rows(CELLS, tuple(_cell_row(cell, counts.context) for cell in own))
    said = judged_sentence(getattr(fitted, "judged", None), query_id, doc_id)
    times = [several(number, "time") for number in (chosen.impressions, chosen.clicks)]
    shown = f"Shown {times[0]}, {_where(own)}; clicked {times[1]}."
    sentences = (_label_sentence(chosen), *said, shown, *_expected_sentences(chosen, own))
    return Explanation(str(query_id), str(doc_id), *sums, results, _without_blanks(seen), sentences, notes)


def explain_labels(
    labels: Source, engine: Engine, query_id: object, doc_id: object = None, *, normalise: str | Sequence[str] = ()
) -> Explanation:
    """Say what a file or table of labels holds about a query. Labels have no positions, so no evidence by position."""
    ignored = checked_normalise(normalise)
    try:
        return _explained_labels(labels, engine, spelling_of(query_id, labels.table(), engine, ignored), doc_id)
    except duckdb.Error as error:
        raise unreadable(str(labels), error) from None


def _explained_labels(labels: Source, engine: Engine, query_id: object, doc_id: object) -> Explanation:
    numbers = [name for name in ("relevance", *COUNTED, "low", "high") if name in labels.types]
    casts = [f"CAST({name} AS {'BIGINT' if name in COUNTED else 'DOUBLE'}) AS {name}" for name in numbers]
    table = f"(SELECT query_id, doc_id, {listed(casts)} FROM {labels.table()} WHERE relevance IS NOT NULL) AS labels"
    of, counted = of_query(query_id), "impressions" in labels.types
    documents, sums = _read(engine, f"(SELECT * FROM {table} WHERE {of}) AS listed", set(numbers), doc_id)
    _check_found(documents, engine, table, query_id, doc_id, counted=counted)
    rows = [_row(document, None, counted=counted) for document in documents]
    chosen = [document for document in documents if doc_id is not None and document.doc_id == str(doc_id)]
    hint = f"For evidence by position: clickmix explain LOG --query {shlex.quote(str(query_id))}"
    return Explanation(
        str(query_id),
        str(doc_id) if chosen else None,
        *sums,
        _without_blanks(Rows(RESULTS, tuple(rows), notes=_more(sums[0], len(documents)))),
        sentences=tuple(map(_label_sentence, chosen)),
        notes=(f"These are labels. {hint}",),
    )


def _read(
    engine: Engine, table: str, columns: set[str], doc_id: object
) -> tuple[list[_Document], tuple[int, int, int]]:
    """The documents shown most near the top (without positions: first by label) and the one asked for; the sums."""
    label = "round(CAST(relevance AS DECIMAL(38, 12)), 9)"
    low, high, n, c, mean = (
        name if name in columns else "NULL" for name in ("low", "high", "impressions", "clicks", "shown_at")
    )
    asked = "FALSE" if doc_id is None else f"doc = {literal(str(doc_id))}"
    order = "round(CAST(shown_at AS DECIMAL(38, 12)), 6), doc_id" if mean != "NULL" else f"{label} DESC, doc_id"
    chosen = f"seen DESC, {order}" if mean != "NULL" else order  # shown once at the top is not shown much
    rows = engine.rows(
        "SELECT * FROM (SELECT CAST(doc_id AS VARCHAR) AS doc, CAST(relevance AS DOUBLE) AS relevance, "
        f"{low} AS low, {high} AS high, {n} AS n, {c} AS c, "
        f"row_number() OVER (ORDER BY {label} DESC, doc_id) AS by_label, {mean} AS mean_position, "
        f"row_number() OVER (ORDER BY {order}) AS place, row_number() OVER (ORDER BY {chosen}) AS most, "
        "count(*) OVER () AS documents, "
        f"sum({n}) OVER () AS all_n, sum({c}) OVER () AS all_c FROM {table}) AS ranked "
        f"WHERE most <= {MOST_DOCUMENTS} OR {asked} ORDER BY place"
    )
    documents = [
        _Document(doc, float(label), _float(low), _float(high), int(n or 0), int(c or 0), int(by), _float(at))
        for doc, label, low, high, n, c, by, at, *_ in rows
    ]
    sums = (int(rows[0][10]), int(rows[0][11] or 0), int(rows[0][12] or 0)) if rows else (0, 0, 0)
    return documents, sums


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _row(document: _Document, expected: tuple[float, float] | None, *, counted: bool = True) -> tuple[Value, ...]:
    low, high = document.low, document.high
    interval = None if low is None or high is None else LabelInterval(document.relevance, low, high)
    relevant, other = (None, None) if expected is None else (expected[1], expected[0])
    numbers = (document.place_by_label, *((document.impressions, document.clicks) if counted else (None, None)))
    return document.mean_position, document.doc_id, document.relevance, interval, *numbers, relevant, other


def _cell_row(cell: SeenCell, context: Sequence[str]) -> tuple[Value, ...]:
    other, relevant = cell.usual or (None, None)
    rate = cell.clicks / cell.impressions
    return cell.place.describe(context), cell.impressions, cell.clicks, rate, relevant, other


def _expected(cells: Sequence[SeenCell]) -> tuple[float, float] | None:
    """Expected clicks in these cells, of a document that is not relevant and of a relevant one; None if unknown."""
    usual = [(cell.impressions, cell.usual) for cell in cells if cell.usual is not None]
    if len(usual) < len(cells):
        return None
    return sum(n * rates[0] for n, rates in usual), sum(n * rates[1] for n, rates in usual)


def _without_blanks(rows: Rows) -> Rows:
    """Leave out columns without any value: labels can lack intervals, and fits can lack rates."""
    kept = [i for i in range(len(rows.columns)) if any(row[i] is not None for row in rows.rows)]
    values = tuple(tuple(row[i] for i in kept) for row in rows.rows)
    return replace(rows, columns=tuple(rows.columns[i] for i in kept), rows=values)


def _label_sentence(document: _Document) -> str:
    interval = ""
    if document.low is not None and document.high is not None:
        interval = f" ({label_text(document.low)} to {label_text(document.high)} with 95% probability)"
    return f"Document {_quoted(document.doc_id)}: label {label_text(document.relevance)}{interval}."


def _where(cells: Sequence[SeenCell]) -> str:
    """The positions where a document was shown most, in words."""
    at: dict[int, int] = {}
    for cell in cells:
        at[cell.place.position] = at.get(cell.place.position, 0) + cell.impressions
    by_impressions = sorted(at, key=lambda position: (-at[position], position))
    named: list[int] = []
    while sum(at[position] for position in named) < MOSTLY * sum(at.values()):
        named.append(by_impressions[len(named)])
    if len(at) == 1:
        return f"at position {named[0]:,}"
    if len(named) > MOST_NAMED:
        return f"at {len(at):,} positions from {min(at):,} to {max(at):,}"
    *first, last = (f"{position:,}" for position in sorted(named))
    mostly = "mostly " if len(named) < len(at) else ""
    return f"{mostly}at position{'s' if first else ''} {', '.join(first)}{' and ' if first else ''}{last}"


def _expected_sentences(document: _Document, cells: Sequence[SeenCell]) -> list[str]:
    """How often a relevant and an irrelevant document would be clicked at the same places, where the fit knows."""
    telling = [cell for cell in cells if cell.usual is not None]
    expected = _expected(telling)
    if not telling or expected is None:
        return []
    clicked = f"clicked {_about(expected[1])}, an irrelevant one {_about(expected[0])}."
    shown = sum(cell.impressions for cell in telling)
    if shown == document.impressions:
        return [f"A relevant document there would be {clicked}"]
    seen = f"{shown:,} of these impressions, with {several(sum(cell.clicks for cell in telling), 'click')}, say more"
    return [f"{seen}: a relevant document there would be {clicked} At its other places clicks say nothing."]


def _about(clicks: float) -> str:
    """An expected number of clicks.

    >>> _about(89.7), _about(2.04), _about(1234.0), _about(0.96), _about(0.01)
    ('about 90 times', 'about 2 times', 'about 1,200 times', 'about once', 'almost never')
    """
    if clicks < 0.1:
        return "almost never"
    rounded = float(f"{clicks:.1g}") if clicks < 1 else float(f"{clicks:.2g}")
    if rounded == 1:
        return "about once"
    text = f"{rounded:,.0f}" if rounded >= 10 or rounded == int(rounded) else f"{rounded:.1f}"
    return f"about {text} times"


def _more(documents: int, shown: int) -> tuple[str, ...]:
    return (f"{shown:,} of {documents:,} documents are listed, those shown most.",) if shown < documents else ()


def _on_differences(fitted: Fitted) -> tuple[str, ...]:
    """Say that expected clicks are for a typical query, if the fit lets queries differ."""
    fit = mixture_of(fitted)
    if fit is None or fit.model is None or not fit.model.effects.numbers:
        return ()
    return ("Expected clicks are those in a typical query. Labels also allow for how this query differs from others.",)


def _check_found(
    documents: Sequence[_Document],
    engine: Engine,
    table: str,
    query_id: object,
    doc_id: object,
    *,
    counted: bool = True,
) -> None:
    if not documents:
        raise _not_there(engine, "query", query_id, table, "TRUE", counted=counted)
    if doc_id is not None and str(doc_id) not in {document.doc_id for document in documents}:
        raise _not_there(engine, "doc", doc_id, table, of_query(query_id), counted=counted)


def _not_there(engine: Engine, what: str, text: object, table: str, where: str, *, counted: bool = True) -> InputError:
    near = near_spellings(engine, f"{what}_id", str(text), table, where, counted=counted)
    *first, last = map(_quoted, near or [""])
    advice = f"Did you mean {' or '.join(filter(None, [', '.join(first), last]))}?" if near else "Check the spelling."
    noun = "query" if what == "query" else "document"
    place = "in the log" if what == "query" else "among the documents of this query"
    return InputError(f"{noun} {_quoted(text)}: not {place}. {advice}")


def near_spellings(
    engine: Engine, column: str, text: str, table: str, where: str, *, counted: bool = True
) -> list[str]:
    """Texts of a column that are spelled almost like `text`, whatever their case."""
    shown = "sum(impressions)" if counted else "count(*)"
    apart = max(2, len(text) // 3)
    pairs = sorted({pair.lower() for pair in map("".join, pairwise(text)) if pair.isalnum()})[:MOST_PAIRS]
    shared = " + ".join(f"CASE WHEN lower(found) LIKE '%{pair}%' THEN 1 ELSE 0 END" for pair in pairs)
    rows = engine.rows(
        f"SELECT found FROM (SELECT CAST({column} AS VARCHAR) AS found, {shown} AS shown FROM {table} WHERE {where} "
        f"GROUP BY 1) AS texts WHERE length(found) BETWEEN {len(text) - apart} AND {len(text) + apart} "
        f"ORDER BY {f'{shared} DESC, ' if pairs else ''}shown DESC, found LIMIT {MOST_TEXTS}"
    )
    by_folded: dict[str, str] = {}
    for (found,) in rows:
        by_folded.setdefault(str(found).casefold(), str(found))
    near = difflib.get_close_matches(text.casefold(), by_folded, MOST_NEAR, cutoff=0.7)
    return [by_folded[folded] for folded in near]


def _quoted(text: object) -> str:
    return f"'{printable(cut(text))}'"
