"""Evidence that no model can argue with: held-out clicks, two halves, documents that move.   fit, counts -> evidence

It is evidence about clicks. Whether clicks mean relevance, only judgments can say: see `clickmix compare`. What the fit
has chosen on the whole log stays (how many grades, what differs between queries and documents). Its parameters are
fitted again to each part, from where they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.groups.quarters import Dealt, deal
from clickmix.judging.held_out.baselines import baseline_rates
from clickmix.judging.held_out.cells import quarter_cells
from clickmix.judging.held_out.halves import Agreement, agreement
from clickmix.judging.held_out.moves import Move, moves
from clickmix.judging.held_out.prediction import Prediction, held_out_bits
from clickmix.types import Floats

HELD_OUT = 3  # the quarter whose clicks are predicted from the other three
TRAINING = tuple(quarter for quarter in range(4) if quarter != HELD_OUT)
OWN = "this model"
MOST_CELLS = 60_000  # of the sampled queries
MOST_IMPRESSIONS = 400_000  # of theirs that are read again to deal out sessions
MOST_READ = 50_000_000  # impressions of a log that is read again for that; of a larger one, counts are dealt


class Learned(Protocol):
    """What was learned from a part of a log."""

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats | None:
        """The probability of a click in each of the asked cells, given what was seen; None if it predicts none."""

    def usual_click_rates(self, seen: PlacedCells) -> Floats:
        """The click rate of each seen cell that the document's grades make usual there."""

    def relevance(self, seen: PlacedCells) -> Floats:
        """The label of every document that was seen; anything for others."""


@dataclass(frozen=True)
class HeldOutEvidence:
    """What a log says about a fit, whatever its model says.

    `dealt` are the sessions or impressions, of this `share` of the queries, that the evidence comes from.
    `prediction` is that of the fit, `baselines` those it is compared with. `halves` compares the labels of two halves,
    `moving` the click rates of a document at neighbouring positions.
    """

    dealt: Dealt
    share: float
    prediction: Prediction
    baselines: tuple[Prediction, ...]
    halves: Agreement | None
    moving: tuple[Move, ...]


def held_out_evidence(
    fitted: object, counts: Counts, *, most_cells: int = MOST_CELLS, most_impressions: int = MOST_IMPRESSIONS
) -> HeldOutEvidence | None:
    """The evidence on a fit, from its log or a sample of the log's queries.

    None where the fit is no model of clicks at places: another correction, a cascade, or groups fitted by themselves.
    """
    if not isinstance(fitted, MixtureFit) or fitted.model is None or fitted.examination != "pbm":
        return None
    return evidence(counts, fitted.fitted_again, most_cells=most_cells, most_impressions=most_impressions)


def evidence(
    counts: Counts,
    learn: Callable[[PlacedCells], Learned],
    *,
    most_cells: int = MOST_CELLS,
    most_impressions: int = MOST_IMPRESSIONS,
    seed: int = 0,
) -> HeldOutEvidence | None:
    """Deal the log, or a sample of its queries, into quarters; learn from some, and look at the others.

    None where a part is empty, or no clicks are predicted.
    """
    quarters = deal(counts, most_cells=most_cells, most_impressions=most_impressions, most_read=MOST_READ, seed=seed)
    parts = quarter_cells(quarters)
    first, second = parts[0].added_up(parts[1]), parts[2].added_up(parts[3])
    seen, asked = first.added_up(parts[2]), parts[HELD_OUT]
    if not (len(first.place) and len(second.place) and len(asked.place)):
        return None
    learned, hidden = learn(seen), asked.hidden()
    rates = learned.click_rates(seen, hidden)
    if rates is None:
        return None
    one, other = (learn(half).relevance(half) for half in (first, second))
    cells = first.added_up(second)
    return HeldOutEvidence(
        quarters.dealt,
        quarters.share,
        held_out_bits(OWN, rates, asked),
        tuple(held_out_bits(name, simple, asked) for name, simple in baseline_rates(seen, hidden)),
        agreement(one, other, first, second),
        moves(cells, learned.usual_click_rates(cells)),
    )
