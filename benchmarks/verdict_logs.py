"""Small logs to count verdicts on: clean ones, and ones with a planted violation.   name -> VerdictLog

The plain reading of a log is that of somebody who knows the mean click rate of every grade at every place and the
share of every grade at every base position, and takes clicks as independent given these: what the best fit of one
mixture per place could give. A violation matters as far as it moves labels away from that: `movement` is the root of
the mean squared difference between the limit, which knows of the violation, and the plain reading.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

import worlds
from clickmix.types import Floats, Ints
from world_kinds import DCM, KINDS, Kind, attraction, prior, rate, second_rate
from world_limits import grid, ubm_rates

IMPRESSIONS = 200_000
REPEATS = 3  # times that a session is written into a log with repeated sessions

CLEAN = {
    **{name: KINDS[name] for name in ("frozen", "frozen-graded", "moving", "contexts-2", "contexts-5", "contexts-20")},
    "moving-steep": KINDS["moving-steep"],
    "moving-graded": Kind(noise=2.0, grades=5),
    "moving-contexts-2": Kind(noise=2.0, contexts=2),
    "thin": Kind(sessions=8),
    "thin-moving": Kind(sessions=8, noise=2.0),
    "popular": KINDS["popular"],
    "no-signal": Kind(blind_at=tuple(range(1, 21))),
}
# Clean too: queries differ. A model with effects of queries explains these, the plain reading does not.
UNEQUAL = {
    name: KINDS[name]
    for name in (
        *("attention-0.3", "attention-0.3-graded", "attention-0.6", "odds-0.3", "odds-0.6", "moving-attention-0.3"),
        *("shares-1", "shares-0.8-attention-0.3"),
    )
}
PLANTED = {
    "robots-0.5%": Kind(mixes=((0.005, 1.0),)),
    "robots-3%": KINDS["robots"],
    "robots-10%": Kind(mixes=((0.1, 1.0),)),
    "robots-few-queries": KINDS["robots-few-queries"],
    "phones": Kind(second="phones", mixes=((0.5, 1.0),)),
    "phones-by-query": Kind(second="phones", mixes=((0.2, 0.5), (0.8, 0.5))),
    "dcm": KINDS["dcm"],
    "ubm": KINDS["ubm"],
    "appeal-0.02": KINDS["appeal-0.02"],
    "appeal-0.1": KINDS["appeal-0.1"],
    "appeal-at-three": Kind(appeal=0.2, appeal_at=(3, 8, 13)),
    "blind-at-two": Kind(blind_at=(4, 11)),
    "repeated": Kind(),
}
NAMES = (*CLEAN, *UNEQUAL, *PLANTED)


@dataclass(frozen=True)
class VerdictLog:
    """A world, whether something was planted in it, and what labels are without knowing of that."""

    world: worlds.World
    planted: bool
    plain: Floats

    @property
    def movement(self) -> float:
        """Root mean square of how far the violation moves labels."""
        return float(np.sqrt(np.mean((self.plain - self.world.limit) ** 2)))


def make(name: str, *, seed: int, impressions: int = IMPRESSIONS) -> VerdictLog:
    """The log of this name."""
    kind = {**CLEAN, **UNEQUAL, **PLANTED}[name]
    if name == "repeated":
        world = worlds.world_of(kind, name=name, seed=seed, impressions=impressions // REPEATS)
        world = replace(world, impressions=REPEATS * world.impressions, clicks=REPEATS * world.clicks)
    else:
        world = worlds.world_of(kind, name=name, seed=seed, impressions=impressions)
    # Who does not know that people are blind at two positions takes them to be like their neighbours.
    read = replace(kind, blind_at=()) if name in PLANTED else kind
    return VerdictLog(world, name in PLANTED, plain_labels(read, world))


def plain_labels(kind: Kind, world: worlds.World) -> Floats:
    """Labels of the plain reading per document."""
    p = _mean_rates(kind)[:, world.position - 1, world.context]  # grade x cell
    evidence = world.clicks * np.log(p) + (world.impressions - world.clicks) * np.log1p(-p)
    of_document = np.array([np.bincount(world.document, weights=each) for each in evidence])
    joint = of_document + np.log(_mean_priors(kind, world)[:, _base(world) - 1])
    return np.asarray(kind.relevances @ np.exp(joint - logsumexp(joint, axis=0)))


def _base(world: worlds.World) -> Ints:
    """Base positions: documents of a query are numbered in their order."""
    return np.asarray(np.arange(len(world.query)) - np.searchsorted(world.query, world.query) + 1)


def _mean_rates(kind: Kind) -> Floats:
    """P(click) by grade, position and context: the mean over all that queries and sessions differ in."""
    position, x = np.arange(1, kind.top + 1), kind.relevances[:, None]
    if kind.user != "pbm":
        return np.asarray(_examined(kind, position) * attraction(x, position))[:, :, None]
    u, log_u = grid(kind.attention, mean=kind.effect_mean)
    place = (position[:, None, None], np.arange(kind.contexts)[:, None])
    p = rate(kind, x[:, :, None, None], *place, u) @ np.exp(log_u)
    second = sum(share * probability for share, probability in kind.mixes)
    return np.asarray((1 - second) * p + second * second_rate(kind, x, position)[:, :, None])


def _examined(kind: Kind, position: Ints) -> Floats:
    """P(examined) by position of DCM and UBM users. All is linear in relevances that do not depend on each other.

    So a list of documents with the mean relevance is examined as lists are in the mean.
    """
    relevance = prior(kind, position, np.zeros(kind.top)) @ kind.relevances
    attracted = attraction(relevance, position)
    if kind.user == "dcm":
        return np.cumprod(np.append(1.0, 1 - attracted[:-1] * (1 - DCM)))
    return np.asarray(ubm_rates(relevance[None])[0] / attracted)


def _mean_priors(kind: Kind, world: worlds.World) -> Floats:
    """P(grade) by base position: the mean over queries. Grade x base position."""
    position = np.arange(1, kind.top + 1)
    if kind.popular:
        log_popularity = -worlds.POPULARITY * np.log(np.arange(1, world.query[-1] + 2))
        tilt = kind.popular * (log_popularity - log_popularity.mean())
        return np.asarray(prior(kind, position[:, None], tilt).mean(axis=1).T)
    v, log_v = grid(kind.shares, points=61)
    return np.asarray(np.einsum("kvg,v->gk", prior(kind, position[:, None], v), np.exp(log_v)))
