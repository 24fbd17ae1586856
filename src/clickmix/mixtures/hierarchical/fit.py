"""Fit a model with a given number of grades and given effects.   Cells -> Model"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.special import expit, gammaln, logit

from clickmix.mixtures.hierarchical.cells import Cells, Places
from clickmix.mixtures.hierarchical.climb import GAIN, START_STEPS, Look, climb, first_models, prior_of
from clickmix.mixtures.hierarchical.problem import Effects, Model
from clickmix.mixtures.hierarchical.sharing import Walk
from clickmix.types import Ints

FIRST = {"log s": float(np.log(0.3)), "log t": float(np.log(0.5)), "d": 4.0, "k": 0.3}
# Where two grades begin on the relevance scale of more grades.
ENDS = ((0.0, 0.35), (0.0, 0.5), (0.0, 0.7), (0.0, 1.0), (0.5, 1.0))
RARE = 1.5  # log odds: an added grade starts this much rarer than its neighbour
TRIED_CELLS, PROMISING = 4_000, 2  # about how many cells starts are tried on, and how many starts go on
EXTREMES = 0.02, 0.98  # quantiles of documents, whose rates lie at the ends
FURTHEST = 20.0  # factor: how far the ends may lie from the mean rate, or from 1
SMALLEST_RATE, LEAST_LEFT, TINY = 1e-6, 0.05, 1e-12
LEAST_FALL = 4.0  # factor: how far the lowest rate falls at most, if there may be documents below both grades
START_CELLS = 60_000  # about how many cells starts are tried on
CONTEXT_CLICKS = 30.0  # clicks at a place that the rate of all contexts counts for at the start


def fit(
    cells: Cells,
    *,
    grades: int = 2,
    effects: Effects | None = None,
    start: Model | None = None,
    look: Look | None = None,
    gain: float = GAIN,
) -> tuple[Model, Look]:
    """Fit a model with this number of grades and these effects, from a start that may have others.

    `look` says where queries were seen to be under some model with attention.
    """
    if start is None:
        start = climb(cells, first(cells), gain=gain)[0]
        if effects and grades > 2:  # otherwise grades would explain what effects do, and not recover from that
            start, look = fit(cells, effects=effects, start=start, gain=gain)
    start = with_effects(start, effects or start.effects)
    while start.grades < grades:  # two grades become the wanted number at once; three or more grow one by one
        start, look = _finer(cells, start, look, grades)
    return climb(cells, start, look, gain=gain)


def _finer(cells: Cells, start: Model, look: Look | None, grades: int) -> tuple[Model, Look]:
    """The most promising start with more grades: all climb a few steps on some queries, and the best go on.

    With three grades or more, a new one lies above the highest or below the lowest, or all move closer together.
    """
    if start.grades > 2:
        further = [climb(cells, each, look, rounds=1) for each in _one_more(start)]
        return max(further, key=lambda found: found[0].trace[-1])
    queries = np.arange(0, cells.queries, 1 + len(cells.pattern) // TRIED_CELLS)
    some, seen = cells.sample(queries), look and Look(look.mean[queries], look.deviation[queries])
    starts = [*(with_grades(start, grades, ends) for ends in ENDS), _between_extremes(some, start, grades)]
    tried = [climb(some, each, seen, rounds=1, steps=START_STEPS, hold=True)[0] for each in starts]
    best = sorted(tried, key=lambda model: -model.trace[-1])[:PROMISING]
    further = [climb(cells, replace(model, trace=()), look, rounds=1) for model in best]
    return max(further, key=lambda found: found[0].trace[-1])


def first(cells: Cells) -> Model:
    """A start with two grades; with several contexts, from a fit that treats them as one."""
    if not cells.places.context.any():
        starts = first_models(cells)
        some = cells.sample(np.arange(0, cells.queries, 1 + len(cells.pattern) // START_CELLS))
        tried = [climb(some, model, rounds=1, steps=START_STEPS)[0] for model in starts]
        return max(tried, key=lambda model: model.trace[-1])
    position, at = np.unique(cells.places.position, return_inverse=True)
    one = replace(cells, places=Places(position, np.zeros(len(position), dtype=np.int64)), place=at[cells.place])
    joint = climb(one, first(one), gain=10 * GAIN)[0]
    shown, clicks = (cells.per_place(part) for part in (cells.impressions, cells.clicks))
    mean = (one.per_place(cells.clicks) / one.per_place(cells.impressions))[at] + np.finfo(float).tiny
    factor = np.log((clicks + CONTEXT_CLICKS) / (shown * mean + CONTEXT_CLICKS))
    k, logs = len(position), np.log(joint.rates)
    own = logit(np.minimum(np.exp(logs[:, at] + factor), (1 + np.exp(logs[:, at])) / 2))
    curves = [np.interp(cells.places.spread.curve, np.log(position), end) for end in logs]
    x = np.concatenate([own.ravel(), joint.x[2 * k :], *curves])
    walk = Walk.of(cells.places, joint.knots, grades=2)
    return replace(joint, places=cells.places, x=x, walk=walk, errors=np.zeros(len(x)), trace=())


def with_effects(model: Model, effects: Effects, first: Mapping[str, float] = FIRST) -> Model:
    """The same model with other effects; new ones have their first values."""
    k = len(model.places)
    numbers = (
        dict(first)
        | {"cap": float(model.x[k : 2 * k].max())}
        | dict(zip(model.effects.numbers, model.numbers.tolist(), strict=True))
    )
    return replace(model, effects=effects, numbers=np.array([numbers[name] for name in effects.numbers]), trace=())


def with_grades(model: Model, grades: int, ends: tuple[float, float] = (0.0, 0.5)) -> Model:
    """A model of two grades with more of them: the two had the relevance `ends`, grades around them are binomial."""
    if grades == model.grades:
        return model
    k, where = len(model.places), len(model.knots[0])
    low, high = model.rates
    slope = (high - low) / (ends[1] - ends[0])
    lowest = np.maximum(low - ends[0] * slope, low / LEAST_FALL)
    highest = np.minimum(low + (1 - ends[0]) * slope, (1 + high) / 2)
    prior = model.x[2 * k : 2 * k + where + len(model.knots[1]) - 1]
    g = np.arange(1, grades)[:, None]
    ways = gammaln(grades) - gammaln(g + 1) - gammaln(grades - g)
    mean = ends[0] + (ends[1] - ends[0]) * expit(prior[:where])
    logits = np.hstack([ways + g * logit(mean), g / (grades - 1) * prior[where:]])
    x = np.concatenate([logit(lowest), logit(highest), logits.ravel(), model.x[2 * k + len(prior) :]])
    walk = Walk.of(model.places, model.knots, grades=grades)
    return replace(model, grades=grades, x=x, walk=walk, errors=np.zeros(len(x)), trace=())


def _one_more(model: Model) -> list[Model]:
    """Starts with one more grade: above the others, below them, or between the same ends."""
    k, before = len(model.places), model.grades
    width = len(model.knots[0]) + len(model.knots[1]) - 1
    low, high = model.rates
    step = (high - low) / (before - 1)
    eta = np.vstack([np.zeros(width), model.x[2 * k : 2 * k + (before - 1) * width].reshape(-1, width)])
    rare = np.zeros(width)
    rare[: len(model.knots[0])] = RARE
    at, between = np.linspace(0, before - 1, before + 1), np.arange(before)
    starts = (
        (low, np.minimum(high + step, (1 + high) / 2), np.vstack([eta, eta[-1] - rare])),
        (np.maximum(low - step, low / LEAST_FALL), high, np.vstack([eta[0] - rare, eta])),
        (low, high, np.stack([np.interp(at, between, column) for column in eta.T], axis=1)),
    )
    walk = Walk.of(model.places, model.knots, grades=before + 1)
    curves = model.x[2 * k + (before - 1) * width :]
    found = []
    for lowest, highest, logits in starts:
        x = np.concatenate([logit(lowest), logit(highest), (logits[1:] - logits[0]).ravel(), curves])
        found.append(replace(model, grades=before + 1, x=x, walk=walk, errors=np.zeros(len(x)), trace=()))
    return found


def _between_extremes(cells: Cells, model: Model, grades: int) -> Model:
    """Grades between the rates of the least and most clicked documents of each place, without what chance adds.

    If there are truly more than two grades, two can mean one thing at one place and another at the next.
    """
    seen, documents = cells.clicks / cells.impressions, cells.per_place(np.ones(len(cells.clicks)))
    # A place without any document in the sample gets the mean of all places.
    mean = np.where(
        documents > 0, cells.per_place(seen) / np.maximum(documents, 1), seen @ cells.weight / documents.sum()
    )
    mean = np.clip(mean, SMALLEST_RATE, 1 - SMALLEST_RATE)
    spread = cells.per_place((seen - mean[cells.place]) ** 2) + TINY
    chance = cells.per_place((mean * (1 - mean))[cells.place] / cells.impressions)
    left = np.sqrt(np.clip(1 - chance / spread, LEAST_LEFT, 1))
    order = np.lexsort((seen, cells.place))
    reached = np.cumsum(cells.weight[order])
    begin = np.cumsum(documents) - documents
    last = len(order) - 1
    ends = [seen[order][np.minimum(np.searchsorted(reached, begin + share * documents), last)] for share in EXTREMES]
    low = np.clip(mean + left * (ends[0] - mean), mean / FURTHEST, 0.98 * mean)
    high = np.clip(mean + left * (ends[1] - mean), 1.02 * mean, 1 - (1 - mean) / FURTHEST)
    k, where, often = len(mean), *map(len, model.knots)
    g = np.arange(1, grades)[:, None]
    ways = gammaln(grades) - gammaln(g + 1) - gammaln(grades - g)
    share = float(documents @ ((mean - low) / (high - low)) / documents.sum())
    logits = np.hstack([np.repeat(ways + g * logit(share), where, axis=1), np.zeros((grades - 1, often - 1))])
    curves = model.x[2 * k + where + often - 1 :]
    x = np.concatenate([logit(low), logit(high), logits.ravel(), curves])
    walk = Walk.of(model.places, model.knots, grades=grades)
    return replace(model, grades=grades, x=x, walk=walk, errors=np.zeros(len(x)), trace=())


def with_flat_prior(model: Model, cells: Cells) -> Model:
    """The same model with one prior for all documents: the mean of their priors."""
    k, priors = len(model.places), (model.grades - 1) * (len(model.knots[0]) + len(model.knots[1]) - 1)
    shares = prior_of(model, cells) @ cells.multiplicity
    knots = np.zeros(1), np.zeros(1)
    x = np.concatenate([model.x[: 2 * k], np.log(shares[1:] / shares[0]), model.x[2 * k + priors :]])
    walk = Walk.of(model.places, knots, grades=model.grades)
    return replace(
        model, knots=knots, x=x, walk=walk, errors=np.concatenate([model.errors[: 2 * k], np.zeros(len(x) - 2 * k)])
    )


def with_places(model: Model, places: Places, source: Ints) -> Model:
    """The same model at other places; each new place begins as the old one whose number `source` has."""
    k = len(model.places)
    priors = model.x[2 * k : 2 * k + (model.grades - 1) * (len(model.knots[0]) + len(model.knots[1]) - 1)]
    own = model.x[: 2 * k].reshape(2, -1)[:, source]
    curve, at = places.spread.curve, np.log(places.position)
    order = np.argsort(at, kind="stable")
    logs = np.log(expit(own))[:, order]
    curves = [np.interp(curve, at[order], end) for end in logs] if places.context.any() else []
    x = np.concatenate([own.ravel(), priors, *curves])
    walk = Walk.of(places, model.knots, grades=model.grades)
    return replace(model, places=places, x=x, walk=walk, errors=np.zeros(len(x)), trace=())
