"""Evidence that no model can argue with: held-out clicks, two halves, documents that move.   counts -> Evidence

It is evidence about clicks. Whether clicks mean relevance, only judgments can say: see `clickmix compare`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clickmix.corrections.click_rates import PlacedCells, predicted_rates
from clickmix.corrections.coec_smoothed import SmoothedClicksOverExpected
from clickmix.corrections.correction import Correction, Fitted
from clickmix.corrections.ctr_smoothed import SmoothedRate
from clickmix.corrections.none import NoCorrection
from clickmix.counts.counts import Counts
from clickmix.errors import ClickmixError
from clickmix.groups.quarters import MOST_CELLS, MOST_IMPRESSIONS, Dealt, Quarters, deal
from clickmix.judging.held_out.cells import placed_cells, without_context
from clickmix.judging.held_out.halves import Agreement, agreement
from clickmix.judging.held_out.moves import Move, moves
from clickmix.judging.held_out.prediction import Prediction, held_out_bits

HELD_OUT = 3  # the quarter whose clicks are predicted from the other three
TRAINING = tuple(quarter for quarter in range(4) if quarter != HELD_OUT)
HALVES = ((0, 1), (2, 3))
BASELINES: tuple[tuple[str, Callable[[], Correction]], ...] = (
    ("the position's click rate", NoCorrection),
    ("smoothed click-through rate", SmoothedRate),
    ("smoothed COEC", SmoothedClicksOverExpected),
)


@dataclass(frozen=True)
class HeldOutEvidence:
    """What a log says about a correction, whatever its model says.

    `dealt` are the sessions or impressions, of this `share` of the queries, that the evidence comes from.
    `prediction` is that of the correction, None where it predicts no clicks; `baselines` those it is compared with.
    `halves` compares the labels of two halves, `moving` the click rates of a document at neighbouring positions.
    `missing` says why something could not be had.
    """

    dealt: Dealt
    share: float
    prediction: Prediction | None
    baselines: tuple[Prediction, ...]
    halves: Agreement | None
    moving: tuple[Move, ...]
    missing: tuple[str, ...] = ()


def evidence(
    counts: Counts,
    correction: Correction,
    *,
    most_cells: int = MOST_CELLS,
    most_impressions: int = MOST_IMPRESSIONS,
    seed: int = 0,
) -> HeldOutEvidence:
    """Deal the log, or a sample of its queries, into quarters; learn from some, and look at the others."""
    quarters = deal(counts, most_cells=most_cells, most_impressions=most_impressions, seed=seed)
    training, test = quarters.counts(*TRAINING), quarters.counts(HELD_OUT)
    seen, asked = placed_cells(training, test)
    missing: list[str] = []
    fit = _fitted(correction, training, missing)
    rates = predicted_rates(fit, seen, asked)
    prediction = None if rates is None else held_out_bits("this correction", rates, asked)
    plain = without_context(training)
    baselines: list[Prediction] = []
    for name, make in BASELINES:
        rates = predicted_rates(_fitted(make(), plain, missing), seen, asked)
        if rates is not None:
            baselines.append(held_out_bits(name, rates, asked))
    return HeldOutEvidence(
        quarters.dealt,
        quarters.share,
        prediction,
        tuple(baselines),
        _halves(quarters, correction, missing),
        _moving(seen, asked, fit),
        tuple(missing),
    )


def _fitted(correction: Correction, counts: Counts, missing: list[str]) -> Fitted | None:
    """The fit, or None with the reason among what is `missing`: a part of a log can be too small for a correction."""
    try:
        return correction.fit(counts)
    except ClickmixError as error:
        missing.append(str(error))
        return None


def _halves(quarters: Quarters, correction: Correction, missing: list[str]) -> Agreement | None:
    labels = []
    for half in HALVES:
        counts = quarters.counts(*half)
        fit = _fitted(correction, counts, missing)
        if fit is None:
            return None
        labels.append(fit.label(counts))
    return agreement(*labels)


def _moving(seen: PlacedCells, asked: PlacedCells, fit: Fitted | None) -> tuple[Move, ...]:
    """The moves in all quarters, beside the click rates of the fit to three of them."""
    parts = (seen, asked)
    rates = [found for part in parts if (found := predicted_rates(fit, seen, part)) is not None]
    return moves(parts, rates or None)
