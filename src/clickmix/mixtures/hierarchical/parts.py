"""Parts of labels: how much comes from the prior, from clicks and from skips.   Model, Cells -> Parts

Parts are log odds of the highest grade against the lowest. Skips count for what they would say without any click;
clicks add the rest. If queries differ, each part is the mean over what is known about the query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.climb import expected
from clickmix.mixtures.hierarchical.problem import Model, Problem
from clickmix.types import Floats


@dataclass(frozen=True)
class Parts:
    """Per entry of the cells: log odds by where they come from, log impressions and the mean log position.

    `attention` is how many times as often the query's other documents were clicked as in a usual query.
    """

    prior: Floats
    clicks: Floats
    skips: Floats
    exposure: Floats
    position: Floats
    attention: Floats


def parts(model: Model, cells: Cells) -> Parts:
    """The parts of every (query, pattern)."""
    problem, seen = expected(model, cells)
    nodes = problem.nodes
    skipped = cells.impressions - cells.clicks
    without_clicks = replace(cells, impressions=skipped, clicks=np.zeros_like(skipped))
    unclicked = Problem(without_clicks, model.knots, nodes, grades=model.grades, effects=model.effects)
    rates, scatter = problem.scattered_rates(model.vector)
    both, skips = (
        _odds(each.evidence @ each.family.table(rates, scatter).reshape(-1, model.grades))
        for each in (problem, unclicked)
    )
    usual = problem.prior(problem.split(model.vector)[1])
    prior = np.log(usual)[:, cells.entry]
    found = np.zeros((3, len(cells.query)))
    query = cells.query if len(nodes.at) > 1 else np.zeros_like(cells.query)
    for v in range(len(nodes.v)):
        for point in range(nodes.at.shape[1]):
            key = nodes.of_entry[:, point]
            of_node = [prior[-1] - prior[0] + nodes.v[v], both[key] - skips[key], skips[key]]
            found += seen.weight[query, point, v] * np.array(of_node)
    impressions = np.maximum(cells.impressions, 1)  # a document that was never shown is at a place, too
    shown = cells.per_pattern(impressions)
    position = cells.per_pattern(impressions * np.log(cells.places.position)[cells.place]) / shown
    exposure = np.log(shown)
    attention = _attention(model, cells, usual)
    return Parts(found[0], found[1], found[2], exposure[cells.entry], position[cells.entry], attention)


def _attention(model: Model, cells: Cells, prior: Floats) -> Floats:
    """Clicks on the other documents of each entry's query, divided by those of a usual query; 1 is added to both."""
    low, high = model.rates
    x = np.linspace(0, 1, model.grades)[:, None]
    rates = (1 - x) * low + x * high
    usual = cells.per_pattern(cells.impressions * (prior[:, cells.pattern] * rates[:, cells.place]).sum(axis=0))
    clicks, expected = (
        np.bincount(cells.query, own * cells.documents, cells.queries)[cells.query] - own
        for own in (cells.per_pattern(cells.clicks)[cells.entry], usual[cells.entry])
    )
    return np.asarray((clicks + 1) / (expected + 1))


def _odds(logs: Floats) -> Floats:
    return np.asarray(logs[:, -1] - logs[:, 0])
