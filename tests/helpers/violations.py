"""Logs that keep the assumptions of a mixture of grades, and logs that break one of them, all with known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from clickmix.corrections.correction import Labels
from clickmix.counts.counts import Counts
from clickmix.lab.users import PositionBased
from clickmix.lab.users.presets import preset
from simulation import PRIORS

Floats = np.ndarray[Any, Any]
GRADE_WEIGHTS = np.array([0.52, 0.32, 0.12, 0.02, 0.02])  # of grades 0 to 4


@dataclass(frozen=True)
class Log:
    """Queries x positions: relevance, and the counts of a log in which every document stays where it is."""

    relevance: Floats
    counts: Counts

    def truth(self, labels: Labels) -> Floats:
        """The relevance of each label's document."""
        return np.asarray(self.relevance[labels.query_id, labels.doc_id % 100 - 1])


def drawn_relevance(
    queries: int, positions: int, rng: np.random.Generator, *, graded: bool = False, alike: float = 0.0
) -> Floats:
    """Relevance with the priors of each position: 0 or 1, or one of five grades.

    `alike` makes documents of one query alike: the standard deviation of what is added to a query's log odds.
    """
    query = alike * rng.standard_normal((queries, 1, 1))
    if not graded:
        odds = logit(PRIORS[:positions]) + query[:, :, 0]
        return np.asarray(rng.random((queries, positions)) < expit(odds), dtype=float)
    grade = np.arange(5)
    weights = GRADE_WEIGHTS * np.exp(grade * (6 * (PRIORS[:positions, None] - 0.03) + query))
    cumulated = np.cumsum(weights / weights.sum(axis=2, keepdims=True), axis=2)
    return np.asarray((rng.random((queries, positions, 1)) > cumulated).sum(axis=2) / 4)


def shown_as(relevance: Floats, impressions: Floats, clicks: Floats) -> Log:
    """Counts of lists that never change; document ids are queries x 100 + position."""
    queries, positions = relevance.shape
    q, k = (column.ravel() for column in np.meshgrid(np.arange(queries), np.arange(1, positions + 1), indexing="ij"))
    shown = np.broadcast_to(impressions[:, None], relevance.shape).ravel()
    seen = shown > 0
    columns = (column[seen] for column in (q, q * 100 + k, k, shown, clicks.ravel()))
    return Log(relevance, Counts.from_arrays(*columns))


def position_based(
    seed: int,
    *,
    queries: int = 2_000,
    sessions: int = 100,
    eta: float = 1.0,
    graded: bool = False,
    alike: float = 0.0,
    positions: int = 10,
    examine: Callable[[Floats, Floats, np.random.Generator], Floats] | None = None,
) -> Log:
    """The paper's users: so many sessions per query on average; `examine` may bend the documents' click rates."""
    rng = np.random.default_rng(seed)
    user = PositionBased.with_eta(eta, positions=positions)
    relevance = drawn_relevance(queries, positions, rng, graded=graded, alike=alike)
    rates = user.beta + user.alpha * relevance
    rates = rates if examine is None else examine(rates, relevance, rng)
    impressions = rng.poisson(sessions, queries)
    return shown_as(relevance, impressions, rng.binomial(impressions[:, None], rates))


def rising(seed: int, *, times: float = 2.0) -> Log:
    """Something that draws the eye at position 5: it is examined `times` as often as its place would have it."""
    boost = np.where(np.arange(1, 11) == 5, times, 1.0)
    return position_based(seed, examine=lambda rates, _relevance, _rng: np.minimum(rates * boost, 1.0))


def robots(seed: int, *, queries: float = 0.02, sessions: float = 0.5) -> Log:
    """In a few queries a program makes part of the sessions, and clicks everything."""

    def examine(rates: Floats, _relevance: Floats, rng: np.random.Generator) -> Floats:
        share = np.where(rng.random((len(rates), 1)) < queries, sessions, 0.0)
        return np.asarray(rates + share * (1 - rates))

    return position_based(seed, examine=examine)


def scattered(seed: int, *, positions: tuple[int, ...] = (3, 8), correlation: float = 0.2) -> Log:
    """At two positions, documents of the same grade differ in appeal: their rates are beta-distributed."""
    there = np.isin(np.arange(1, 11), positions)

    def examine(rates: Floats, _relevance: Floats, rng: np.random.Generator) -> Floats:
        alike = 1 / correlation - 1
        return np.where(there, rng.beta(alike * rates, alike * (1 - rates)), rates)

    return position_based(seed, examine=examine)


def overdispersed(seed: int, *, spread: float = 0.5) -> Log:
    """Every query has users of its own, who examine more or less than others: a gamma of mean 1 times the rates."""

    def examine(rates: Floats, _relevance: Floats, rng: np.random.Generator) -> Floats:
        factor = rng.gamma(1 / spread**2, spread**2, (len(rates), 1))
        return np.minimum(rates * factor, 1.0)

    return position_based(seed, examine=examine)


def mixed(seed: int, *, less: float = 8.0) -> Log:
    """Remark 1: half of the queries are examined `less` times less than the other half, as on a small screen."""

    def examine(rates: Floats, _relevance: Floats, rng: np.random.Generator) -> Floats:
        return np.asarray(rates / np.where(rng.random((len(rates), 1)) < 0.5, less, 1.0))

    return position_based(seed, examine=examine)


def cascade(seed: int, user: str, *, queries: int = 2_000, sessions: int = 100) -> Log:
    """Users who read from the top and stop (dcm) or look on from their last click (ubm)."""
    rng = np.random.default_rng(seed)
    relevance = drawn_relevance(queries, 10, rng)
    counts = preset(user).simulate(relevance, sessions=queries * sessions, rng=rng).counts()
    return shown_as(relevance, counts.impressions, counts.clicks)


CLEAN: dict[str, Callable[[int], Log]] = {
    "eta 1": position_based,
    "eta 2": lambda seed: position_based(seed, eta=2.0, sessions=400),
    "graded, queries alike, few clicks": lambda seed: position_based(seed, graded=True, alike=0.7, sessions=20),
    "graded, eta 2, queries alike": lambda seed: position_based(seed, graded=True, alike=0.7, eta=2.0, sessions=50),
    "300 queries, few clicks": lambda seed: position_based(seed, queries=300, sessions=20),
}
PLANTED: dict[str, Callable[[int], Log]] = {
    "rates that rise": rising,
    "five grades read as two": lambda seed: position_based(seed, graded=True),
    "dcm": lambda seed: cascade(seed, "dcm"),
    "ubm": lambda seed: cascade(seed, "ubm"),
    "robots": robots,
    "overdispersion": overdispersed,
    "mixed examination": mixed,
}
SUBTLE: dict[str, Callable[[int], Log]] = {  # what the counts hardly show
    "an eye-catcher, half as strong": lambda seed: rising(seed, times=1.5),
    "robots in a tenth of the sessions": lambda seed: robots(seed, queries=0.05, sessions=0.1),
    "mixed examination, twice": lambda seed: mixed(seed, less=2.0),
}


def mixture_for(kind: str) -> str:
    """The mixture a kind of log is read with."""
    return "binomial" if kind == "five grades read as two" else "auto"
