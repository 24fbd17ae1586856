"""Kinds of worlds: how people click and which documents are relevant, as formulas.   name -> Kind -> rates and priors

The base user examines position k with probability 1/k and clicks what he examines with probability .98 if it is
relevant, .65/k if it is not; in between for grades in between. A kind changes one or two things about him, about the
lists or about the queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, logit

from clickmix.types import Floats, Ints

RELEVANT, OTHER = 0.98, 0.65  # P(click | examined): of relevant documents; of others at position k, divided by k
ROBOT_CLICKS = 0.3  # P(a robot clicks a result), wherever it is and whatever it shows
PRIOR = np.array(  # P(relevant) by position
    [
        *(0.149, 0.091, 0.074, 0.060, 0.053, 0.050, 0.047, 0.041, 0.040, 0.037),
        *(0.036, 0.037, 0.037, 0.036, 0.036, 0.033, 0.029, 0.031, 0.029, 0.0285),
    ]
)
STEEP_PRIOR = 0.6 / np.arange(1, 21)  # of a better ranker
GRADED_WEIGHTS = np.array([0.52, 0.32, 0.12, 0.02, 0.02])

# Learned from the Yandex log: P(go on | click) of DCM at positions 1 to 9; P(examine position r | last click at
# 1, ..., r - 1, then none so far) of UBM.
DCM = np.array([0.2978, 0.4449, 0.4540, 0.4548, 0.4352, 0.4129, 0.3888, 0.3442, 0.2560])
UBM = (
    (0.9680,),
    (0.5321, 0.3495),
    (0.1915, 0.6651, 0.1770),
    (0.0913, 0.2719, 0.6290, 0.1023),
    (0.0514, 0.1507, 0.2849, 0.6204, 0.0652),
    (0.0299, 0.0862, 0.1584, 0.2787, 0.5749, 0.0424),
    (0.0185, 0.0536, 0.0941, 0.1635, 0.2640, 0.5426, 0.0293),
    (0.0127, 0.0361, 0.0628, 0.1059, 0.1643, 0.2710, 0.5404, 0.0218),
    (0.0093, 0.0257, 0.0437, 0.0734, 0.1171, 0.1784, 0.2877, 0.5724, 0.0171),
    (0.0083, 0.0214, 0.0352, 0.0568, 0.0878, 0.1310, 0.2098, 0.3267, 0.6514, 0.0154),
)


@dataclass(frozen=True)
class Kind:
    """What sets a world apart from the base: frozen lists of two grades, all queries alike, position-based users."""

    grades: Literal[2, 5] = 2
    steep: bool = False  # relevance falls fast with the base position (two grades only)
    attention: float = 0.0  # deviation of the queries' effect u on clicking
    link: Literal["examination", "odds"] = "examination"  # u multiplies examination by e^u, up to 1; or shifts log-odds
    noise: float = 0.0  # deviation of what a session adds to the base positions before it sorts the list
    contexts: int = 1  # each with its own examination
    shares: float = 0.0  # deviation of the queries' effect v on the log-odds of being relevant
    popular: float = 0.0  # slope of those log-odds in the log of the query's popularity
    appeal: float = 0.0  # intra-class correlation of the clicks on a document, around the rate of its grade
    appeal_at: tuple[int, ...] = ()  # the positions with appeal; all if empty
    blind_at: tuple[int, ...] = ()  # positions where people click whatever is shown as if it were not relevant
    second: Literal["robots", "phones"] = "robots"  # who the second sort of sessions is, if there is one
    mixes: tuple[tuple[float, float], ...] = ()  # (share of the second sort in a query, probability of such a query)
    user: Literal["pbm", "dcm", "ubm"] = "pbm"
    sessions: int = 60  # per query, at the mean

    @property
    def top(self) -> int:
        """Length of the lists."""
        return 20 if self.user == "pbm" else 10

    @property
    def relevances(self) -> Floats:
        """Relevance of each grade."""
        return np.linspace(0.0, 1.0, self.grades)

    @property
    def effect_mean(self) -> float:
        """Mean of u: examination has the same mean in all worlds, but for the bound at 1."""
        return -(self.attention**2) / 2 if self.link == "examination" else 0.0


KINDS = {
    "frozen": Kind(),
    "frozen-graded": Kind(grades=5),
    "attention-0.1": Kind(attention=0.1),
    "attention-0.3": Kind(attention=0.3),
    "attention-0.6": Kind(attention=0.6),
    "attention-0.1-graded": Kind(attention=0.1, grades=5),
    "attention-0.3-graded": Kind(attention=0.3, grades=5),
    "attention-0.6-graded": Kind(attention=0.6, grades=5),
    "odds-0.1": Kind(attention=0.1, link="odds"),
    "odds-0.3": Kind(attention=0.3, link="odds"),
    "odds-0.6": Kind(attention=0.6, link="odds"),
    "odds-0.1-graded": Kind(attention=0.1, link="odds", grades=5),
    "odds-0.3-graded": Kind(attention=0.3, link="odds", grades=5),
    "odds-0.6-graded": Kind(attention=0.6, link="odds", grades=5),
    "moving": Kind(noise=2.0),
    "moving-attention-0.3": Kind(noise=2.0, attention=0.3),
    "moving-steep": Kind(noise=2.0, steep=True),
    "moving-steep-attention-0.3": Kind(noise=2.0, steep=True, attention=0.3),
    "contexts-2": Kind(contexts=2),
    "contexts-5": Kind(contexts=5),
    "contexts-20": Kind(contexts=20),
    "shares-1": Kind(shares=1.0),
    "shares-0.8-attention-0.3": Kind(shares=0.8, attention=0.3),
    "shares-1.2-attention-0.6": Kind(shares=1.2, attention=0.6),
    "popular": Kind(popular=0.5),
    "popular-much": Kind(popular=1.0),
    "appeal-0.02": Kind(appeal=0.02),
    "appeal-0.1": Kind(appeal=0.1),
    "robots": Kind(mixes=((0.03, 1.0),)),
    "robots-few-queries": Kind(mixes=((0.0, 0.93), (0.4, 0.07))),
    "dcm": Kind(user="dcm"),
    "ubm": Kind(user="ubm"),
}


def rate(kind: Kind, relevance: Floats, position: Ints, context: Ints, effect: Floats) -> Floats:
    """P(click) of position-based users on such documents, there, in queries with this effect; all broadcast."""
    eta, factor, _ = contexts(kind.contexts)
    examined = factor[context] * position ** -eta[context]
    seen = np.where(np.isin(position, kind.blind_at), 0.0, relevance)
    attracted = OTHER / position + (RELEVANT - OTHER / position) * seen
    if kind.link == "odds":
        return np.asarray(expit(logit(examined * attracted) + effect))
    return np.asarray(np.minimum(examined * np.exp(effect), 1.0) * attracted)


def second_rate(kind: Kind, relevance: Floats, position: Ints) -> Floats:
    """P(click) in sessions of the second sort: robots click at random, phones show two results at a time."""
    if kind.second == "robots":
        return np.broadcast_to(ROBOT_CLICKS, np.broadcast_shapes(relevance.shape, position.shape))
    return rate(kind, relevance, position, np.array(0), np.array(0.0)) * position**-0.7


def attraction(relevance: Floats, position: Ints) -> Floats:
    """P(click | examined) of DCM and UBM users."""
    relevant = 1 - (position + 1) / 100
    return np.asarray(OTHER / position + (relevant - OTHER / position) * relevance)


def prior(kind: Kind, base: Ints, tilt: Floats) -> Floats:
    """P(grade) of documents with this base position (from 1), grades along the last axis; base and tilt broadcast.

    A tilt t multiplies the odds of relevance x by e^(t x): with two grades it is added to the log-odds.
    """
    if kind.grades == 2:
        relevant = STEEP_PRIOR if kind.steep else PRIOR
        weights = np.stack([1 - relevant, relevant], axis=-1)
    else:
        weights = GRADED_WEIGHTS * np.exp(6 * np.arange(5) * (PRIOR[:, None] - 0.03))
    tilted = weights[base - 1] * np.exp(np.asarray(tilt)[..., None] * kind.relevances)
    return np.asarray(tilted / tilted.sum(axis=-1, keepdims=True))


def contexts(number: int) -> tuple[Floats, Floats, Floats]:
    """Per context: how fast examination falls, its factor at position 1, and its share of the sessions."""
    if number == 1:
        return np.ones(1), np.ones(1), np.ones(1)
    order = np.random.default_rng(number)  # the same contexts in every log
    share = 1 / np.arange(1, number + 1)
    eta, factor = np.linspace(0.7, 1.5, number), np.linspace(0.6, 1.0, number)
    return order.permutation(eta), order.permutation(factor), share / share.sum()
