"""Share strength between neighbouring positions: groups fitted together, their parameters wandering down the page.

Where clicks are few a group's own clicks leave its rates and weights undetermined, and its neighbours know. Per kind
of parameter phi (weights' logits, logarithms of the lowest and the highest rate), from a position k to the next k':
    phi(k') - phi(k) ~ Normal(drift t, deviation^2 t),   t = log k' - log k
Rates that fall like a power of the position are drift alone. Drift and deviation are estimated from the log itself,
by EM with the groups' parameters as what nobody saw and their posterior taken as normal (Laplace). Many clicks
overrule it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clickmix.mixtures.fit import LARGEST_LOGIT
from clickmix.mixtures.observations import Floats, Ints, Observations
from clickmix.mixtures.surfaces import Surfaces, group_surfaces, rising

FIRST_DEVIATION = 0.3
LEAST_DEVIATION = 0.02
ROUNDS, WALK_ROUNDS, FEWEST_ROUNDS = 60, 8, 8  # Newton's steps; those after which the walk is estimated anew
RIDGE = 1e-9
GAIN = 0.01  # of the log-likelihood: the least a step must bring


@dataclass(frozen=True)
class Walk:
    """Edges between neighbouring groups (from, to, span of log position); per kind of parameter drift and deviation.

    `chains` are the groups that edges link, one after the other: those of one context.
    """

    chains: tuple[Ints, ...]
    start: Ints
    end: Ints
    span: Floats
    drift: Floats
    deviation: Floats

    @classmethod
    def between(cls, positions: Sequence[int], contexts: Sequence[object], *, kinds: int) -> Walk:
        """Neighbours are groups of one context, one after the other in position."""
        order = sorted(range(len(positions)), key=lambda g: (str(contexts[g]), positions[g]))
        edges = [(a, b) for a, b in itertools.pairwise(order) if contexts[a] == contexts[b]]
        start, end = np.array(edges, dtype=np.int64).reshape(-1, 2).T
        at = np.log(np.asarray(positions, dtype=np.float64))
        grouped = itertools.groupby(order, key=lambda g: contexts[g])
        chains = tuple(np.array(list(members), dtype=np.int64) for _, members in grouped)
        return cls(chains, start, end, at[end] - at[start], np.zeros(kinds), np.full(kinds, FIRST_DEVIATION))

    def density(self, phi: Floats) -> tuple[float, Floats]:
        """The log density of the steps, up to a constant, and its slope in phi (group x kind)."""
        scale = self.deviation * np.sqrt(self.span)[:, None]
        off = (phi[self.end] - phi[self.start] - self.drift * self.span[:, None]) / scale
        slope = np.zeros_like(phi)
        np.add.at(slope, self.start, off / scale)
        np.add.at(slope, self.end, -off / scale)
        return float(-(off**2).sum() / 2), slope

    def precision(self, groups: int) -> Floats:
        """Kind x group x group: minus the second derivative of the log density."""
        steps = np.zeros((len(self.span), groups))
        edge = np.arange(len(self.span))
        steps[edge, self.end], steps[edge, self.start] = 1.0, -1.0
        return np.stack([steps.T @ (steps / (d**2 * self.span)[:, None]) for d in self.deviation])

    def estimated(self, phi: Floats, covariance: Floats) -> Walk:
        """The walk that fits parameters known as phi, give or take `covariance` (kind x group x group)."""
        steps = phi[self.end] - phi[self.start]
        drift = steps.sum(axis=0) / self.span.sum()
        spread = np.stack(
            [c[self.end, self.end] + c[self.start, self.start] - 2 * c[self.end, self.start] for c in covariance]
        )
        variance = (((steps - drift * self.span[:, None]) ** 2 + spread.T) / self.span[:, None]).mean(axis=0)
        return replace(self, drift=drift, deviation=np.maximum(np.sqrt(variance), LEAST_DEVIATION))


@dataclass(frozen=True)
class Shared:
    """Per group a row of parameters, as its problem packs them, its log-likelihood, and how many it determines itself.

    `own` counts parameters that a group's own clicks determine; the rest is known from its neighbours. `bic` is of all
    groups together, to compare numbers of grades by.
    """

    parameters: Floats
    log_likelihoods: Floats
    own: Floats
    bic: float
    walk: Walk
    converged: bool


def fit_shared(blocks: Sequence[Observations], parameters: Floats, walk: Walk) -> Shared:
    """From a row of parameters per group: a step to better ones given the walk, the walk given those, in turn."""
    x = parameters
    surfaces = group_surfaces(blocks, x)
    for rounds in range(ROUNDS):
        x, surfaces, gain = _newton(blocks, x, surfaces, walk)
        if gain < GAIN and rounds >= FEWEST_ROUNDS:
            break
        if rounds < WALK_ROUNDS:
            phi, step = _phi(x)
            inverse = _inverse(surfaces, walk, step)
            covariance = np.stack([inverse[:, j, :, j] * np.outer(step[:, j], step[:, j]) for j in range(x.shape[1])])
            walk = walk.estimated(phi, covariance)
    inverse = _inverse(surfaces, walk, _phi(x)[1])
    own = np.einsum("gigj,gji->g", inverse, rising(surfaces.information))
    return Shared(x, surfaces.value, own, _bic(blocks, surfaces, walk, x), walk, gain < GAIN)


def _newton(
    blocks: Sequence[Observations], x: Floats, surfaces: Surfaces, walk: Walk
) -> tuple[Floats, Surfaces, float]:
    """One of Newton's steps up log-likelihood plus the walk's log density, halved until it gains; what it gained."""
    phi, step = _phi(x)
    density, pull = walk.density(phi)
    value = float(surfaces.value.sum()) + density
    slope = surfaces.slope + pull * step
    direction = np.einsum("gihj,hj->gi", _inverse(surfaces, walk, step), slope)
    for halvings in range(20):
        candidate = np.clip(x + direction / 2**halvings, -LARGEST_LOGIT, LARGEST_LOGIT)
        there = group_surfaces(blocks, candidate)
        gain = float(there.value.sum()) + walk.density(_phi(candidate)[0])[0] - value
        if gain > 0:
            return candidate, there, gain
    return x, surfaces, 0.0


def _phi(x: Floats) -> tuple[Floats, Floats]:
    """Group x kind: the parameters on the walk's scale, logarithms for rates, and how fast they change with x."""
    weights, logits = x[:, :-2], x[:, -2:]
    log_rates = -np.logaddexp(0, -logits)
    return np.hstack([weights, log_rates]), np.hstack([np.ones_like(weights), -np.expm1(log_rates)])


def _precisions(surfaces: Surfaces, walk: Walk, step: Floats) -> Iterator[tuple[Ints, Floats]]:
    """Per chain of groups what clicks and walk say together: minus the second derivative in x, group after group."""
    groups, kinds = step.shape
    precision, known = walk.precision(groups), rising(surfaces.information)
    for chain in walk.chains:  # nothing links one chain with another
        total = np.zeros((len(chain), kinds, len(chain), kinds))
        own = np.arange(len(chain))
        total[own, :, own, :] = known[chain]
        for j in range(kinds):
            total[:, j, :, j] += precision[j][np.ix_(chain, chain)] * np.outer(step[chain, j], step[chain, j])
        size = len(chain) * kinds
        # The ridge: a direction in which nothing is known stays where it is.
        yield chain, total.reshape(size, size) + RIDGE * np.eye(size)


def _inverse(surfaces: Surfaces, walk: Walk, step: Floats) -> Floats:
    """Group x kind x group x kind: the covariance of x, of what the clicks and the walk say together."""
    groups, kinds = step.shape
    inverse, every = np.zeros((groups, kinds, groups, kinds)), np.arange(kinds)
    for chain, precision in _precisions(surfaces, walk, step):
        found = np.linalg.inv(precision).reshape(len(chain), kinds, len(chain), kinds)
        inverse[np.ix_(chain, every, chain, every)] = found
    return inverse


def _bic(blocks: Sequence[Observations], surfaces: Surfaces, walk: Walk, x: Floats) -> float:
    """-2 log of the probability of the clicks given the walk, and log(steps) for each number the walk is known by.

    The groups' parameters are integrated out (Laplace). Where a chain begins is known from its documents alone: its
    prior weighs as much as one of them (unit information), which makes of it the log(documents) of the usual BIC.
    """
    phi, step = _phi(x)
    documents = np.concatenate([block.per_group(np.ones_like(block.clicks)) for block in blocks])
    known = np.diagonal(rising(surfaces.information), axis1=1, axis2=2) / step**2
    log_evidence = float(surfaces.value.sum()) + walk.density(phi)[0]
    log_evidence -= (np.log(walk.deviation).sum() * 2 * len(walk.span) + len(walk.drift) * np.log(walk.span).sum()) / 2
    log_evidence += np.log(step).sum()
    for chain, precision in _precisions(surfaces, walk, step):
        unit = np.maximum(known[chain].sum(axis=0), RIDGE) / documents[chain].sum()
        log_evidence += (np.log(unit).sum() - np.linalg.slogdet(precision)[1]) / 2
    return float(-2 * log_evidence + 2 * len(walk.drift) * np.log(len(walk.span)))
