"""Held-out evidence as rows: predicted clicks, two halves, documents that move.   HeldOutEvidence -> rows"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from clickmix.judging.held_out.evidence import HeldOutEvidence
from clickmix.judging.held_out.prediction import Prediction
from clickmix.report.rows import Column, Estimate, Rows, Value
from clickmix.report.words import percent

ABOUT_CLICKS = "This is evidence about clicks. Whether clicks mean relevance, only judgments can say: clickmix compare."
PREDICTIONS = (
    Column("predicted_by", "text", title="clicks predicted by"),
    Column("perplexity", "perplexity", help="Of held-out clicks: 1 is perfect, 2 is tossing a coin."),
    Column(
        "bits_saved",
        "number",
        title="bits saved",
        help="Per 1,000 held-out impressions, by the correction over this row; ± half a 95% interval over queries.",
    ),
)
HALVES = (
    Column("measure", "text", title="labels of two halves of the log"),
    Column("value", "number"),
)
MOVING = (
    Column("positions", "text"),
    Column("documents", "count", help="Documents seen at both positions.", rank=2),
    Column("observed", "number", help="Their click rate at the lower position over that at the upper one."),
    Column("low", "number", help="The observed ratio lies between low and high with 95%.", rank=1),
    Column("high", "number", help="The observed ratio lies between low and high with 95%.", rank=1),
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
    return HeldOutResults(
        tuple(_sentences(evidence)),
        Rows(PREDICTIONS, tuple(_prediction_rows(evidence)), notes=(ABOUT_CLICKS,)),
        Rows(HALVES, tuple(_half_rows(evidence))),
        Rows(
            MOVING,
            tuple(
                (
                    f"{move.above} to {move.below}",
                    move.documents,
                    *map(_finite, (move.observed, move.low, move.high)),
                    move.expected,
                )
                for move in evidence.moving
            ),
            caption="Documents seen at neighbouring positions",
        ),
        evidence.dealt,
        evidence.share,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _prediction_rows(evidence: HeldOutEvidence) -> list[tuple[Value, ...]]:
    own = evidence.prediction
    rows: list[tuple[Value, ...]] = [(own.name, own.perplexity, None)] if own else []
    return [*rows, *((other.name, other.perplexity, _saved(own, other)) for other in evidence.baselines)]


def _saved(own: Prediction | None, other: Prediction) -> Estimate | None:
    return Estimate(*own.gain_over(other)) if own else None


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


def _sentences(evidence: HeldOutEvidence) -> list[str]:
    where = "" if evidence.share == 1 else f" of a sample of {percent(evidence.share)} of the queries"
    said = []
    own = evidence.prediction
    if own and evidence.baselines:
        best = min(evidence.baselines, key=lambda other: other.perplexity)
        saved, margin = own.gain_over(best)
        how = "better than" if saved > margin else "worse than" if saved < -margin else "about as well as"
        said.append(
            f"From three quarters of the {evidence.dealt}{where}, the clicks of the rest are predicted {how} by "
            f"{best.name}: perplexity {own.perplexity:.4f} against {best.perplexity:.4f}."
        )
    halves = evidence.halves
    if halves is not None and halves.correlation is not None:
        beyond = "" if halves.beyond_position is None else f" ({halves.beyond_position:.2f} beyond position)"
        said.append(
            f"Labels made from two halves of the log have a correlation of {halves.correlation:.2f}{beyond} and differ "
            f"by {halves.difference:.2f} on average."
        )
    known = [move for move in evidence.moving if move.expected is not None]
    if known:
        outside = [move for move in known if not move.low <= (move.expected or 0) <= move.high]
        said.append(
            f"Of {len(known)} pairs of neighbouring positions, the click rates of documents seen at both differ from "
            f"what the model expects at {len(outside)}."
        )
    return [*said, *evidence.missing]
