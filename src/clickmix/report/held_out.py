"""Held-out evidence as rows: predicted clicks, two halves, documents that move.   HeldOutEvidence -> rows"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from clickmix.judging.held_out import HeldOutEvidence, Move, held_out_sentences
from clickmix.report.rows import Column, Estimate, Rows, Value

PREDICTIONS = (
    Column("predicted_by", "text", title="clicks predicted by"),
    Column("perplexity", "perplexity", help="Of held-out clicks: 1 is perfect, 2 is tossing a coin."),
    Column(
        "bits_saved",
        "number",
        title="bits saved",
        help="Per 1,000 held-out impressions, by the model over this row; ± half a 95% interval over queries.",
    ),
)
HALVES = (Column("measure", "text"), Column("value", "number"))
MOVING = (
    Column("positions", "text"),
    Column("documents", "count", help="Documents seen at both positions.", rank=2),
    Column("observed", "number", help="Their click rate at the lower position over that at the upper one."),
    Column("low", "number", help="Low to high is the 95% interval of the observed ratio.", rank=1),
    Column("high", "number", help="Low to high is the 95% interval of the observed ratio.", rank=1),
    Column("expected", "number", help="The same ratio, as the model expects it."),
)


@dataclass(frozen=True)
class HeldOutResults:
    """Held-out evidence for people and machines: a sentence on each part, and its rows."""

    sentences: tuple[str, ...]
    predictions: Rows
    halves: Rows
    moving: Rows
    dealt: str
    share: float

    def json(self) -> dict[str, Any]:
        """Raw values for `--json`."""
        return {
            "dealt": self.dealt,
            "share_of_queries": self.share,
            "predictions": self.predictions.json(),
            "halves": {row["measure"]: row["value"] for row in self.halves.json()},
            "moving": self.moving.json(),
        }


def held_out_results(evidence: HeldOutEvidence) -> HeldOutResults:
    """The evidence in words and rows."""
    own = evidence.prediction
    others = ((other.name, other.perplexity, Estimate(*own.gain_over(other))) for other in evidence.baselines)
    return HeldOutResults(
        tuple(held_out_sentences(evidence)),
        Rows(PREDICTIONS, ((own.name, own.perplexity, None), *others), caption="Held-out clicks"),
        Rows(HALVES, tuple(_half_rows(evidence)), caption="Labels of two halves of the log"),
        Rows(MOVING, tuple(map(_move_row, evidence.moving)), caption="Documents seen at neighbouring positions"),
        evidence.dealt,
        evidence.share,
    )


def _move_row(move: Move) -> tuple[Value, ...]:
    ratios = (value if math.isfinite(value) else None for value in (move.observed, move.low, move.high))
    return f"{move.above} to {move.below}", move.documents, *ratios, move.expected


def _half_rows(evidence: HeldOutEvidence) -> list[tuple[Value, ...]]:
    halves = evidence.halves
    if halves is None:
        return []
    return [
        ("correlation", halves.correlation),
        ("correlation beyond position", halves.beyond_position),
        ("mean difference", halves.difference),
        ("documents", halves.documents),
    ]
