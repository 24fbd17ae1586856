"""The climb from a start to the maximum of log-likelihood plus the walk's log density.   Cells, start -> Model

Each round places nodes around where each query is, computes a metric (information plus the walk's precision), takes
L-BFGS steps in that metric, and estimates the walk from where these led.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_expit, logit

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.nodes import Nodes, seen_at, step_of
from clickmix.mixtures.hierarchical.problem import Effects, Expected, Model, Problem
from clickmix.mixtures.hierarchical.sharing import Walk, prior_knots
from clickmix.types import Floats

ROUNDS, STEPS, START_STEPS = 12, 12, 5
GAIN = 0.3  # log-likelihood that a round must gain to go on
LAST_GAIN, LAST_ROUNDS = 0.03, 20  # the same, and most rounds, with appeal: the top is flat, and labels differ there
PRECISION = 1e-7  # share of the log-likelihood; if queries have thousands of clicks, nodes are not more exact than this
AGAIN_GAIN = 1.0  # the same, for a fit that starts where another one of the same log ended
MEMORY = 8
HIGHEST_LOG = -1e-3  # upper bound of the logarithm of a rate that attention moves
CALM = 4  # rounds after which the walk's deviations go only half of the way, as some oscillate
ONE_THREAD = 64  # rows of a matrix that LAPACK does not share between threads
FAR = 20.0  # log-likelihood: after a round that gained more, the information is computed again
LOOKS = 2  # looks at a fitted model before its nodes lie well
TRIED = 0.05  # step of an effect's number, to see how slopes change with it
LEAST_DEVIATION = 0.05  # smallest deviation of an effect
MOST_DEVIATION = 3.0
BOUNDS = {
    "log s": (np.log(LEAST_DEVIATION), np.log(MOST_DEVIATION)),
    "log t": (np.log(LEAST_DEVIATION), np.log(MOST_DEVIATION)),
    "cap": (-4.0, 8.0),
    "d": (-2.0, 14.0),
    "k": (-0.5, 1.5),
}


def climb(
    cells: Cells,
    start: Model,
    look: Look | None = None,
    *,
    rounds: int = ROUNDS,
    steps: int = STEPS,
    gain: float = GAIN,
    hold: bool = False,
) -> tuple[Model, Look]:
    """Climb from a start to the top, or for a number of rounds; also return where queries are seen from there.

    If it must `hold` them, the effects' numbers do not change.
    """
    model, trace, converged, known = start, list(start.trace), False, None
    look = look or Look.first(cells, model)
    effects = model.effects
    problem = Problem(cells, model.knots, look.nodes(cells, model), grades=model.grades, effects=effects)
    for number in range(rounds):
        if number and (effects.attention or effects.shares):
            problem = problem.at(look.nodes(cells, model))
        vector, values, inverse, seen, known = _lbfgs(problem, model, steps, gain / 4, known, hold=hold)
        known = None if values[-1] - values[0] > FAR or len(values) > steps else known
        spread, free = model.places.spread, vector[: model.walk.parameters]
        known_to = inverse[: len(free), : len(free)]
        errors = np.concatenate([spread.variances(free, known_to), np.diagonal(known_to)[2 * len(spread.knots) :]])
        numbers, errors = vector[len(free) :], np.sqrt(np.maximum(errors, 0))
        model = replace(model, x=spread.full(free), numbers=numbers, errors=errors)
        trace += values
        converged = values[-1] - values[0] < max(gain, PRECISION * abs(values[-1])) and number > 0
        if converged:
            break
        walk = model.walk.estimated(free, known_to)
        if number >= CALM:
            walk = replace(walk, deviation=np.sqrt(walk.deviation * model.walk.deviation))
        look, model = look.moved(problem, seen).centred(replace(model, walk=walk))
    return replace(model, trace=tuple(trace), converged=converged), look


def climb_again(cells: Cells, model: Model, look: Look | None = None) -> tuple[Model, Look]:
    """The same model with rates and prior fitted to other clicks of its log; queries differ as much as before."""
    walk = model.walk.of_steps(model.vector[: model.walk.parameters])
    return climb(cells, replace(model, walk=walk, trace=()), look, gain=AGAIN_GAIN, hold=True)


def climb_on(cells: Cells, model: Model) -> Model:
    """The same model fitted to more clicks: these may tell neighbouring places apart that fewer could not."""
    rounds, gain = (LAST_ROUNDS, LAST_GAIN) if model.effects.appeal else (ROUNDS, GAIN)
    return climb(cells, replace(model, walk=model.walk.freed()), rounds=rounds, gain=gain)[0]


@dataclass(frozen=True)
class Look:
    """What is known about each query's attention: mean and deviation."""

    mean: Floats
    deviation: Floats

    def centred(self, model: Model) -> tuple[Look, Model]:
        """Queries centred at 0, as they are near the top, and a model whose rates make up for it.

        Rates cannot go that far by themselves while queries stay in nodes around where they are known to be.
        """
        rates, off = 2 * len(model.places), float(self.mean.mean())
        if not model.effects.attention or abs(off) < float(np.median(self.deviation)):
            return self, model
        x = model.x.copy()
        if model.effects.attention == "odds":
            x[:rates] += off
        else:
            logs = log_expit(x[:rates])
            off = min(off, max(0.0, HIGHEST_LOG - float(logs.max())))
            x[:rates] = logs + off - np.log(-np.expm1(logs + off))
        x[len(x) - 2 * len(model.places.spread.curve) :] += off
        return Look(self.mean - off, self.deviation), replace(model, x=x)

    @classmethod
    def first(cls, cells: Cells, model: Model) -> Look:
        """The look before anything is known, moved by a few looks at a fitted model."""
        look = cls(np.zeros(cells.queries), np.full(cells.queries, model.attention))
        alike = replace(model, effects=replace(model.effects, shares=False), numbers=_without_shares(model))
        for _ in range(LOOKS if model.effects.attention else 0):
            look = look.moved(*expected(alike, cells, look))
        return look

    def wider(self) -> Look:
        """The same means with the deviations that half of the clicks leave."""
        return Look(self.mean, self.deviation * np.sqrt(2))

    def nodes(self, cells: Cells, model: Model) -> Nodes:
        """Nodes for a model: one for all queries if they are alike."""
        if not (model.effects.attention or model.effects.shares):
            return Nodes.one(cells)
        step = step_of(model.attention, appeal=model.effects.appeal)
        differ = float(model.effects.attention is not None)
        return Nodes.around(cells, differ * self.mean, differ * self.deviation, shares=model.shares, step=step)

    def moved(self, problem: Problem, expected: Expected) -> Look:
        """Where queries are, seen from some nodes."""
        if not problem.effects.attention:
            return self
        u, stride = problem.nodes.u[problem.nodes.at], np.exp(problem.nodes.log_width[:, 0])
        return Look(*seen_at(u, stride, expected.weight.sum(axis=2)))


def _without_shares(model: Model) -> Floats:
    names = model.effects.numbers
    return np.array([model.number(name) for name in names if name != "log t"])


def expected(model: Model, cells: Cells, look: Look | None = None) -> tuple[Problem, Expected]:
    """A log seen under a fitted model."""
    nodes = (look or Look.first(cells, model)).nodes(cells, model)
    problem = Problem(cells, model.knots, nodes, grades=model.grades, effects=model.effects)
    return problem, problem.expect(model.vector, slope=False)


def prior_of(model: Model, cells: Cells) -> Floats:
    """Grade x pattern: how likely each grade is before any click, in a query with the usual share."""
    problem = Problem(cells, model.knots, Nodes.one(cells), grades=model.grades, effects=Effects())
    return problem.prior(problem.split(model.places.spread.free(model.x))[1])


@dataclass(frozen=True)
class _Known:
    """What clicks say about each direction if grades are known or unknown; how slopes change with effects' numbers."""

    complete: Floats
    missing: Floats
    borders: list[Floats]

    @classmethod
    def at(cls, problem: Problem, model: Model, vector: Floats, expected: Expected, *, hold: bool) -> _Known:
        """Sum up the information, and try how slopes change with the effects' few numbers, unless these are held."""
        size = model.walk.parameters
        numbers = range(size, size if hold else len(vector))
        borders = [_border(problem, model, vector, expected, i) for i in numbers]
        return cls(*problem.information(vector, expected), borders)

    def inverse(self, held: Floats) -> Floats:
        """The inverse of what clicks and the walk know."""
        x, size = len(held), len(held) + len(self.borders)
        for less in (1.0, 0.8, 0.0):
            metric = np.zeros((size, size))
            metric[:x, :x] = held
            metric[: len(self.complete), : len(self.complete)] += self.complete - less * self.missing
            for i, border in enumerate(self.borders, start=x):
                metric[i] = metric[:, i] = border
            inverse = _inverse(metric)
            if inverse is not None:
                return inverse
        metric[x:, :x] = metric[:x, x:] = 0
        metric[x:, x:] = np.diag(np.abs(np.diagonal(metric)[x:]) + 1)
        return np.diag(1 / np.diagonal(metric))


def _border(problem: Problem, model: Model, vector: Floats, expected: Expected, i: int) -> Floats:
    """How fast all slopes fall with an effect's number."""
    there = vector.copy()
    there[i] += TRIED if vector[i] < BOUNDS[model.effects.numbers[i - model.walk.parameters]][1] - TRIED else -TRIED
    return np.asarray((expected.slope - problem.expect(there).slope) / (there[i] - vector[i]))


def _inverse(matrix: Floats) -> Floats | None:
    """The inverse of a positive definite matrix; None for any other.

    It is put together from pieces that BLAS does not share between threads: sums would depend on their number.
    """
    n = len(matrix)
    if n <= ONE_THREAD:
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return None
        found = np.linalg.inv(matrix)
        return np.asarray(found + found.T) / 2
    one, two = slice(n // 2), slice(n // 2, n)
    first = _inverse(matrix[one, one])
    if first is None:
        return None
    across = _product(first, matrix[one, two])
    last = _inverse(matrix[two, two] - _product(matrix[two, one], across))
    if last is None:
        return None
    corner = -_product(across, last)
    return np.block([[first - _product(corner, across.T), corner], [corner.T, last]])


def _product(a: Floats, b: Floats) -> Floats:
    rows = max(1, ONE_THREAD**3 // (2 * b.size))
    return np.concatenate([a[i : i + rows] @ b for i in range(0, len(a), rows)])


def _lbfgs(
    problem: Problem, model: Model, steps: int, least: float, known: _Known | None, *, hold: bool
) -> tuple[Floats, list[float], Floats, Expected, _Known]:
    """Climb from a model: where steps led, values on the way, the metric's inverse, what was seen and known there."""
    size = model.walk.parameters
    bounds = np.array([BOUNDS[name] for name in model.effects.numbers]).reshape(-1, 2)
    ends = np.stack([model.numbers, model.numbers]) if hold else bounds.T
    low, high = (np.concatenate([np.full(size, far), end]) for far, end in zip((-30.0, 30.0), ends, strict=True))

    def hill(vector: Floats) -> tuple[float, Floats, Expected]:
        seen = problem.expect(vector)
        density, pull = model.walk.density(vector[:size])
        slope = seen.slope.copy()
        slope[:size] += pull
        return seen.value + density, slope, seen

    vector = np.clip(model.vector, low, high)
    value, slope, seen = hill(vector)
    known = known or _Known.at(problem, model, vector, seen, hold=hold)
    inverse = np.zeros((len(vector), len(vector)))  # held numbers do not move
    free = len(vector) - hold * (len(vector) - size)
    inverse[:free, :free] = known.inverse(model.walk.precision(vector[:size]))
    values = [value]
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
    for _ in range(steps):
        direction = _two_loops(slope, pairs, lambda v: np.einsum("ij,j->i", inverse, v))
        blocked = ((vector <= low) & (direction < 0)) | ((vector >= high) & (direction > 0))
        direction[blocked] = 0
        for halvings in range(12):
            there = np.clip(vector + direction / 2**halvings, low, high)
            new_value, new_slope, new_seen = hill(there)
            if new_value > value:
                break
        else:
            break
        step, change = there - vector, slope - new_slope
        if step @ change > 1e-12:
            pairs.append((step, change, float(step @ change)))
        gain, vector, value, slope, seen = new_value - value, there, new_value, new_slope, new_seen
        values.append(value)
        if gain < max(least, PRECISION * abs(value) / 4):
            break
    return vector, values, inverse, seen, known


def _two_loops(slope: Floats, pairs: deque[tuple[Floats, Floats, float]], solve: Callable[[Floats], Floats]) -> Floats:
    """L-BFGS's direction, from a first guess of the inverse curvature."""
    q, kept = slope.copy(), []
    for step, change, product in reversed(pairs):
        a = float(step @ q) / product
        kept.append(a)
        q -= a * change
    q = solve(q)
    for (step, change, product), a in zip(pairs, reversed(kept), strict=True):
        q += step * (a - float(change @ q) / product)
    return q


def first_models(cells: Cells) -> list[Model]:
    """Starts with two grades, which divide every place's click rate in several ways."""
    knots = prior_knots(cells)
    walk = Walk.of(cells.places, knots, grades=2)
    shown, clicks = cells.per_place(cells.impressions), cells.per_place(cells.clicks)
    rate = (clicks + (clicks.sum() + 0.5) / (shown.sum() + 1)) / (shown + 1)
    models = []
    for share, ratio in ((0.1, 8.0), (0.3, 3.0), (0.03, 20.0), (0.7, 3.0), (0.95, 8.0)):
        low = np.minimum(rate / (1 + share * (ratio - 1)), 0.5)
        high = np.minimum(low * ratio, 0.9)
        prior = np.full(len(knots[0]) + len(knots[1]) - 1, logit(share))
        prior[len(knots[0]) :] = 0
        x = np.concatenate([logit(low), logit(high), prior])
        models.append(Model(cells.places, knots, 2, Effects(), x, np.zeros(0), walk, np.zeros(len(x))))
    return models
