"""Evidence that does not rest on a model: held-out clicks, two halves, documents that move.   fit, counts -> evidence

It is evidence about clicks. Only judgments can say whether clicks mean relevance: see `clickmix compare`. The choices
that were made on the whole log stay (how many grades, what differs between queries and documents). The parameters are
fitted to each part again, starting from those of the whole log. The groups of a cascade depend on clicks, so every part
finds its own.

    perplexity = 2^(-mean over held-out impressions of log2 P(what happened))
1 is perfect, 2 is tossing a coin. Margins are half 95% intervals over queries: those of a sum over independent,
identically distributed queries, which need no resampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from clickmix.corrections.click_rates import PlacedCells, position_rates, quarter_cells
from clickmix.corrections.empirical_bayes import BetaPrior, expected_rates, fit_beta, fit_gamma, posterior_rates
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.errors import several
from clickmix.groups.places import Place, join_small, rows_of_groups
from clickmix.groups.sample import Dealt, Quarters, deal
from clickmix.types import Floats, Ints

HELD_OUT = 3  # the quarter whose clicks are predicted from the other three
TRAINING = tuple(quarter for quarter in range(4) if quarter != HELD_OUT)
HALVES = (0, 1), (2, 3)
OWN = "this model"
MOST_CELLS = 60_000  # cells of the sampled queries
MOST_IMPRESSIONS = 400_000  # impressions of these queries to read again, to deal out sessions
MOST_READ = 50_000_000  # a log with more impressions is not read again: its counts are dealt out instead
LEAST_RATE = 1e-5  # rates closer to 0 or 1 count as this: no fit is that sure of a single click
FIRST_PAGE, FAR_STEP = 20, 1.05  # positions with their own prior; further down, those within this factor share one
MOST_OF_GROUP = 4_000  # distinct (impressions, clicks) that a prior is fitted to
FEWEST_CLICKS = 10  # clicks at two neighbouring positions together; with fewer, a ratio says nothing
NORMAL = 1.959963984540054  # the 97.5% quantile
ABOUT_CLICKS = (
    "This is evidence about clicks. Only human judgments can show whether clicks mean relevance: "
    "clickmix compare LOG --judgments FILE."
)


class Learned(Protocol):
    """What was learned from a part of a log."""

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats | None:
        """The probability of a click in each asked cell, given the seen ones; None if it predicts no clicks."""

    def usual_click_rates(self, seen: PlacedCells) -> Floats:
        """The usual click rate in each seen cell, given the document's grades."""

    def relevance(self, seen: PlacedCells) -> Floats:
        """The label of every seen document; the other values do not matter."""


@dataclass(frozen=True)
class HeldOutEvidence:
    """What a log says about a fit, whatever its model assumes.

    The evidence comes from sessions or impressions (`dealt`) of a `share` of the queries. `prediction` is that of the
    fit, `baselines` are those it is compared with. `halves` compares the labels of two halves, `moving` the click rates
    of documents at neighbouring positions.
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

    None if the fit has no model of clicks: another correction, or groups fitted separately at their positions.
    """
    if isinstance(fitted, MixtureFit) and fitted.steps:
        return _cascade_evidence(fitted, counts, most_cells=most_cells, most_impressions=most_impressions)
    if not isinstance(fitted, MixtureFit) or fitted.model is None:
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
    """Deal the log, or a sample of its queries, into quarters; learn from some, and test on the others.

    None if a part is empty, or nothing predicts clicks.
    """
    quarters = deal(counts, most_cells=most_cells, most_impressions=most_impressions, most_read=MOST_READ, seed=seed)
    split = _Split.of(quarters)
    if split is None:
        return None
    learned = learn(split.seen)
    rates = learned.click_rates(split.seen, split.asked.hidden())
    if rates is None:
        return None
    one, other = (learn(half).relevance(half) for half in (split.first, split.second))
    cells = split.first.added_up(split.second)
    moving = moves(cells, learned.usual_click_rates(cells))
    return split.evidence(held_out_bits(OWN, rates, split.asked), one, other, moving)


def _cascade_evidence(
    fitted: MixtureFit, counts: Counts, *, most_cells: int, most_impressions: int
) -> HeldOutEvidence | None:
    """The same for a cascade, which is learned from lists. A move says nothing there: what is above changes, too."""
    from clickmix.corrections.mixture_based.cascade_again import CascadeAgain  # here, because most fits are no cascades

    quarters = deal(counts, most_cells=most_cells, most_impressions=most_impressions, most_read=MOST_READ)
    split = _Split.of(quarters)
    if split is None:
        return None
    asked, rates = CascadeAgain.of(fitted, quarters.counts(*TRAINING)).click_rates(quarters.counts(HELD_OUT))
    halves = (CascadeAgain.of(fitted, quarters.counts(*half)) for half in HALVES)
    one, other = (half.relevance(quarters.table) for half in halves)
    return split.evidence(held_out_bits(OWN, rates, asked), one, other, ())


@dataclass(frozen=True)
class _Split:
    """The cells of a log in quarters: two halves, the quarters to learn from, and the one to predict."""

    quarters: Quarters
    first: PlacedCells
    second: PlacedCells
    seen: PlacedCells
    asked: PlacedCells

    @classmethod
    def of(cls, quarters: Quarters) -> _Split | None:
        """Add up the quarters; None if a half, or the quarter to predict, is empty."""
        parts = quarter_cells(quarters)
        first, second = (parts[one].added_up(parts[other]) for one, other in HALVES)
        found = cls(quarters, first, second, first.added_up(parts[2]), parts[HELD_OUT])
        return found if len(first.place) and len(second.place) and len(found.asked.place) else None

    def evidence(self, own: Prediction, one: Floats, other: Floats, moving: tuple[Move, ...]) -> HeldOutEvidence:
        """The evidence, given the fit's prediction and the labels of both halves."""
        return HeldOutEvidence(
            self.quarters.dealt,
            self.quarters.share,
            own,
            tuple(
                held_out_bits(name, rates, self.asked) for name, rates in baseline_rates(self.seen, self.asked.hidden())
            ),
            agreement(one, other, self.first, self.second),
            moving,
        )


@dataclass(frozen=True, eq=False)
class Prediction:
    """Bits and impressions of every held-out query under one fit, which `name` names."""

    name: str
    bits: Floats = field(repr=False)
    impressions: Floats = field(repr=False)

    @property
    def perplexity(self) -> float:
        """2^(bits per impression)."""
        return float(2 ** (self.bits.sum() / self.impressions.sum()))

    def gain_over(self, other: Prediction) -> tuple[float, float]:
        """How many bits per 1,000 impressions this saves over another, and half the interval of that."""
        saved, shown = other.bits - self.bits, self.impressions.sum()
        mean = saved.sum() / shown
        spread = np.sqrt(((saved - mean * self.impressions) ** 2).sum()) / shown
        return float(1000 * mean), float(1000 * NORMAL * spread)


def held_out_bits(name: str, rates: Floats, asked: PlacedCells) -> Prediction:
    """-log2 of the likelihood of the asked cells, by query; queries without held-out impressions are left out."""
    p = np.clip(rates, LEAST_RATE, 1 - LEAST_RATE)
    bits = -(asked.clicks * np.log2(p) + (asked.impressions - asked.clicks) * np.log2(1 - p))
    query = asked.query[asked.document]
    shown = np.bincount(query, asked.impressions)
    return Prediction(name, np.bincount(query, bits)[shown > 0], shown[shown > 0])


@dataclass(frozen=True)
class Agreement:
    """Labels of two halves: correlation, the same beyond position, mean absolute difference; over `documents`.

    A correlation is None if one half gives every document the same label.
    """

    documents: int
    correlation: float | None
    beyond_position: float | None
    difference: float


def agreement(one: Floats, other: Floats, first: PlacedCells, second: PlacedCells) -> Agreement | None:
    """How far the labels of two halves agree, an element per document; None if no document is in both.

    The weight of a document is its impressions in the half with fewer: documents that people see often matter most.
    Labels of both halves follow the position, so part of the correlation only says that documents stay where they are;
    `beyond_position` removes the mean label of each position.
    """
    seen, also = (cells.by_document(cells.impressions) for cells in (first, second))
    both = np.minimum(seen, also) > 0
    if not both.any():
        return None
    at, also_at = (cells.by_document(cells.impressions * cells.position) for cells in (first, second))
    place = np.unique(np.rint((at + also_at)[both] / (seen + also)[both]), return_inverse=True)[1]
    one, other, weight = one[both], other[both], np.minimum(seen, also)[both]
    shown = np.bincount(place, weight)
    one_beyond, other_beyond = (
        values - (np.bincount(place, weight * values) / shown)[place] for values in (one, other)
    )
    return Agreement(
        len(one),
        _correlation(one, other, weight),
        _correlation(one_beyond, other_beyond, weight),
        float(weight @ np.abs(one - other) / weight.sum()),
    )


def _correlation(a: Floats, b: Floats, weight: Floats) -> float | None:
    w = weight / weight.sum()
    a, b = a - w @ a, b - w @ b
    spread = float(np.sqrt((w @ a**2) * (w @ b**2)))
    return float(w @ (a * b)) / spread if spread > 1e-12 else None


@dataclass(frozen=True)
class Move:
    """The ratio of click rates between a position and the next one, over the documents seen at both.

    `low` to `high` is its 95% interval over queries.
    """

    above: int
    below: int
    documents: int
    observed: float
    low: float
    high: float
    expected: float | None


def moves(cells: PlacedCells, rates: Floats | None) -> tuple[Move, ...]:
    """A row for every pair of neighbouring positions with enough clicks. `cells` has one cell per document and place.

    A document is as relevant at one position as at the next, so whatever labels say, the ratio of its click rates comes
    from the position. Over the documents seen at k and at k + 1, n and m times, each weighted by n m / (n + m):

        observed = sum of weight c_(k+1) / m  /  sum of weight c_k / n,   expected = the same with `rates`
    """
    context = np.unique([place.context for place in cells.places], axis=0, return_inverse=True)[1].ravel()[cells.place]
    contexts = int(context.max()) + 1
    positions, at = np.unique(cells.position, return_inverse=True)
    rows = rows_of_groups(at, groups=len(positions))
    found = []
    for i, above in enumerate(positions[:-1].tolist()):
        if positions[i + 1] != above + 1:
            continue
        # The cells of documents at a position and the next one, in the same context.
        here, there = (cells.document[of] * contexts + context[of] for of in rows[i : i + 2])
        _, upper, lower = np.intersect1d(here, there, assume_unique=True, return_indices=True)
        pair = np.stack([rows[i][upper], rows[i + 1][lower]])
        if cells.clicks[pair].sum() >= FEWEST_CLICKS:
            found.append(_move(cells, rates, pair, int(above)))
    return tuple(found)


def _move(cells: PlacedCells, rates: Floats | None, pair: Ints, above: int) -> Move:
    n, m = cells.impressions[pair]
    weight = n * m / (n + m)
    query = cells.query[cells.document[pair[0]]]
    upper, lower = (np.bincount(query, weight * cells.clicks[rows] / cells.impressions[rows]) for rows in pair)
    top, bottom = float(upper.sum()), float(lower.sum())
    ratio, low, high = bottom / top if top else np.inf, 0.0, np.inf
    if top and bottom:
        spread = float(np.sqrt(((lower / bottom - upper / top) ** 2).sum()))
        low, high = (ratio * float(np.exp(sign * NORMAL * spread)) for sign in (-1, 1))
    of_model = None
    if rates is not None:
        first, second = (float(weight @ rates[rows]) for rows in pair)
        of_model = second / first if first else None
    return Move(above, above + 1, pair.shape[1], ratio, low, high, of_model)


def baseline_rates(seen: PlacedCells, asked: PlacedCells) -> Iterator[tuple[str, Floats]]:
    """Simple predictions that a search engineer would try, by name: P(click) of each asked cell, ignoring contexts."""
    yield "the position's click rate", position_rates(seen)[asked.place]
    yield "smoothed click-through rate", posterior_rates(_priors_by_position(seen), seen, asked)
    expected = seen.by_document(seen.impressions * position_rates(seen)[seen.place])
    some = expected > 0
    prior = fit_gamma(seen.by_document(seen.clicks)[some], expected[some])
    yield "smoothed COEC", expected_rates(prior, seen, asked)


def _priors_by_position(seen: PlacedCells) -> dict[int, BetaPrior]:
    """The Beta of every position; small positions share a neighbour's, and so do those far down a long page."""
    position = np.array([place.position for place in seen.places])
    far = FIRST_PAGE * FAR_STEP ** np.rint(np.log(position / FIRST_PAGE) / np.log(FAR_STEP))
    positions, code = np.unique(np.where(position > FIRST_PAGE, np.rint(far), position), return_inverse=True)
    without_context = tuple(Place(int(position), ()) for position in positions)
    cells = replace(seen, places=without_context, place=code[seen.place]).added_up()
    found, documents = np.unique(cells.place, return_counts=True)
    places = [cells.places[place] for place in found]
    groups = np.array(join_small(places, documents.tolist()))
    of_place = np.zeros(len(cells.places), dtype=np.int64)
    of_place[found] = groups
    rows = np.stack([of_place[cells.place], cells.impressions.astype(np.int64), cells.clicks.astype(np.int64)])
    (group, shown, clicks), weight = np.unique(rows, axis=1, return_counts=True)
    priors = []
    for of_group in rows_of_groups(group, groups=int(groups.max()) + 1):
        some = of_group[:: -(-len(of_group) // MOST_OF_GROUP)]
        priors.append(fit_beta(shown[some], clicks[some], weight[some]))
    return {place.position: priors[g] for place, g in zip(places, groups, strict=True)}


def held_out_sentences(found: HeldOutEvidence) -> Iterator[str]:
    """How well clicks are predicted, whether two halves agree, what moving documents say, what clicks cannot say."""
    yield _on_prediction(found)
    if found.halves is not None and found.halves.correlation is not None:
        yield _on_halves(found.halves, found.halves.correlation)
    known = [(move, move.expected) for move in found.moving if move.expected is not None]
    if known:
        yield _on_moves(known)
    yield ABOUT_CLICKS


def _on_prediction(found: HeldOutEvidence) -> str:
    """The perplexity of the fit and of the baselines, and whether the difference is significant."""
    own, (position, *smoothed) = found.prediction, found.baselines
    sample = "" if found.share == 1 else f" of {found.share:.1%} of the queries"
    others = ", ".join(f"{other.name} {other.perplexity:.4f}" for other in found.baselines)
    saved, margin = own.gain_over(position)
    learned = "significantly better" if saved > margin else "significantly worse" if saved < -margin else "no better"
    better = [other for other in smoothed if -own.gain_over(other)[0] > own.gain_over(other)[1]]
    names = " and ".join(other.name for other in better)
    predict = "predict" if len(better) > 1 else "predicts"
    ahead = f", and {names} {predict} them significantly better than labels do" if better else ""
    return (
        f"Clicks in a quarter of the {found.dealt}{sample}, predicted from the rest (perplexity; 1 is perfect): "
        f"{own.name} {own.perplexity:.4f}, {others}. Labels predict clicks {learned} than positions alone{ahead}."
    )


def _on_halves(halves: Agreement, correlation: float) -> str:
    removed = halves.beyond_position
    beyond = "" if removed is None else f" ({removed:.2f} without the effect of position)"
    return (
        f"Labels from two halves of the log correlate at {correlation:.2f}{beyond} and differ by "
        f"{halves.difference:.2f} on average, over {several(halves.documents, 'document')} in both halves."
    )


def _on_moves(known: list[tuple[Move, float]]) -> str:
    """At how many pairs of positions the model is wrong about documents seen at both, and where most."""
    off = [(move, expected) for move, expected in known if not move.low <= expected <= move.high]
    pairs = several(len(known), "pair of positions", "pairs of positions")
    if not off:
        return f"Documents seen at two neighbouring positions are clicked as the model expects, at all of {pairs}."
    move, expected = max(off, key=lambda each: abs(each[0].observed - each[1]))
    return (
        f"Documents seen at two neighbouring positions are not clicked as the model expects at {len(off)} of {pairs}. "
        f"The largest difference: they are clicked {move.observed:.2f} times as often at position {move.below} as at "
        f"position {move.above} (95% interval {move.low:.2f} to {move.high:.2f}); the model expects {expected:.2f}."
    )
