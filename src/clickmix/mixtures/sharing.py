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
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clickmix.groups.observations import Observations
from clickmix.mixtures.chains import Solved, solve_chains
from clickmix.mixtures.curvature import Surfaces, group_surfaces, rising
from clickmix.mixtures.problem import LARGEST_LOGIT
from clickmix.types import Floats, Ints

FIRST_DEVIATION = 0.3
LEAST_DEVIATION = 0.02
LEAST_SPAN = 1e-6  # of log position: numbers of positions may be so large that their logarithms are the same
ROUNDS, WALK_ROUNDS, FEWEST_ROUNDS = 60, 8, 8  # Newton's steps; those after which the walk is estimated again
RIDGE = 1e-9
GAIN = 0.01  # of the log-likelihood: the least a step must bring


@dataclass(frozen=True)
class Walk:
    """Edges between neighbouring groups (from, to, span of log position); per kind of parameter drift and deviation.

    `chains` (chain x step) are the groups that edges link, one after the other: those of one context. Behind the end of
    a shorter chain stands -1.
    """

    chains: Ints
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
        grouped = [list(members) for _, members in itertools.groupby(order, key=lambda g: contexts[g])]
        chains = np.array(list(itertools.zip_longest(*grouped, fillvalue=-1)), dtype=np.int64).T
        span = np.maximum(at[end] - at[start], LEAST_SPAN)
        return cls(chains, start, end, span, np.zeros(kinds), np.full(kinds, FIRST_DEVIATION))

    def density(self, phi: Floats) -> tuple[float, Floats]:
        """The log density of the steps, up to a constant, and its slope in phi (group x kind)."""
        scale = self.deviation * np.sqrt(self.span)[:, None]
        off = (phi[self.end] - phi[self.start] - self.drift * self.span[:, None]) / scale
        slope = np.zeros_like(phi)
        np.add.at(slope, self.start, off / scale)
        np.add.at(slope, self.end, -off / scale)
        return float(-(off**2).sum() / 2), slope

    def springs(self) -> Floats:
        """Edge x kind: how firmly both ends are held together, 1 / variance of the step between them."""
        return np.asarray(1 / (self.deviation**2 * self.span[:, None]))

    def estimated(self, phi: Floats, variance: Floats) -> Walk:
        """The walk that fits parameters phi, whose steps are known up to a `variance` (edge x kind)."""
        steps = phi[self.end] - phi[self.start]
        drift = steps.sum(axis=0) / self.span.sum()
        square = (((steps - drift * self.span[:, None]) ** 2 + variance) / self.span[:, None]).mean(axis=0)
        return replace(self, drift=drift, deviation=np.maximum(np.sqrt(square), LEAST_DEVIATION))


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


@dataclass(frozen=True)
class _Point:
    """Parameters x (group x kind), and there: the groups' surfaces; x on the walk's scale, logarithms for rates.

    `step` is how fast phi changes with x; `known` (group x kind x kind) is what a group's own clicks say of its x.
    """

    x: Floats
    surfaces: Surfaces
    phi: Floats
    step: Floats
    known: Floats

    @classmethod
    def at(cls, x: Floats, blocks: Sequence[Observations]) -> _Point:
        surfaces, (phi, step) = group_surfaces(blocks, x), _phi(x)
        return cls(x, surfaces, phi, step, rising(surfaces.information))


def fit_shared(blocks: Sequence[Observations], parameters: Floats, walk: Walk) -> Shared:
    """From a row of parameters per group: a step to better ones given the walk, the walk given those, in turn."""
    point = _Point.at(parameters, blocks)
    for rounds in range(ROUNDS):
        point, gain = _newton(blocks, point, walk)
        if gain < GAIN and rounds >= FEWEST_ROUNDS:
            break
        if rounds < WALK_ROUNDS:
            walk = walk.estimated(point.phi, _solved(point, walk).step_variance)
    found = _solved(point, walk)
    own = np.einsum("gij,gji->g", found.inverse, point.known)
    bic = _bic(blocks, point, walk, found.log_determinant)
    return Shared(point.x, point.surfaces.value, own, bic, walk, gain < GAIN)


def _newton(blocks: Sequence[Observations], point: _Point, walk: Walk) -> tuple[_Point, float]:
    """One of Newton's steps up log-likelihood plus the walk's log density, halved until it gains; what it gained."""
    density, pull = walk.density(point.phi)
    value = float(point.surfaces.value.sum()) + density
    direction = _solved(point, walk, point.surfaces.slope + pull * point.step).solution
    for halvings in range(20):
        x = np.clip(point.x + direction / 2**halvings, -LARGEST_LOGIT, LARGEST_LOGIT)
        there = _Point.at(x, blocks)
        gain = float(there.surfaces.value.sum()) + walk.density(there.phi)[0] - value
        if gain > 0:
            return there, gain
    return point, 0.0


def _phi(x: Floats) -> tuple[Floats, Floats]:
    """Group x kind: the parameters on the walk's scale, logarithms for rates, and how fast they change with x."""
    weights, logits = x[:, :-2], x[:, -2:]
    log_rates = -np.logaddexp(0, -logits)
    return np.hstack([weights, log_rates]), np.hstack([np.ones_like(weights), -np.expm1(log_rates)])


def _solved(point: _Point, walk: Walk, slope: Floats | None = None) -> Solved:
    """Newton's step up a slope in x, and how well everything is known by clicks and walk together."""
    # The ridge: a direction in which nothing is known stays where it is.
    known = point.known + RIDGE * np.eye(point.x.shape[1])
    pull = np.zeros_like(point.x) if slope is None else slope
    return solve_chains(walk.chains, known, pull, walk.springs(), point.step)


def _bic(blocks: Sequence[Observations], point: _Point, walk: Walk, log_determinant: float) -> float:
    """-2 log of the probability of the clicks given the walk, and log(steps) for each number the walk is known by.

    The groups' parameters are integrated out (Laplace). Where a chain begins is known from its documents alone: its
    prior weighs as much as one of them (unit information), which makes of it the log(documents) of the usual BIC.
    """
    documents = np.concatenate([block.per_group(np.ones_like(block.clicks)) for block in blocks])
    known = np.diagonal(point.known, axis1=1, axis2=2) / point.step**2
    log_evidence = float(point.surfaces.value.sum()) + walk.density(point.phi)[0]
    log_evidence += np.log(point.step).sum() - log_determinant / 2
    log_evidence -= (np.log(walk.deviation).sum() * 2 * len(walk.span) + len(walk.drift) * np.log(walk.span).sum()) / 2
    for chain in walk.chains:
        members = chain[chain >= 0]
        unit = np.maximum(known[members].sum(axis=0), RIDGE) / documents[members].sum()
        log_evidence += np.log(unit).sum() / 2
    return float(-2 * log_evidence + 2 * len(walk.drift) * np.log(len(walk.span)))
