"""The report on a log: what was read, how clicks depend on position, what was fitted, and what became of it.

counts, fitted correction -> Page
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.errors import hide_secrets
from clickmix.groups.histogram import Histogram, read_histogram
from clickmix.report.examples import moved_section
from clickmix.report.figures import Axis, Bars, Figure, Line, Panel
from clickmix.report.log_numbers import LabelBins, count_queries, labels_at_hand, read_label_bins, read_moved, thinned
from clickmix.report.mixture_figures import chosen_groups, group_figures, rates_figures, separation_figure
from clickmix.report.pages import Listing, Page, Section
from clickmix.report.summary import fit_sentences, fit_table, verdict_sentences
from clickmix.report.words import cut

MOST_CONTEXTS = 6
MOST_ROWS = 200
MOST_FILES = 5
PROBLEM = (
    "People click what stands at the top: they look there, and they trust the engine. So a click-through rate says as "
    "much about the position as about the document."
)
REMEDY = (
    "clickmix estimates, for every position, how often relevant documents are clicked there and how often others are. "
    "From that it computes how relevant each document is, as far as its clicks can tell: its label, between 0 and 1. A "
    "ranker trained on these labels does not learn to repeat the old order."
)


def log_page(counts: Counts, fitted: Any, *, sources: Sequence[str], correction: str) -> Page:
    """The report on a log and its correction; a correction that is no mixture has fewer sections."""
    histogram = read_histogram(counts)
    with labels_at_hand(fitted.label(counts)) as labels:
        bins, moved = read_label_bins(labels), read_moved(labels)
    mixture = fitted if isinstance(fitted, MixtureFit) else None
    sections = [
        verdict_section(mixture, correction),
        _read_section(counts, histogram, bins, sources),
        _positions_section(histogram, mixture),
        *([_groups_section(mixture, histogram)] if mixture else []),
        _labels_section(bins, mixture),
        moved_section(counts, fitted, moved),
        *([_places_section(mixture)] if mixture else []),
    ]
    return Page("Clicks and relevance", [f"{PROBLEM} {REMEDY}" if mixture else PROBLEM], sections)


def verdict_section(fitted: MixtureFit | None, correction: str) -> Section:
    """Whether the labels can be relied on, in plain words, and what that rests on."""
    if fitted is None:
        text = f"The correction is {correction}, which fits no mixture and so has no verdict on the log."
        return Section("In short", [text])
    verdict, *evidence = verdict_sentences(fitted)
    return Section("In short", [verdict], points=evidence)


def _read_section(counts: Counts, histogram: Histogram, bins: LabelBins, sources: Sequence[str]) -> Section:
    impressions, clicks = counts.totals()
    refused = sum(kind.rows for kind in counts.refused)
    facts = [
        ("impressions", f"{impressions:,}"),
        ("clicks", f"{clicks:,}"),
        ("click-through rate", f"{100 * clicks / impressions:.3g}%"),
        ("queries", f"{count_queries(counts):,}"),
        ("labels", f"{bins.documents:,}"),
        ("positions", f"{len({place.position for place in histogram.places}):,}"),
        ("rows refused", f"{refused:,}"),
    ]
    more = len(sources) - MOST_FILES
    named = ", ".join(cut(hide_secrets(source)) for source in sources[:MOST_FILES])
    read = named + (f" and {more:,} more" if more > 0 else "")
    rows = [(kind.reason, f"{kind.rows:,}", str(kind.examples[0]) if kind.examples else "") for kind in counts.refused]
    table = Listing(
        ("why refused", "rows", "for instance"), rows, "Rows that were left out", numbers=frozenset({1}), cards=True
    )
    meant = "An impression is one document shown once; a click-through rate is clicks divided by impressions."
    return Section("What was read", [f"From {read}. {meant}" if read else meant], facts, tables=[table] if rows else [])


def _position_figure(histogram: Histogram) -> Figure:
    shown, clicked = histogram.total(histogram.impressions), histogram.total(histogram.clicks)
    contexts = sorted({place.context for place in histogram.places}, key=lambda c: (-_sum(histogram, shown, c), c))
    lines = [_position_line(histogram, context, shown, clicked) for context in contexts[:MOST_CONTEXTS]]
    left = len(contexts) - MOST_CONTEXTS
    note = (
        f" Shown are the {MOST_CONTEXTS} contexts with the most impressions; {left:,} are left out." if left > 0 else ""
    )
    return Figure(
        "Click-through rate by position",
        Axis("position", whole=True),
        [Panel(Axis("clicks per impression", low=0, percent=True), lines)],
        note="How often what stands at a position is clicked. It falls with the position even where the documents are "
        "equally good, so it cannot be read as relevance." + note,
    )


def _position_line(histogram: Histogram, context: tuple[str, ...], shown: Any, clicked: Any) -> Line:
    rows = [i for i, place in enumerate(histogram.places) if place.context == context]
    rows = [rows[i] for i in thinned(len(rows), 60)]
    return Line(
        ", ".join(value or "(none)" for value in context),
        [histogram.places[i].position for i in rows],
        [clicked[i] / shown[i] for i in rows],
    )


def _sum(histogram: Histogram, column: Any, context: tuple[str, ...]) -> int:
    return sum(int(column[i]) for i, place in enumerate(histogram.places) if place.context == context)


def _positions_section(histogram: Histogram, fitted: MixtureFit | None) -> Section:
    prose = ["How often people click depends on where a document stands, not only on how good it is."]
    if fitted is not None:
        prose.append(
            "So two things were estimated at every position, from the clicks alone: how often relevant documents are "
            "clicked there, and how often documents that are not relevant are."
            if fitted.grades == 2
            else f"So it was estimated at every position, from the clicks alone, how often documents of each of "
            f"{fitted.grades} grades of relevance are clicked there, from not relevant to most relevant."
        )
    figures = [_position_figure(histogram), *(rates_figures(fitted) if fitted else [])]
    return Section("Clicks depend on the position", prose, figures=figures)


def _groups_section(fitted: MixtureFit, histogram: Histogram) -> Section:
    shown, all_groups = len(chosen_groups(fitted)), len(fitted.groups)
    some = f" Shown are {shown} of {all_groups:,}; the table at the end has more." if shown < all_groups else ""
    humps = (
        "If the documents at a position are of two kinds, there are two humps; the lines show how many of each kind "
        "the fit expects."
        if fitted.grades == 2
        else f"Documents of {fitted.grades} grades make humps that overlap; the lines show what the fit expects."
    )
    prose = (
        f"Above, in grey: how many documents had which click-through rate. {humps} Below: the label that a document "
        "with such a rate gets. Where humps stand apart, the label jumps between them; where they overlap, it rises "
        "slowly, and many labels are unsure." + some
    )
    return Section("Position by position", [prose], figures=group_figures(fitted, histogram))


def _labels_section(bins: LabelBins, fitted: MixtureFit | None) -> Section:
    two = fitted is not None and fitted.grades == 2
    edges = np.linspace(0, 1, len(bins.labels) + 1)
    tenth = len(bins.labels) // 10
    low, high = bins.labels[:tenth].sum() / bins.documents, bins.labels[-tenth:].sum() / bins.documents
    rates = Line("click-through rates", (edges[1:] + edges[:-1]) / 2, bins.rates, colour="vermillion", points=False)
    figure = Figure(
        "Labels, and the click-through rates they replace",
        Axis("label, or click-through rate", 0, 1),
        [Panel(Axis("documents", low=0), [Bars("labels", edges, bins.labels, colour="blue"), rates])],
        note="Sure labels are at the ends: 0 is surely not relevant, 1 surely relevant."
        if two
        else "0 is not relevant, 1 most relevant.",
    )
    between, mean = (
        ("; the others are unsure", ": the share of relevant documents, as far as clicks can tell") if two else ("", "")
    )
    points = [
        f"{low:.0%} of the documents have a label below 0.1, {high:.0%} one of 0.9 or more{between}.",
        f"The mean label is {bins.mean:.3f}{mean}.",
        *([f"The interval of a label is {bins.interval:.2f} wide on average."] if bins.interval is not None else []),
    ]
    figures = [figure, *([separation_figure(fitted)] if fitted else [])]
    return Section("The labels", points=points, figures=figures)


def _places_section(fitted: MixtureFit) -> Section:
    table = fit_table(fitted)
    rows = [tuple(map(_cell, row)) for row in zip(*(column.cells for column in table.columns), strict=True)]
    left = len(rows) - MOST_ROWS
    notes = [f"{left:,} more places are in the model file."] if left > 0 else []
    head = [str(column.header) for column in table.columns]
    numbers = frozenset(i for i, column in enumerate(table.columns) if column.justify == "right")
    listing = Listing(head, rows[:MOST_ROWS], "", notes, numbers)
    prose = (
        "A place is a position, in its context where there is one. "
        "Rates with half a 95% interval where it is known. 'prior' is the mean relevance of documents there, "
        "'separation' the share of the uncertainty about it that clicks remove, 'error' what to expect of labels, "
        "'needed' how many impressions of a document would bring that to 0.1."
    )
    return Section("All places", [prose], points=fit_sentences(fitted), tables=[listing])


def _cell(shown: object) -> str:
    """A cell of the terminal's table; not every font has its sign for places that were fitted together."""
    return "as above" if str(shown) == "〃" else cut(shown)
