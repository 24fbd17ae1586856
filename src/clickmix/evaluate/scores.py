"""Scores: a ranking and a measure in, one number per query and their mean out.

Every order of tied documents is equally likely; a score is the exact mean over these orders. Letters: a block of m tied
documents, r of them relevant, comes after a documents, A of them relevant; its document at place j = 1..m is at
position p = a + j of the list; k is the cut-off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from clickmix.errors import InputError, SettingError
from clickmix.evaluate.measures import GAINED, Gain, Measure
from clickmix.evaluate.rankings import Ids, Ranking, rank
from clickmix.types import Floats, Ints

NoRelevant = Literal["leave-out", "zero", "one"]
HIGHEST_EXPONENTIAL_GRADE = 900  # 2^1024 overflows, and gains are added up


@dataclass(frozen=True)
class Scores:
    """One measure of one ranker, per query: `values[i]` is that of `query_ids[i]`.

    `without_relevant` queries had no relevant document; `no_relevant` says how they count: not at all ("leave-out"), as
    0 ("zero") or as 1 ("one").

    >>> from clickmix.evaluate import evaluate
    >>> scores = evaluate([3, 2, 1], [0, 1, 0], ["a", "a", "a"], measure="mrr")
    >>> scores.values.tolist(), scores.without_relevant
    ([0.5], 0)
    """

    measure: Measure
    query_ids: Ids
    values: Floats
    without_relevant: int
    no_relevant: NoRelevant

    def __post_init__(self) -> None:
        self.query_ids.setflags(write=False)
        self.values.setflags(write=False)

    @property
    def mean(self) -> float:
        """The mean over queries, each weighing the same."""
        return float(self.values.mean())

    @property
    def queries(self) -> int:
        """How many queries there were, including those left out."""
        return len(self.values) + (self.without_relevant if self.no_relevant == "leave-out" else 0)


def evaluate(
    scores: ArrayLike,
    grades: ArrayLike,
    query_ids: ArrayLike,
    *,
    measure: Measure | str = "ndcg@10",
    no_relevant: NoRelevant = "leave-out",
) -> Scores:
    """How well `scores` rank the documents of each query, judged by `grades`; one of each per document.

    >>> evaluate([3, 2, 1], [0, 1, 0], ["a", "a", "a"], measure="mrr").mean
    0.5
    """
    return score(rank(scores, grades, query_ids), measure=measure, no_relevant=no_relevant)


def score(ranking: Ranking, *, measure: Measure | str = "ndcg@10", no_relevant: NoRelevant = "leave-out") -> Scores:
    """One measure of a ranking; for several measures, `rank` once and call this for each.

    >>> ranking = rank([3, 2, 1], [0, 1, 0], ["a", "a", "a"])
    >>> score(ranking, measure="mrr").mean, score(ranking, measure="precision@1").mean
    (0.5, 0.0)
    """
    measure = Measure.parse(measure) if isinstance(measure, str) else measure
    if no_relevant not in get_args(NoRelevant):
        raise SettingError(f"no_relevant: {no_relevant!r} found, expected one of {', '.join(get_args(NoRelevant))}.")
    if measure.name in GAINED:
        worth = gains(ranking.grades, gain=measure.gain)
    else:
        worth = (ranking.grades >= measure.grade).astype(np.float64)
    some = _per_query(ranking, worth) > 0
    values = _FORMULAS[measure.name](ranking, worth, measure.cutoff)
    if no_relevant == "leave-out":
        if not some.any():
            relevant = "a grade above 0" if measure.name in GAINED else f"grade {measure.grade:g} or more"
            raise InputError(
                f"{measure}: none of the {len(some)} queries has a document with {relevant}: there is nothing to "
                "average. Give grades of such documents; in Python, no_relevant='zero' counts these queries."
            )
        return Scores(measure, ranking.query_ids[some], values[some], int((~some).sum()), no_relevant)
    values = np.where(some, values, 0.0 if no_relevant == "zero" else 1.0)
    return Scores(measure, ranking.query_ids, values, int((~some).sum()), no_relevant)


def gains(grades: Floats, *, gain: Gain) -> Floats:
    """The gain of a document of each grade g: 2^g - 1 (exponential) or g (linear)."""
    if gain == "linear":
        return grades
    if grades.max(initial=0) > HIGHEST_EXPONENTIAL_GRADE:
        raise InputError(
            f"grades: {grades.max():g} found; the exponential gain 2^grade - 1 is for grades up to "
            f"{HIGHEST_EXPONENTIAL_GRADE}. Use gain=linear, as in ndcg@10:gain=linear."
        )
    return np.exp2(grades) - 1


def _dcg(ranking: Ranking, gain: Floats, k: int | None) -> Floats:
    """DCG@k = sum over p <= k of gain(p) / log2(1 + p); tied documents each get their mean gain."""
    return _top(ranking, _block_mean(ranking, gain) / np.log2(1 + ranking.position), k)


def _ndcg(ranking: Ranking, gain: Floats, k: int | None) -> Floats:
    """nDCG@k = DCG@k / ideal DCG@k, where the ideal order is by falling gain."""
    best = gain[np.lexsort((-gain, ranking.query))]
    ideal = _top(ranking, best / np.log2(1 + ranking.position), k)
    return np.minimum(_divide(_dcg(ranking, gain, k), ideal), 1.0)  # rounding can push a mean of tied gains up


def _precision(ranking: Ranking, relevant: Floats, k: int | None) -> Floats:
    """precision@k = relevant documents at p <= k, divided by k even for shorter lists; without k, by their length."""
    hits = _top(ranking, _block_mean(ranking, relevant), k)
    return hits / (ranking.size if k is None else k)


def _recall(ranking: Ranking, relevant: Floats, k: int | None) -> Floats:
    """recall@k = relevant documents at p <= k, divided by all relevant documents of the query."""
    return _divide(_top(ranking, _block_mean(ranking, relevant), k), _per_query(ranking, relevant))


def _average_precision(ranking: Ranking, relevant: Floats, k: int | None) -> Floats:
    """AP@k = sum over relevant documents at p <= k of (relevant documents down to p) / p, divided by all relevant.

    In a block, place j is relevant with probability r / m, and then each of the j - 1 places above it is relevant
    with probability (r - 1) / (m - 1). So the mean of the term at p is r / m (A + 1 + (j - 1) (r - 1) / (m - 1)) / p.
    """
    r, A = _relevant_in_and_above(ranking, relevant)
    j, m = _place(ranking), ranking.tied[ranking.block]
    others = (j - 1) * (r - 1) / np.maximum(m - 1, 1)
    return _divide(_top(ranking, r / m * (A + 1 + others) / ranking.position, k), _per_query(ranking, relevant))


def _reciprocal_rank(ranking: Ranking, relevant: Floats, k: int | None) -> Floats:
    """RR@k = 1 / p of the first relevant document, 0 if p > k.

    Only the first block with a relevant document matters. Its first relevant document is at place j if the other r - 1
    are among the m - j places below, with probability C(m - j, r - 1) / C(m, r).
    """
    r, A = _relevant_in_and_above(ranking, relevant)
    j, m = _place(ranking), ranking.tied[ranking.block]
    may_be_first = (r > 0) & (A == 0)
    chance = np.zeros(len(relevant))
    j, m, r = j[may_be_first], m[may_be_first], r[may_be_first]
    chance[may_be_first] = np.exp(_log_choose(m - j, r - 1) - _log_choose(m, r))
    return _top(ranking, chance / ranking.position, k)


_FORMULAS = {
    "ndcg": _ndcg,
    "dcg": _dcg,
    "mrr": _reciprocal_rank,
    "map": _average_precision,
    "precision": _precision,
    "recall": _recall,
}


def _log_choose(n: Ints, k: Floats) -> Floats:
    """log C(n, k): -inf for k > n, where gammaln is infinite; exactly 0 for n <= 1, so nothing is rounded there."""
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def _relevant_in_and_above(ranking: Ranking, relevant: Floats) -> tuple[Floats, Floats]:
    """Per document: r, the relevant documents in its block, and A, those in the blocks above it in its list."""
    in_block = _per_block(ranking, relevant)
    before_block = np.cumsum(in_block) - in_block
    in_query = _per_query(ranking, relevant)
    before_query = np.cumsum(in_query) - in_query
    return in_block[ranking.block], before_block[ranking.block] - before_query[ranking.query]


def _place(ranking: Ranking) -> Ints:
    return np.arange(len(ranking.block)) - ranking.first[ranking.block] + 1


def _block_mean(ranking: Ranking, worth: Floats) -> Floats:
    return (_per_block(ranking, worth) / ranking.tied)[ranking.block]


def _top(ranking: Ranking, terms: Floats, k: int | None) -> Floats:
    """The sum of the terms at positions up to k, per query."""
    return _per_query(ranking, terms if k is None else np.where(ranking.position <= k, terms, 0.0))


def _per_query(ranking: Ranking, terms: Floats) -> Floats:
    return np.asarray(np.bincount(ranking.query, terms), dtype=np.float64)


def _per_block(ranking: Ranking, terms: Floats) -> Floats:
    return np.asarray(np.bincount(ranking.block, terms), dtype=np.float64)


def _divide(part: Floats, whole: Floats) -> Floats:
    """part / whole, or 0 for a query without relevant documents, where whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
