"""Fit: a model with a given number of grades and given effects.   Cells -> Model"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.climb import GAIN, START_STEPS, Look, climb, first_models
from clickmix.mixtures.hierarchical.problem import Effects, Model
from clickmix.mixtures.hierarchical.walk import Walk

FIRST = {"log s": float(np.log(0.3)), "log t": float(np.log(0.5)), "d": 4.0, "k": 0.3}
SPREAD = 1e-3  # of a grade's documents that every new grade gets, to begin with


def fit(
    cells: Cells,
    *,
    grades: int = 2,
    effects: Effects | None = None,
    start: Model | None = None,
    look: Look | None = None,
    gain: float = GAIN,
) -> tuple[Model, Look]:
    """A model with this number of grades and these effects, from a start that may have others."""
    if start is None:
        tried = [climb(cells, model, rounds=1, steps=START_STEPS)[0] for model in first_models(cells, grades=grades)]
        start = max(tried, key=lambda model: model.trace[-1])
        if effects:
            start = climb(cells, start, gain=gain)[0]
    changed = with_effects(with_grades(start, grades), effects or start.effects)
    return climb(cells, changed, look if changed.effects.attention == start.effects.attention else None, gain=gain)


def with_effects(model: Model, effects: Effects) -> Model:
    """The same model with other effects, new ones as they are to begin with."""
    k = len(model.places)
    first = (
        FIRST
        | {"cap": float(model.x[k : 2 * k].max())}
        | dict(zip(model.effects.numbers, model.numbers.tolist(), strict=True))
    )
    return replace(model, effects=effects, numbers=np.array([first[name] for name in effects.numbers]), trace=())


def with_grades(model: Model, grades: int) -> Model:
    """The same model with more grades: each grade's documents go to the nearest new ones, a few to all."""
    if grades == model.grades:
        return model
    old, new = np.linspace(0, 1, model.grades), np.linspace(0, 1, grades)
    k, (where, often) = len(model.places), model.knots
    width = len(where) + len(often) - 1
    priors = model.x[2 * k : 2 * k + (model.grades - 1) * width].reshape(model.grades - 1, width)
    logits = np.vstack([np.zeros(width), priors])
    near = np.maximum(0, 1 - np.abs(new[:, None] - old) * max(model.grades - 1, grades - 1)) + SPREAD
    weights = (near / near.sum(axis=0)) @ np.exp(logits - logits.max(axis=0))
    finer = np.log(weights) - np.log(weights[0])
    for column in range(len(where), width):  # what the number of impressions changes is a slope, not a level
        finer[:, column] = np.interp(new, old, logits[:, column])
    x = np.concatenate([model.x[: 2 * k], finer[1:].ravel(), model.x[2 * k + priors.size :]])
    walk = Walk.of(model.places, model.knots, grades=grades)
    return replace(model, grades=grades, x=x, walk=walk, errors=np.zeros(len(x)), trace=())
