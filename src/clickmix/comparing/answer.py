"""The answer of a comparison in plain sentences: do clicks mean relevance here, and what to use.   Comparison -> Answer

Two questions decide. Beyond position: among documents at the same position, do labels order grades better than
production did? Order: do labels order the documents of a query better than production did? Both are paired differences
over queries. The same judgments also pick the best of several contenders, so its interval is widened (Bonferroni). For
the same reason, a simple contender is recommended if it loses less than one standard error of the difference to the
best one (Breiman's rule).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from clickmix.comparing.comparison import FEWEST_QUERIES, PRODUCTION, Comparison
from clickmix.comparing.contenders import ALWAYS
from clickmix.comparing.crossed import CROSSED
from clickmix.errors import several
from clickmix.evaluate.resampling import Resampled
from clickmix.report.results import Tone

POWER = 0.8416212335729143  # the 80% quantile of the normal distribution
LEVEL = 0.05
DECIDED = 0.02  # a difference that is surely smaller than this does not matter
MOST_NEEDED = 100_000
START = 50  # judged queries to begin with
BY_POSITION = (PRODUCTION, "none")  # they predict the position's click rate, without labels


@dataclass(frozen=True)
class Answer:
    """One sentence on whether clicks mean relevance, what to use, and how many more judged queries would decide it.

    `name` is for machines: yes, partly, no, undecided, unrelated, truth or clicks-only. `use` is the contender to use:
    the best one, or a simple one that is as good; None if there are too few queries to say. `more_queries` is 0
    if it is decided, and None if no number of queries seems to help or nothing is judged.
    """

    name: str
    tone: Tone
    sentence: str
    advice: str
    best: str | None
    as_good: tuple[str, ...]
    use: str | None
    more_queries: int | None


def answer(comparison: Comparison) -> Answer:
    """What the comparison says."""
    measure = {"judgments": "ndcg", "truth": "error", "clicks": "bits"}[comparison.against]
    ranked = comparison.measured(measure)
    best = ranked[0] if ranked else None
    as_good = tuple(name for name in ranked[1:] if best and not comparison.better(best, name, measure))
    use = _use(comparison, measure, ranked)
    advice = _advice(comparison, measure, ranked, as_good, use)
    if comparison.against == "clicks":
        sentence = (
            "This compares how well clicks are predicted. Only judgments can say whether clicks mean relevance: pass "
            "--judgments."
        )
        return Answer("clicks-only", "note", sentence, advice, best, as_good, use, None)
    if comparison.against == "truth":
        return Answer("truth", "good", advice, "", best, as_good, use, None)
    return _judged(comparison, Answer("", "note", "", advice, best, as_good, use, None))


def _judged(comparison: Comparison, found: Answer) -> Answer:
    """What was found, with the sentence on whether clicks mean relevance."""
    made = [row.name for row in comparison.rows if row.kind == "correction"]
    queries = 0 if comparison.judged is None else len(comparison.judged.varied)
    if not comparison.enough("ndcg") or not made:
        judged = several(queries, "judged query", "judged queries")
        sentence = (
            f"It is too early to say whether clicks mean relevance here: there {'is' if queries == 1 else 'are'} "
            f"{judged} with documents of different grades, and at least {FEWEST_QUERIES} are needed."
        )
        return replace(found, name="undecided", sentence=sentence, more_queries=START - queries)
    by_place = max(made, key=lambda name: comparison.interval(name, "same_place").value)
    beyond = comparison.difference(by_place, PRODUCTION, "same_place")
    by_order = max(made, key=lambda name: comparison.interval(name, "ndcg").value)
    order = comparison.difference(by_order, PRODUCTION, "ndcg")
    z = _widening(comparison)
    tells, better, worse = _beats(beyond, z), _beats(order, z), order.high < 0
    place, own, old = (
        comparison.interval(*each).value
        for each in ((by_place, "same_place"), (by_order, "ndcg"), (PRODUCTION, "ndcg"))
    )
    auc = f"AUC {place:.3f} ±{comparison.interval(by_place, 'same_place').margin:.3f} for {by_place}, .5 is chance"
    ndcg = f"nDCG@10 {own:.3f} for {by_order} against {old:.3f}"
    more = _more(order, queries, z)
    tone: Tone = "note"
    if better:
        tone, name = "good", "yes"
        sentence = f"Yes, clicks mean relevance here: labels order documents better than production ({ndcg})."
    elif tells:
        name = "partly"
        order_too = (
            f"clicks alone do not order a page as well as production does ({ndcg})"
            if worse
            else f"it is unclear whether labels order a page better than production ({ndcg})"
        )
        sentence = f"Partly: at the same position, clicks tell better documents from worse ({auc}), but {order_too}."
    elif worse:
        tone, name = "bad", "no"
        sentence = (
            f"No: at the same position, clicks do not tell better documents from worse ({auc}), and labels order "
            f"a page worse than production does ({ndcg})."
        )
    elif z * beyond.spread < DECIDED and z * order.spread < DECIDED:
        tone, name = "bad", "unrelated"
        sentence = (
            "These judgments have nothing to do with the clicks: at the same position labels order grades no better "
            f"than chance ({auc}), and on a page no better than production ({ndcg})."
        )
    else:
        name = "undecided"
        sentence = (
            f"Undecided: with {queries:,} judged queries no labels are clearly better or worse than production "
            f"({ndcg}; at the same position {auc})."
        )
    decided = better or worse or name == "unrelated"
    return replace(found, name=name, tone=tone, sentence=sentence, more_queries=0 if decided else more)


def more_text(answer: Answer, comparison: Comparison) -> str:
    """How many more judged queries would decide whether labels order documents better than production."""
    if comparison.against != "judgments" or answer.more_queries == 0:
        return ""
    if answer.more_queries is None:
        return f"More than {MOST_NEEDED:,} more judged queries would be needed: the difference is too small to matter."
    return f"About {answer.more_queries:,} more judged queries would decide whether labels beat production order."


def judgments_text(comparison: Comparison) -> str:
    """Whether judgments of other queries make the mixture's labels better."""
    if not any(row.name == CROSSED for row in comparison.rows) or not comparison.enough("ndcg"):
        return ""
    gain = comparison.difference(CROSSED, "mixture", "ndcg")
    figures = f"nDCG@10 {gain.value:+.3f}, 95% interval {gain.low:+.3f} to {gain.high:+.3f}"
    if gain.low > 0:
        return (
            f"Judgments help: those of other queries make the mixture's labels better ({figures}). Pass them to debias."
        )
    if gain.high < 0:
        return f"Judgments of other queries make the mixture's labels worse ({figures}). Do not pass them to debias."
    return f"Judgments of other queries do not clearly change the order of the mixture's labels ({figures})."


def _use(comparison: Comparison, measure: str, ranked: tuple[str, ...]) -> str | None:
    """The best contender, or the first simple one that loses less than one standard error of the difference to it.

    Production order is kept unless labels are significantly better.
    """
    if not ranked or not comparison.enough(measure):
        return None
    best = ranked[0]
    if measure == "ndcg" and not _beats(comparison.difference(best, PRODUCTION, measure), _widening(comparison)):
        return PRODUCTION
    for name in ALWAYS:
        if name in ranked and not (measure == "bits" and name in BY_POSITION):
            lost = comparison.difference(best, name, measure)
            if abs(lost.value) <= lost.spread:
                return name
    return best


def _advice(
    comparison: Comparison, measure: str, ranked: tuple[str, ...], as_good: tuple[str, ...], use: str | None
) -> str:
    if not ranked:
        return ""
    best = ranked[0]
    what = {"ndcg": "best by judgments", "error": "closest to the truth", "bits": "best at held-out clicks"}[measure]
    text = _use_text(best, use, f"{what} ({_figure(comparison, best, measure)})", comparison, measure)
    also = [name for name in as_good if name != use]
    others = f" Not significantly worse: {', '.join(also)}." if also else " All others are significantly worse."
    return text + (others if len({*ranked} - {best, use}) else "")


def _figure(comparison: Comparison, name: str, measure: str) -> str:
    """What was measured of a contender, as in the table."""
    prediction = comparison.row(name).prediction
    if measure == "bits" and prediction:
        return f"perplexity {prediction.perplexity:.4f}"
    return f"{'nDCG@10' if measure == 'ndcg' else 'error'} {comparison.interval(name, measure).value:.3f}"


def _use_text(best: str, use: str | None, why: str, comparison: Comparison, measure: str) -> str:
    if measure == "bits" and best in BY_POSITION:
        return "No labels predict clicks better than the click rate of the position does."
    if use is None:
        return f"Too few queries to recommend one; {best} is {why}."
    if use == best:
        return f"{'Keep' if use == PRODUCTION else 'Use'} {use}: {why}."
    if use == PRODUCTION:
        return f"Keep production order: {best} is {why}, but not significantly better."
    return (
        f"Use {use} ({_figure(comparison, use, measure)}): {best} is {why}, but {use} is simpler and loses less than "
        "one standard error."
    )


def _widening(comparison: Comparison) -> float:
    """Standard errors to either side of a difference, given that the best of all corrections was picked."""
    made = sum(row.kind in ("correction", "judged") for row in comparison.rows)
    return NormalDist().inv_cdf(1 - LEVEL / (2 * max(made, 1)))


def _beats(difference: Resampled, z: float) -> bool:
    return difference.value > z * difference.spread


def _more(difference: Resampled, queries: int, z: float) -> int | None:
    """Judged queries still needed to tell a difference of this size from none, 4 times in 5."""
    if not difference.value:
        return None
    needed = queries * ((z + POWER) * difference.spread / abs(difference.value)) ** 2
    return max(1, math.ceil(needed - queries)) if needed < MOST_NEEDED else None
