"""Held-out evidence in sentences, for the verdict and wherever it is shown.   HeldOutEvidence -> sentences"""

from __future__ import annotations

from collections.abc import Iterator

from clickmix.errors import several
from clickmix.judging.held_out.evidence import HeldOutEvidence
from clickmix.judging.held_out.halves import Agreement
from clickmix.judging.held_out.moves import Move

ABOUT_CLICKS = (
    "This is evidence about clicks. Whether clicks mean relevance, only judgments can say: "
    "clickmix compare LOG --judgments FILE."
)


def held_out_sentences(found: HeldOutEvidence) -> Iterator[str]:
    """How well clicks are predicted, whether two halves agree, what documents that move say; and what none can say."""
    yield _on_prediction(found)
    if found.halves is not None and found.halves.correlation is not None:
        yield _on_halves(found.halves, found.halves.correlation)
    known = [(move, move.expected) for move in found.moving if move.expected is not None]
    if known:
        yield _on_moves(known)
    yield ABOUT_CLICKS


def _on_prediction(found: HeldOutEvidence) -> str:
    """The perplexity beside the others', and what is significant about that."""
    own, (position, *smoothed) = found.prediction, found.baselines
    sample = "" if found.share == 1 else f" of {found.share:.1%} of the queries"
    others = ", ".join(f"{other.name} {other.perplexity:.4f}" for other in found.baselines)
    saved, margin = own.gain_over(position)
    learned = "clearly more" if saved > margin else "clearly less" if saved < -margin else "no more"
    better = [other for other in smoothed if -own.gain_over(other)[0] > own.gain_over(other)[1]]
    ahead = f", and {' and '.join(other.name for other in better)} tells clearly more than the model" if better else ""
    return (
        f"Clicks of a quarter of the {found.dealt}{sample}, predicted from the rest (perplexity, 1 is perfect): "
        f"{own.name} {own.perplexity:.4f}, {others}. Labels tell {learned} of clicks than positions do{ahead}."
    )


def _on_halves(halves: Agreement, correlation: float) -> str:
    beyond = "" if halves.beyond_position is None else f" ({halves.beyond_position:.2f} beyond position)"
    return (
        f"Labels from two halves of the log have a correlation of {correlation:.2f}{beyond} and differ by "
        f"{halves.difference:.2f} on average, over {several(halves.documents, 'document')} seen in both."
    )


def _on_moves(known: list[tuple[Move, float]]) -> str:
    """At how many pairs of positions the model is wrong about documents seen at both, and where most."""
    off = [(move, expected) for move, expected in known if not move.low <= expected <= move.high]
    pairs = several(len(known), "pair")
    if not off:
        return f"Documents seen at neighbouring positions are clicked as the model expects at all of {pairs}."
    move, expected = max(off, key=lambda each: abs(each[0].observed - each[1]))
    return (
        f"Documents seen at neighbouring positions are clicked otherwise than the model expects at {len(off)} of "
        f"{pairs}: at position {move.below} {move.observed:.2f} times as often as at position {move.above} "
        f"({move.low:.2f} to {move.high:.2f}), where the model expects {expected:.2f}."
    )
