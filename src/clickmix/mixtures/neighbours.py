"""Fit the groups of a page with strength shared between neighbours; choose how many grades there are.   -> Neighbours

The number of grades is chosen by the BIC of the whole walk down the page (mixtures/sharing.py); whether a group has one
rate only, by -2 log-likelihood + (parameters that its own clicks determine) x log(documents).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clickmix.groups.observations import Observations
from clickmix.mixtures.curvature import in_blocks
from clickmix.mixtures.em import climb, set_out
from clickmix.mixtures.families import Binomial
from clickmix.mixtures.kinds.kind import GRADES, STRONG
from clickmix.mixtures.mixture import Mixture, Verdict
from clickmix.mixtures.problem import Problem
from clickmix.mixtures.sharing import Shared, Walk, fit_shared
from clickmix.mixtures.single import describe, one_rate_log_likelihoods, one_rate_mixture
from clickmix.mixtures.starts import starts
from clickmix.types import Floats

DECISIVE = 100.0  # beyond it nobody need look further
FEWEST_STEPS = 3  # from one position to the next, that a walk can be estimated from
NO_GAP = 1e-6  # of logits: rates this near are one
ROUGHLY, ROUGHLY_EACH = 0.1, 0.005  # log-likelihood, of all groups and of each: good enough to start from


@dataclass(frozen=True)
class Neighbours:
    """A mixture for every group, all with the same number of grades, or one rate; BIC for each number looked at."""

    mixtures: tuple[Mixture, ...]
    grades: int
    bics: Mapping[int, float]


def can_share(positions: Sequence[int], contexts: Sequence[object]) -> bool:
    """Whether there are enough neighbours to learn from."""
    return len(Walk.between(positions, contexts, kinds=1).span) >= FEWEST_STEPS


def fit_neighbours(
    groups: Sequence[Observations],
    *,
    positions: Sequence[int],
    contexts: Sequence[object],
    grades: int | None = None,
) -> Neighbours:
    """Fit groups at these positions of a page; the number of grades is chosen by BIC if it is not given.

    It is the smallest that no other beats by strong evidence. Beside a given number one grade more is looked at, to
    know whether the given ones are enough.
    """
    blocks = in_blocks(groups)
    at = np.log(np.asarray(positions, dtype=np.float64))
    tried: dict[int, Shared] = {}
    bics: dict[int, float] = {}
    for g in GRADES if grades is None else range(2, min(grades + 1, GRADES[-1]) + 1):
        walk, coarser = Walk.between(positions, contexts, kinds=g + 1), tried.get(g - 1)
        first, log_likelihood = _first(groups, at, g)
        shared = fit_shared(blocks, _one_grade_more(coarser.parameters) if coarser else first, walk)
        # What the coarser scale found is a good start, unless it took a grade between for one of the ends.
        if coarser and log_likelihood > shared.log_likelihoods.sum():
            shared = min(shared, fit_shared(blocks, first, walk), key=lambda fit: fit.bic)
        tried[g], bics[g] = shared, shared.bic
        best = min(bics, key=lambda number: bics[number])
        if grades is None and (g >= best + 2 or bics[g] > bics[best] + DECISIVE):
            break
    chosen = grades or min(g for g in bics if bics[g] <= min(bics.values()) + STRONG)
    shared = tried[chosen]
    one_rate = _one_rates(groups, shared)
    members = [g for g in range(len(groups)) if not one_rate[g]]
    where = [positions[g] for g in members], [contexts[g] for g in members]
    if one_rate.any() and can_share(*where):
        # Rates that are not there should not bend those of their neighbours.
        walk = Walk.between(*where, kinds=chosen + 1)
        again = fit_shared(in_blocks([groups[g] for g in members]), shared.parameters[members], walk)
        shared = _replaced(shared, members, again)
    problems = (Problem(group, Binomial(chosen)) for group in groups)
    mixtures = [_mixture(p, shared, g, one_rate=bool(one_rate[g])) for g, p in enumerate(problems)]
    return Neighbours(tuple(mixtures), chosen, {g: bics[g] for g in bics if grades is None or g >= grades})


def _first(groups: Sequence[Observations], at: Floats, grades: int) -> tuple[Floats, float]:
    """Parameters to start from, and their log-likelihood.

    Every group has rates of its own, and weights whose logits are linear in log position.
    """
    columns = np.column_stack([np.ones(len(groups)), at])
    problem = Problem(Observations.stacked(groups), Binomial(grades), columns=columns)
    way = climb if grades == 2 else set_out  # more grades have another start, where the way up is long
    path = way(problem, starts(problem), tolerance=max(ROUGHLY, ROUGHLY_EACH * len(groups)))
    prior, parameters = problem.unpack(path.parameters)
    own = Problem(groups[0], Binomial(grades))
    rows = np.stack([own.pack((columns @ prior)[g], parameters[:, :, g : g + 1]) for g in range(len(groups))])
    # Steps that would turn the rates of a group round make them equal instead, and from there no slope leads on,
    # however clearly its documents differ: such a group starts from its own clicks.
    for g in np.flatnonzero(rows[:, -1] - rows[:, -2] < NO_GAP).tolist():
        alone = Problem(groups[g], Binomial(grades))
        rows[g] = climb(alone, starts(alone), tolerance=ROUGHLY).parameters
    return rows, path.log_likelihoods[-1]


def _one_grade_more(rows: Floats) -> Floats:
    """The same rates at the ends; each grade's weight goes to its nearest ones of the finer scale, a little to all."""
    grades = rows.shape[1]  # one more than before: grades - 1 weights and two rates, of one grade less
    old, new = np.linspace(0, 1, grades - 1), np.linspace(0, 1, grades)
    nearness = np.maximum(0, 1 - np.abs(new[:, None] - old) * (grades - 1)) + 1e-3
    logits = np.hstack([np.zeros((len(rows), 1)), rows[:, :-2]])
    weights = np.exp(logits - logits.max(axis=1, keepdims=True)) @ (nearness / nearness.sum(axis=0)).T
    return np.hstack([np.log(weights[:, 1:] / weights[:, :1]), rows[:, -2:]])


def _one_rates(groups: Sequence[Observations], shared: Shared) -> Floats:
    """Which groups one rate explains as well, by BIC: all of them where it explains the whole log as well.

    Of the whole log's fits only one is smooth down the page; that alone must not win, so both pay for no more of a
    rate than the clicks of its own group determine.
    """
    family = Binomial()
    alone = np.array([one_rate_log_likelihoods(group, family)[0] + family.constant(group) for group in groups])
    log_documents = _log_documents(groups)
    graded = -2 * shared.log_likelihoods + shared.own * log_documents
    smooth = -2 * alone + np.minimum(1, shared.own) * log_documents
    return np.asarray((graded >= -2 * alone + log_documents) | (graded.sum() >= smooth.sum() - STRONG))


def _log_documents(groups: Sequence[Observations]) -> Floats:
    return np.array([np.log(group.multiplicity.sum()) for group in groups])


def _replaced(shared: Shared, members: list[int], again: Shared) -> Shared:
    parameters, values, own = shared.parameters.copy(), shared.log_likelihoods.copy(), shared.own.copy()
    parameters[members], values[members], own[members] = again.parameters, again.log_likelihoods, again.own
    return replace(again, parameters=parameters, log_likelihoods=values, own=own)


def _mixture(problem: Problem, shared: Shared, g: int, *, one_rate: bool) -> Mixture:
    if one_rate:
        return one_rate_mixture(problem.seen, "binomial")
    mixture = describe(problem.seen, problem.family, *problem.unpack(shared.parameters[g]))
    if mixture.informative and not shared.converged:
        mixture = replace(mixture, verdict=Verdict.NOT_CONVERGED)
    return replace(mixture, own=float(shared.own[g]))
