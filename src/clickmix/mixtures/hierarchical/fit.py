"""Fit: a model with a given number of grades and given effects.   Cells -> Model"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit, gammaln, logit

from clickmix.mixtures.hierarchical.cells import Cells, Places
from clickmix.mixtures.hierarchical.climb import GAIN, START_STEPS, Look, climb, first_models
from clickmix.mixtures.hierarchical.problem import Effects, Model
from clickmix.mixtures.hierarchical.walk import Walk

FIRST = {"log s": float(np.log(0.3)), "log t": float(np.log(0.5)), "d": 4.0, "k": 0.3}
REACH = 0.5  # relevance of the higher of two grades on the scale of more: people click some documents more still
START_CELLS = 60_000  # that starts are tried on, about
CONTEXT_CLICKS = 30.0  # clicks of a place that its share in its context's level counts for, to begin with


def fit(
    cells: Cells,
    *,
    grades: int = 2,
    effects: Effects | None = None,
    start: Model | None = None,
    look: Look | None = None,
    gain: float = GAIN,
) -> tuple[Model, Look]:
    """A model with this number of grades and these effects, from a start that may have others.

    `look` is where queries are seen to be under some model with attention.
    """
    if start is None:
        start = climb(cells, first(cells), gain=gain)[0]
        if effects and grades > 2:  # grades would explain what effects do, and not come back from there
            start, look = fit(cells, effects=effects, start=start, gain=gain)
    changed = with_effects(with_grades(start, grades), effects or start.effects)
    return climb(cells, changed, look, gain=gain)


def first(cells: Cells) -> Model:
    """A start with two grades; of several contexts, from a fit that takes them for one."""
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


def with_effects(model: Model, effects: Effects) -> Model:
    """The same model with other effects, new ones as they are to begin with."""
    k = len(model.places)
    numbers = (
        FIRST
        | {"cap": float(model.x[k : 2 * k].max())}
        | dict(zip(model.effects.numbers, model.numbers.tolist(), strict=True))
    )
    return replace(model, effects=effects, numbers=np.array([numbers[name] for name in effects.numbers]), trace=())


def with_grades(model: Model, grades: int) -> Model:
    """A model of two grades with more: what was the higher one lies in the middle, and grades around it are binomial.

    Starts that leave it at the top end in a worse place: the rates of the top have far to go.
    """
    if grades == model.grades:
        return model
    k, where = len(model.places), len(model.knots[0])
    low, high = model.rates
    higher = np.minimum(low + (high - low) / REACH, (1 + high) / 2)
    prior = model.x[2 * k : 2 * k + where + len(model.knots[1]) - 1]
    g = np.arange(1, grades)[:, None]
    ways = gammaln(grades) - gammaln(g + 1) - gammaln(grades - g)
    logits = np.hstack([ways + g * logit(REACH * expit(prior[:where])), g / (grades - 1) * prior[where:]])
    x = np.concatenate([model.x[:k], logit(higher), logits.ravel(), model.x[2 * k + len(prior) :]])
    walk = Walk.of(model.places, model.knots, grades=grades)
    return replace(model, grades=grades, x=x, walk=walk, errors=np.zeros(len(x)), trace=())
