"""A comparison as rows: side by side, which is better than which, what was left out.   Comparison -> rows"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from clickmix.comparing.answer import Answer, answer, judgments_text, more_text
from clickmix.comparing.comparison import Comparison, Row
from clickmix.evaluate.resampling import Resampled
from clickmix.report.rows import Column, Estimate, Rows, Value, percent

PERPLEXITY = Column("perplexity", "perplexity", help="Of held-out clicks: 1 is perfect, 2 is tossing a coin.", rank=1)
NDCG = Column(
    "ndcg",
    "number",
    title="nDCG@10",
    help="Gain 2^(grade - lowest common grade) - 1, over queries with at least two grades, ties in expectation.",
)
SAME_PLACE = Column(
    "same_place",
    "number",
    title="AUC at position",
    help="Of two documents at the same position, how often the better one has the higher label; 0.5 is chance.",
)
PAIRS = Column("pairs", "number", help="Pairs of a query in the right order, ties half.", rank=3)
OVERTURNED = Column("overturned", "share", help="Pairs of a query that production had in the opposite order.", rank=4)
RIGHT = Column("right", "share", title="rightly", help="Of the overturned pairs, how many are right.", rank=5)
ERROR = Column(
    "error",
    "number",
    help="Root mean squared error of labels, from 0 to 1. Click rates and COEC have other scales: compare their order.",
)
SECONDS = Column("seconds", "number", help="To fit and label the whole log, without reading it.", rank=2)
BEATS = Column("better_than", "count", title="better than", help="How many others it beats significantly.", rank=6)
MEASURES = {column.name: column for column in (NDCG, SAME_PLACE, PAIRS, OVERTURNED, RIGHT, ERROR)}
SHOWN = {
    "judgments": ("ndcg", "same_place", "pairs", "overturned", "right"),
    "truth": ("error", "ndcg", "same_place", "pairs"),
    "clicks": (),
}
DECIDING = {"judgments": "ndcg", "truth": "error", "clicks": "bits"}
TITLES = {"ndcg": "nDCG@10", "error": "error", "bits": "bits per impression"}
DIFFERENCES = (
    Column("first", "text"),
    Column("second", "text"),
    Column("difference", "number", help="First minus second."),
    Column("low", "number", help="95% of the resamples lie between low and high.", rank=1),
    Column("high", "number", help="95% of the resamples lie between low and high.", rank=1),
    Column("p", "number", help="Two-sided, by the paired bootstrap.", rank=2),
    Column("better", "text", help="Which of the two is significantly better, with all pairs tested together."),
)
LEFT_OUT = (Column("correction", "text"), Column("reason", "sentence"))


@dataclass(frozen=True, eq=False)
class ComparisonResults:
    """A comparison for people and machines."""

    comparison: Comparison

    @cached_property
    def answer(self) -> Answer:
        """Whether clicks mean relevance, and what to use."""
        return answer(self.comparison)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The answer, what to use, how many more judged queries would decide it, what judgments add, and notes."""
        found = self.answer
        more, judged = more_text(found, self.comparison), judgments_text(self.comparison)
        said = (found.sentence, found.advice, more, judged, *self.comparison.notes, self.agreement, self.held_out)
        return tuple(sentence for sentence in said if sentence)

    @property
    def agreement(self) -> str:
        """What nDCG measures, if anything was measured by it."""
        return f"nDCG@10: {NDCG.help[0].lower()}{NDCG.help[1:]}" if "ndcg" in SHOWN[self.comparison.against] else ""

    @property
    def held_out(self) -> str:
        """Where held-out clicks come from."""
        share = self.comparison.share
        of = "" if share == 1 else f" of a sample of {percent(share)} of the queries"
        rest = f"three quarters of the {self.comparison.dealt}{of}, clicks of the rest"
        return f"Perplexity: parameters and labels from {rest}."

    @cached_property
    def side_by_side(self) -> Rows:
        """A row per contender, best first."""
        comparison = self.comparison
        measures = SHOWN[comparison.against]
        order = {name: i for i, name in enumerate(comparison.measured(DECIDING[comparison.against]))}
        rows = sorted(comparison.rows, key=lambda row: order.get(row.name, len(order)))
        columns = (Column("name", "text", title="labels by"), *(MEASURES[m] for m in measures[:2]), PERPLEXITY)
        columns += (SECONDS, *(MEASURES[m] for m in measures[2:]), BEATS)
        return Rows(columns, tuple(self._row(row, measures) for row in rows))

    def _row(self, row: Row, measures: tuple[str, ...]) -> tuple[Value, ...]:
        values = [self._value(row, measure) for measure in measures]
        perplexity = row.prediction.perplexity if row.prediction else None
        decided = row.name in self.comparison.measured(DECIDING[self.comparison.against])
        beaten = sum(row.name == better for *_, better in self._pairs) if decided else None
        return (row.name, *values[:2], perplexity, row.seconds, *values[2:], beaten)

    def _value(self, row: Row, measure: str) -> Value:
        if measure not in row.measures or math.isnan(row.measures[measure].value):
            return None
        found = self.comparison.interval(row.name, measure)
        return Estimate(found.value, found.margin if math.isfinite(found.margin) else None)

    @cached_property
    def _pairs(self) -> tuple[tuple[str, str, Resampled, str], ...]:
        """Every pair of contenders with the difference in what decides, and which is significantly better."""
        measure = DECIDING[self.comparison.against]
        return tuple(
            (*pair, self.comparison.difference(*pair, measure), self.comparison.better(*pair, measure))
            for pair in itertools.combinations(self.comparison.measured(measure), 2)
        )

    @property
    def differences(self) -> Rows:
        """Every pair of contenders, by the measure that decides."""
        rows = tuple(
            (first, second, found.value, found.low, found.high, found.p, better or None)
            for first, second, found, better in self._pairs
        )
        return Rows(DIFFERENCES, rows, caption=f"Differences in {TITLES[DECIDING[self.comparison.against]]}")

    @property
    def left_out(self) -> Rows:
        """What was not compared, and why."""
        return Rows(LEFT_OUT, tuple((each.name, each.reason) for each in self.comparison.left_out))

    def json(self) -> dict[str, Any]:
        """Raw values for machines."""
        comparison, found = self.comparison, self.answer
        judged = comparison.judged
        return {
            "against": comparison.against,
            "answer": found.name,
            "answer_sentence": found.sentence,
            "advice": found.advice,
            "use": found.use,
            "best": found.best,
            "not_significantly_worse": list(found.as_good),
            "more_judged_queries": found.more_queries,
            "judged_documents": len(judged.query) if judged else 0,
            "judged_queries": len(judged.varied) if judged else 0,
            "lowest_common_grade": judged.lowest if judged else None,
            "held_out": {"dealt": comparison.dealt, "share_of_queries": comparison.share},
            "corrections": self.side_by_side.json(),
            "differences": self.differences.json(),
            "left_out": self.left_out.json(),
            "notes": list(comparison.notes),
        }
