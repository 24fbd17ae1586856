"""The page on a comparison: the answer, contenders side by side, labels against grades.   results -> Page"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clickmix.comparing.results import DECIDING, TITLES, ComparisonResults
from clickmix.evaluate.agreement import JudgedDocuments
from clickmix.report.figures import Axis, Figure, Line, Panel
from clickmix.report.glossary import GLOSSARY
from clickmix.report.pages import Banner, Page, Section
from clickmix.report.rows import command_text, file_name
from clickmix.types import Floats

BINS = 8
NORMAL = 1.959963984540054
DRAWN = ("mixture", "none", "coec-smoothed")  # drawn along with the best one
PROSE = (
    "Every correction that this log allows, on the same log. Held-out clicks show which predicts clicks best. Only "
    "judgments can say whether clicks mean relevance."
)
TERMS = {
    "perplexity": "2^(-mean log2 of the probability of what happened), over held-out impressions. 1 is perfect.",
    "nDCG@10": "How close the order of the first ten is to the best one: gain 2^(grade - lowest common grade) - 1 over "
    "log2(position + 1), as a share of the best order's. Ties count with their expected value.",
    "production order": "Documents in the order of the mean position at which people saw them.",
    "significantly": "The interval of the difference does not contain 0. It is widened, because you may pick any two: "
    "95% of the resamples of queries lie inside the intervals of all pairs.",
}


def comparison_page(
    results: ComparisonResults, *, sources: Sequence[str] = (), command: Sequence[str] = (), date: str = ""
) -> Page:
    """Make the page; write it with `write_page`. It shows file names of sources and command, not folders."""
    comparison, found = results.comparison, results.answer
    judged = comparison.judged
    facts = [("corrections compared", f"{sum(row.kind == 'correction' for row in comparison.rows):,}")]
    if judged is not None:
        facts += [
            ("judged documents", f"{len(judged.query):,}"),
            ("queries with two grades", f"{len(judged.varied):,}"),
        ]
    answer, *more = results.sentences
    banner = Banner(answer, found.tone, facts, found.advice, [text for text in more if text != found.advice])
    sections = [
        Section("Side by side", rows=[results.side_by_side]),
        *_drawn(results),
        *([_calibration(results, judged)] if judged is not None else []),
        Section("Which is better than which", rows=[results.differences], folded=True),
        *([Section("Left out", rows=[results.left_out], folded=True)] if comparison.left_out else []),
    ]
    read = ", ".join(map(file_name, sources))
    made = [(name, text) for name, text in (("Log", read), ("Date", date), ("Command", command_text(command))) if text]
    return Page("Do clicks mean relevance?", [PROSE], sections, banner, made, dict(GLOSSARY) | TERMS)


def _drawn(results: ComparisonResults) -> list[Section]:
    """The measure that decides, as differences to the best row: rows whose intervals contain 0 are as good."""
    comparison = results.comparison
    measure = DECIDING[comparison.against]
    best, *others = comparison.measured(measure) or ("",)
    if not others or not comparison.enough(measure):
        return []
    found = [
        (row, comparison.difference(name, best, measure).value, *comparison.widened(name, best, measure))
        for row, name in enumerate(others, 2)
    ]
    apart = np.stack([found, np.full((len(found), 4), np.nan)], axis=1).reshape(-1, 4)  # points, not a line
    marks = [
        Line("row of the table, with its interval", *apart.T),
        Line(best, [1, len(others) + 1], [0, 0], colour="grey", points=False),
    ]
    title = TITLES[measure]
    note = (
        f"Each row minus {best}, the best, paired by query. If an interval contains 0, that row is not significantly "
        f"worse. From row 2 of the table: {', '.join(others)}."
    )
    axes = Axis("row of the table", whole=True), Axis(f"difference in {title}")
    figure = Figure(f"{title}: how far from the best", axes[0], [Panel(axes[1], marks)], note)
    return [Section("How sure the order is", figures=[figure])]


def _calibration(results: ComparisonResults, judged: JudgedDocuments) -> Section:
    """Mean grade of documents by label and by the label's rank, for the best contender and the usual ones."""
    comparison = results.comparison
    labelled = [row for row in map(comparison.row, comparison.measured("ndcg")) if len(row.relevance)]  # best first
    rows = [row for i, row in enumerate(labelled) if i == 0 or row.name in DRAWN]
    if not rows:
        return Section("Labels against grades", ["No labels to draw."])
    known = Axis("true relevance" if results.comparison.against == "truth" else "mean grade")
    by_rank = Figure(
        "Mean grade by rank of the label",
        Axis("share of documents with a lower label", 0, 1, percent=True),
        [Panel(known, [_line(row.name, _ranks(row.relevance), judged.grade) for row in rows])],
        note="A line that rises means that higher labels have higher grades; a flat one, that labels say nothing. Bars "
        "are 95% intervals. Documents with the same label are one point.",
    )
    by_label = Figure(
        "Mean grade by label",
        Axis("label", 0, 1),
        [Panel(known, [_line(row.name, row.relevance, judged.grade) for row in rows])],
        note="Documents in groups of about the same size, by label.",
    )
    return Section("Labels against grades", figures=[by_rank, by_label])


def _ranks(relevance: Floats) -> Floats:
    """The share of documents with a lower label; ties get their mean."""
    values, code, number = np.unique(relevance, return_inverse=True, return_counts=True, equal_nan=True)
    middle = (np.cumsum(number) - number / 2) / len(relevance)
    return np.where(np.isnan(values[code]), np.nan, middle[code])


def _line(name: str, labels: Floats, grade: Floats) -> Line:
    known = ~np.isnan(labels)
    x, y = labels[known], grade[known]
    bins = np.minimum((BINS * _ranks(x)).astype(np.int64), BINS - 1)  # documents with the same label stay together
    number = np.bincount(bins)
    used = number > 0
    n = number[used]
    mean_x, mean, square = (np.bincount(bins, values)[used] / n for values in (x, y, y * y))
    margin = NORMAL * np.sqrt(np.maximum(square - mean**2, 0.0) / n)
    return Line(name, mean_x, mean, mean - margin, mean + margin)
