"""Results in notebooks: tables as HTML with their own styles, and the report's figures.   results -> HTML, plots

`clickmix.drawn` calls this module by name, so that results of earlier stages can show themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from clickmix.corrections.correction import OPTIONAL, Labels
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.drawn import Plot
from clickmix.evaluate import Table
from clickmix.judging.changes import Moved
from clickmix.judging.verdict import LogVerdict
from clickmix.report.explain import Explanation
from clickmix.report.figures import Figure
from clickmix.report.log_numbers import labels_at_hand, read_label_bins
from clickmix.report.mixture_figures import rates_figures, separation_figure
from clickmix.report.results import VerdictResult, change_results, fit_results, verdict_result
from clickmix.report.rows import Column, LabelInterval, Rows, Value, text_lines
from clickmix.report.sections.labels import labels_figure
from clickmix.report.svg import escaped, figure_svg

FIRST, MOST = 10, 20  # show all labels up to MOST, and the FIRST of more
MOST_PLACES = 20
WIDTH = 80
LABELS = (
    Column("query_id", "text", title="query"),
    Column("doc_id", "text", title="document"),
    Column("relevance", "label", title="label"),
    Column("interval", "interval", title="0 to 1", rank=2),
    Column("impressions", "count", rank=1),
    Column("clicks", "count", rank=1),
)
COLOURS = {"good": "#00684b", "note": "#8a5a00", "bad": "#a8320c"}  # readable on white and, thickened, on black


@singledispatch
def html(result: object) -> str:
    """A result as HTML."""
    return f"<pre>{escaped(repr(result))}</pre>"


@html.register
def _(result: Explanation) -> str:
    cells = [rows_html(result.cells)] if result.cells else []
    texts = map(paragraph, result.sentences)
    notes = map(paragraph, result.notes)
    listed = [rows_html(result.results), *map(paragraph, result.results.notes)]
    return "\n".join([paragraph(result.summary), *listed, *texts, *cells, *notes])


@html.register
def _(result: Labels) -> str:
    rows = label_rows(result)
    return "\n".join([rows_html(rows), *map(paragraph, rows.notes)])


@html.register
def _(result: MixtureFit) -> str:
    results = fit_results(result)
    places = results.places.first(MOST_PLACES)
    more = len(results.places.rows) - len(places.rows)
    left = [paragraph(f"{more:,} more places.")] if more else []
    notes = map(paragraph, results.notes)
    return "\n".join([_verdict(results.verdict), *notes, rows_html(places), *left, *map(paragraph, places.notes)])


@html.register
def _(result: LogVerdict) -> str:
    return _verdict(verdict_result(result))


@html.register
def _(result: Moved) -> str:
    return "\n".join([paragraph(result.sentences()[0]), rows_html(change_results(result).furthest)])


@html.register
def _(result: Table) -> str:
    head, *rows = result.strings()
    columns = tuple(Column(text, "sentence") for text in head)
    return "\n".join([rows_html(Rows(columns, tuple(map(tuple, rows)))), *map(paragraph, result.notes)])


def text(result: Labels) -> str:
    """Labels as text for people: the first ones, and how many there are."""
    rows = label_rows(result)
    return "\n".join([*text_lines(rows, width=WIDTH), *rows.notes])


def label_rows(labels: Labels) -> Rows:
    """The first labels as rows; a note says how many there are."""
    known = "columns" in labels.__dict__
    ((count,),) = [(len(labels),)] if known else labels.counts.engine.rows(f"SELECT count(*) FROM ({labels.sql}) AS l")
    shown = count if count <= MOST else FIRST
    first = {name: values[:shown] for name, values in (labels if known else labels.head(shown)).columns.items()}
    rows = []
    for i, relevance in enumerate(first["relevance"]):
        ends = [float(first[name][i]) for name in OPTIONAL[1:] if name in first]
        interval = LabelInterval(float(relevance), ends[0], ends[1]) if ends else None
        ids = (str(first["query_id"][i]), str(first["doc_id"][i]))
        rows.append((*ids, float(relevance), interval, int(first["impressions"][i]), int(first["clicks"][i])))
    notes = [f"{shown:,} of {count:,} labels."] if count > shown else [] if count else ["No labels."]
    kept = [i for i in range(len(LABELS)) if LABELS[i].kind != "interval" or "low" in first]
    columns = tuple(LABELS[i] for i in kept)
    return Rows(columns, tuple(tuple(row[i] for i in kept) for row in rows), notes=notes)


def plot_labels(labels: Labels) -> Plot:
    """How labels are distributed."""
    with labels_at_hand(labels) as table:
        return plotted([labels_figure(read_label_bins(table), two=False)])


def plot_fit(fitted: MixtureFit) -> Plot:
    """Click rates by position, and how much clicks tell."""
    return plotted([*rates_figures(fitted), separation_figure(fitted)])


def plotted(figures: Sequence[Figure]) -> Plot:
    """Figures as a plot."""
    return Plot(
        tuple(figure.title for figure in figures), tuple(figure_svg(figure, standalone=True) for figure in figures)
    )


def rows_html(rows: Rows) -> str:
    """A table with its own styles, for pages without clickmix's style sheet."""
    head = "".join(
        f'<th style="text-align:{_side(column)}" title="{escaped(column.help)}">{escaped(column.heading)}</th>'
        for column in rows.columns
    )
    body = "".join(
        "<tr>" + "".join(_cell(c, value) for c, value in zip(rows.columns, row, strict=True)) + "</tr>\n"
        for row in rows.rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


def _cell(column: Column, value: Value) -> str:
    if isinstance(value, LabelInterval):
        return f"<td>{_bar(value)}</td>"
    return f'<td style="text-align:{_side(column)}">{escaped(column.text(value))}</td>'


def _bar(interval: LabelInterval) -> str:
    """An interval as a bar, with its numbers for screen readers."""
    width = max(interval.high - interval.low, 0.0)
    box = "position:absolute;top:3px;height:6px"
    return (
        f'<span role="img" aria-label="{interval.low:.2f} to {interval.high:.2f}" title="{interval.low:.2f} to '
        f'{interval.high:.2f}" style="display:inline-block;position:relative;width:120px;height:12px;'
        'background:#8884"><span style="'
        f'{box};left:{100 * interval.low:.1f}%;width:{100 * width:.1f}%;background:#56b4e9"></span>'
        f'<span style="{box};top:0;height:12px;width:3px;left:{98 * interval.value:.1f}%;background:#0072b2"></span>'
        "</span>"
    )


def _verdict(verdict: VerdictResult) -> str:
    items = "".join(f"<li>{escaped(point)}</li>" for point in (*verdict.evidence, f"Next: {verdict.next}"))
    style = f"border-left:6px solid {COLOURS[verdict.tone]};padding-left:8px"
    return f'<p style="{style}"><b>{escaped(verdict.sentence)}</b></p><ul>{items}</ul>'


def paragraph(text: str) -> str:
    """A text as a paragraph of HTML."""
    return f"<p>{escaped(text)}</p>"


def _side(column: Column) -> str:
    return "right" if column.numeric else "left"
