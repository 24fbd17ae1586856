"""Tables: the Scores of several rankers in, one table as text, Markdown, LaTeX or JSON out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clickmix.drawn import Drawn
from clickmix.errors import InputError, SettingError
from clickmix.evaluate.comparisons import (
    PAIRED,
    Interval,
    Outcomes,
    Sample,
    TTest,
    bootstrap_interval,
    check_comparable,
    paired_t_test,
    values_of,
    wins_ties_losses,
)
from clickmix.evaluate.scores import NoRelevant, Scores

Test = Callable[[Any, Any], TTest]
DIGITS = 4
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "†": r"\dag{}"}
_LATEX |= {character: "\\" + character for character in "&%$#_{}"}
_LATEX_MARKS = {"": "", "*": "$^*$", "†": r"$^\dagger$"}


@dataclass(frozen=True)
class Cell:
    """One mean over `n` queries or runs, with its interval, and its comparison with the baseline if there is one.

    `without_relevant` queries had no relevant document, and `no_relevant` says how they count.

    >>> from clickmix.evaluate import evaluate, tabulate
    >>> scores = evaluate([3, 2, 1], [0, 1, 0], ["a", "a", "a"], measure="mrr")
    >>> cell = tabulate({"mine": [scores]}).cells[0][0]
    >>> cell.mean, cell.n
    (0.5, 1)
    """

    mean: float
    n: int
    without_relevant: int | None = None
    no_relevant: NoRelevant | None = None
    interval: Interval | None = None
    test: TTest | None = None
    outcomes: Outcomes | None = None

    @property
    def mark(self) -> str:
        """The mark of the test; empty without one."""
        return self.test.mark if self.test else ""


@dataclass(frozen=True, repr=False)
class Table(Drawn):
    """Means by ranker (rows, the outer tuple of cells) and measure (columns); tests are against the `baseline`.

    >>> from clickmix.evaluate import tabulate
    >>> print(tabulate({"old": {"ndcg@10": [0.4, 0.5]}, "new": {"ndcg@10": [0.6, 0.7]}}), end="")
    ranker  ndcg@10
    ---------------
    old     0.4500
    new     0.6500
    """

    rankers: tuple[str, ...]
    measures: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    baseline: str | None
    head: str = "ranker"  # the head of the first column

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the numbers: queries without relevant documents, the test, the abbreviations."""
        cells = [cell for row in self.cells for cell in row]
        notes = [note for pair in zip(self.measures, self.cells[0], strict=True) if (note := _without_relevant(*pair))]
        if test := next((cell.test for cell in cells if cell.test), None):
            notes.append(f"* p < .01, † p < .1: different from {self.baseline} ({test.kind}).")
        if any(cell.outcomes for cell in cells):
            notes.append(f"w/t/l: wins, ties and losses against {self.baseline}.")
        return tuple(notes)

    def strings(self) -> list[list[str]]:
        """The table as rows of plain text, the head first."""
        return self._rows(lambda cell, best: _number(cell.mean) + cell.mark, name=str)

    def text(self, *, width: int | None = None) -> str:
        """Columns of plain text, then the notes; columns beyond `width` follow below, with the same row names."""
        rows = self._rows(lambda cell, best: _number(cell.mean) + (cell.mark or " "), name=str)
        return "\n".join([*folded_lines(rows, width=width), *_below(self.notes)]) + "\n"

    def markdown(self) -> str:
        """A Markdown table, the best of each column in bold, then the notes."""
        head, *body = self._rows(_markdown_mean, name=escape_markdown)
        rule = ["---", *["---:"] * (len(head) - 1)]
        lines = ["| " + " | ".join(row) + " |" for row in (head, rule, *body)]
        return "\n".join([*lines, *_below([escape_markdown(note) for note in self.notes])]) + "\n"

    def latex(self) -> str:
        """A LaTeX tabular (for the package booktabs), with the best of each column in bold, and notes as comments."""
        rows = self._rows(_latex_mean, name=_escape_latex)
        head, *body = [" & ".join(row) + r" \\" for row in rows]
        start = r"\begin{tabular}{l" + "r" * (len(rows[0]) - 1) + "}"
        lines = [
            *(f"% {note}" for note in self.notes),
            start,
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        """Everything in the table as a JSON document; an infinite t is null."""
        rows = [
            {"ranker": ranker, "measure": measure, **_fields(cell)}
            for ranker, row in zip(self.rankers, self.cells, strict=True)
            for measure, cell in zip(self.measures, row, strict=True)
        ]
        document = {"baseline": self.baseline, "results": rows}
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _rows(self, mean: Callable[[Cell, bool], str], *, name: Callable[[str], str]) -> list[list[str]]:
        """The table as rows of strings, the head first; intervals and outcomes have their own columns."""
        columns = list(zip(*self.cells, strict=True))
        best = [_number(max(cell.mean for cell in column)) for column in columns]
        rows = [[name(self.head)]] + [[name(ranker)] for ranker in self.rankers]
        for measure, column, top in zip(self.measures, columns, best, strict=True):
            _add(rows, name(measure), [mean(cell, _number(cell.mean) == top) for cell in column])
            if level := next((cell.interval.level for cell in column if cell.interval), None):
                _add(rows, name(f"{100 * level:g} % interval"), [_interval(cell.interval) for cell in column])
            if any(cell.outcomes for cell in column):
                _add(rows, "w/t/l", [str(cell.outcomes or "") for cell in column])
        return rows


def tabulate(
    results: Mapping[str, Sequence[Scores] | Mapping[str, Sample]],
    *,
    baseline: str | None = None,
    test: Test = paired_t_test,
    rng: np.random.Generator | None = None,
    head: str = "ranker",
) -> Table:
    """A table with one row per ranker: its Scores, one per measure; or samples of run means by name of measure.

    With a `baseline` (one of the rankers) every other row is tested against it: `paired_t_test` over queries or paired
    runs, `student_t_test` over independent runs. With an `rng`, means get bootstrap intervals. `head` is the head of
    the first column, if rows are not rankers.

    >>> table = tabulate({"old": {"mrr": [0.4, 0.5, 0.5]}, "new": {"mrr": [0.6, 0.7, 0.8]}}, baseline="old")
    >>> print(table, end="")
    ranker      mrr  w/t/l
    ----------------------
    old     0.4667
    new     0.7000†  3/0/0
    <BLANKLINE>
    * p < .01, † p < .1: different from old (paired t-test).
    w/t/l: wins, ties and losses against old.
    """
    if not results:
        raise InputError("No results: expected at least one ranker with its scores.")
    samples = {_checked_name(ranker): _by_measure(given) for ranker, given in results.items()}
    _check_columns(samples)
    if baseline is not None and baseline not in samples:
        raise SettingError(f"baseline: unknown ranker {baseline!r}. The rankers are {', '.join(samples)}.")
    cells = []
    for ranker, row in samples.items():
        others = samples[baseline] if baseline not in (None, ranker) else {}
        cells.append(tuple(_cell(row[measure], others.get(measure), test=test, rng=rng) for measure in row))
    return Table(tuple(samples), tuple(next(iter(samples.values()))), tuple(cells), baseline, head)


def _cell(sample: Sample, other: Sample | None, *, test: Test, rng: np.random.Generator | None) -> Cell:
    values = values_of(sample, "results")
    cell = Cell(
        mean=float(values.mean()),
        n=len(values),
        without_relevant=sample.without_relevant if isinstance(sample, Scores) else None,
        no_relevant=sample.no_relevant if isinstance(sample, Scores) else None,
        interval=bootstrap_interval(sample, rng=rng) if rng else None,
    )
    if other is None:
        return cell
    found = test(sample, other)
    return replace(cell, test=found, outcomes=wins_ties_losses(sample, other) if found.kind == PAIRED else None)


def _by_measure(given: Sequence[Scores] | Mapping[str, Sample]) -> dict[str, Sample]:
    if isinstance(given, Mapping):
        return {_checked_name(measure): sample for measure, sample in given.items()}
    found: dict[str, Sample] = {str(scores.measure): scores for scores in given}
    if len(found) != len(given):
        raise InputError(
            f"{', '.join(str(scores.measure) for scores in given)}: a measure appears twice. Give each measure once."
        )
    return found


def _check_columns(samples: Mapping[str, Mapping[str, Sample]]) -> None:
    """Raise unless all rankers have the same measures on the same queries: other means cannot be compared."""
    first = next(iter(samples.values()))
    if not first:
        raise InputError("No results: expected at least one measure of each ranker.")
    for ranker, row in samples.items():
        if list(row) != list(first):
            raise InputError(f"{ranker}: measured by {', '.join(row)}; the first ranker by {', '.join(first)}.")
        for measure in first:
            check_comparable(row[measure], first[measure])


def _without_relevant(measure: str, cell: Cell) -> str:
    """A note on queries without relevant documents, or empty if the numbers are not of queries."""
    if cell.without_relevant is None:
        return ""
    queries = cell.n + (cell.without_relevant if cell.no_relevant == "leave-out" else 0)
    counted = {"zero": "counted as 0", "one": "counted as 1"}.get(str(cell.no_relevant), "left out")
    without = cell.without_relevant
    return f"{measure}: {queries} queries" + (
        f", {without} of them without relevant documents ({counted})." if without else "."
    )


def _checked_name(name: str) -> str:
    if not name or not name.isprintable():
        raise SettingError(f"{name!r} cannot name a row or column of a table. Use printable text on one line.")
    return name


def _fields(cell: Cell) -> dict[str, Any]:
    fields: dict[str, Any] = {"mean": cell.mean, "n": cell.n}
    if cell.without_relevant is not None:
        fields |= {"without_relevant": cell.without_relevant, "no_relevant": cell.no_relevant}
    if cell.interval:
        fields["interval"] = {"low": cell.interval.low, "high": cell.interval.high, "level": cell.interval.level}
    if test := cell.test:
        t = test.t if math.isfinite(test.t) else None
        fields["test"] = {"kind": test.kind, "baseline_mean": test.second, "t": t, "degrees": test.degrees, "p": test.p}
    if cell.outcomes:
        fields |= {"wins": cell.outcomes.wins, "ties": cell.outcomes.ties, "losses": cell.outcomes.losses}
    return fields


def _below(notes: Sequence[str]) -> list[str]:
    return ["", *notes] if notes else []


def _add(rows: list[list[str]], head: str, column: list[str]) -> None:
    for row, text in zip(rows, [head, *column], strict=True):
        row.append(text)


def folded_lines(
    rows: Sequence[Sequence[str]], *, width: int | None = None, left: frozenset[int] = frozenset({0})
) -> list[str]:
    """Draw rows of texts, the head first; columns beyond `width` follow in tables below, which repeat the first column.

    Columns in `left` are aligned left. An interval stays beside its number.

    >>> print("\\n".join(folded_lines([["a", "bbbb", "cccc"], ["x", "1", "2"]], width=10)))
    a  bbbb
    -------
    x     1
    <BLANKLINE>
    a  cccc
    -------
    x     2
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    blocks: list[list[int]] = [[0]]
    for i in range(1, len(widths)):
        beside = [i] + [j for j in range(i + 1, i + 3) if j < len(widths) and _glued(rows[0][j])]
        if _glued(rows[0][i]) or width is None or sum(widths[j] + 2 for j in [*blocks[-1], *beside]) - 2 <= width:
            blocks[-1].append(i)
        elif len(blocks[-1]) > 1:
            blocks.append([0, i])
        else:
            blocks[-1].append(i)  # wider than the terminal by itself
    lines: list[str] = []
    for block in blocks:
        head, *body = [
            "  ".join(row[i].ljust(widths[i]) if i in left else row[i].rjust(widths[i]) for i in block).rstrip()
            for row in rows
        ]
        rule = "-" * (sum(widths[i] for i in block) + 2 * (len(block) - 1))
        lines += [*([""] if lines else []), head, rule, *body]
    return lines


def _glued(head: str) -> bool:
    return head == "w/t/l" or head.endswith(" % interval")


def _number(value: float) -> str:
    return f"{value:.{DIGITS}f}"


def _interval(interval: Interval | None) -> str:
    return f"{_number(interval.low)} to {_number(interval.high)}" if interval else ""


def _markdown_mean(cell: Cell, best: bool) -> str:
    return (f"**{_number(cell.mean)}**" if best else _number(cell.mean)) + escape_markdown(cell.mark)


def _latex_mean(cell: Cell, best: bool) -> str:
    return (rf"\textbf{{{_number(cell.mean)}}}" if best else _number(cell.mean)) + _LATEX_MARKS[cell.mark]


def escape_markdown(text: str) -> str:
    """A text, escaped so that Markdown shows it unchanged."""
    return re.sub(r"([\\`*_\[\]<>|&~])", r"\\\1", text)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
