"""The hierarchical model finds what a log was drawn from: grades, contexts, many places; whatever the threads."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

from cell_places import cell_places
from clickmix.mixtures.hierarchical import Cells, Effects, choose, fit, label
from clickmix.mixtures.hierarchical.climb import climb, prior_of
from clickmix.mixtures.hierarchical.fit import first, with_effects, with_grades
from clickmix.mixtures.hierarchical.nodes import Nodes
from clickmix.mixtures.hierarchical.problem import Model, Problem

ROOT = Path(__file__).parents[2]


def drawn(seed: int, *, queries: int, positions: int, contexts: int = 1, shown: int = 40) -> tuple[Cells, np.ndarray]:
    """Frozen lists, a fifth of the documents relevant; examination falls as 1/k, and less in later contexts.

    The cells, and the true log rates of both grades at their places.
    """
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(queries * positions), contexts)
    position, context = document % positions + 1, np.tile(np.arange(contexts), queries * positions)
    relevant = (rng.random(queries * positions) < 0.2)[document]
    n = rng.poisson(shown / contexts, len(document)) + 1

    def log_rates(position: np.ndarray, context: np.ndarray) -> np.ndarray:
        factor = np.linspace(1, 0.6, contexts)[context]
        return np.asarray(np.log(np.stack([0.3 * factor / position**1.5, 0.9 * factor / position])))

    c = rng.binomial(n, np.exp(log_rates(position, context))[relevant.astype(int), np.arange(len(n))])
    places, place = cell_places(position, context)
    query = np.repeat(np.arange(queries), positions)
    cells, _ = Cells.of_documents(places, query, document, place, n, c, queries=queries)
    return cells, log_rates(np.rint(places.position).astype(int), places.context)


def far_off(model: Model, truth: np.ndarray) -> float:
    """How many standard errors the farthest of the rates' logits is from the truth."""
    k = 2 * len(model.places)
    return float((np.abs(model.x[:k] - logit(np.exp(truth)).ravel()) / model.errors[:k]).max())


@pytest.mark.parametrize("contexts", [1, 6])
def test_a_cold_fit_finds_the_rates_of_every_context(contexts: int) -> None:
    cells, truth = drawn(1, queries=300, positions=8, contexts=contexts)
    model = fit(cells)[0]
    assert model.converged
    # The farthest of 16 to 96 normal deviates is beyond 5 once in 20,000 logs.
    assert far_off(model, truth) < 5


def test_places_between_knots_have_rates_of_their_own() -> None:
    cells, truth = drawn(2, queries=30, positions=90, contexts=3)
    assert len(cells.places.spread.knots) < len(cells.places)
    model = fit(cells)[0]
    assert far_off(model, truth) < 5


@pytest.mark.parametrize("effects", [Effects(), Effects("examination"), Effects(appeal=True)], ids=str)
def test_slope_between_knots_is_the_difference_quotient(effects: Effects) -> None:
    cells, _ = drawn(3, queries=30, positions=90, contexts=3)
    assert len(cells.places.spread.knots) < len(cells.places)
    model = with_effects(with_grades(first(cells), 3), effects)
    model.numbers[1:2] += 0.3  # the cap lies away from the highest rate, where the slope has a kink
    spread = np.full(cells.queries, model.attention)
    around = Nodes.around(cells, np.zeros(cells.queries), spread, shares=0.0) if effects.attention else Nodes.one(cells)
    problem = Problem(cells, model.knots, around, grades=3, effects=effects)
    steps = 1e-6 * np.eye(len(model.vector))[:: len(model.vector) // 40]
    values = [[problem.expect(model.vector + sign * step).value for sign in (1, -1)] for step in steps]
    slope = problem.expect(model.vector).slope[:: len(model.vector) // 40]
    np.testing.assert_allclose(slope, [(up - down) / 2e-6 for up, down in values], rtol=1e-4, atol=1e-3)


def test_parameters_of_places_are_those_of_all_their_knots() -> None:
    cells, truth = drawn(3, queries=30, positions=90, contexts=3)
    spread = cells.places.spread
    assert len(spread.knots) < len(cells.places)
    curves = np.stack([np.interp(spread.curve, np.log(cells.places.position[:90]), end[:90]) for end in truth])
    x = np.concatenate([logit(np.exp(truth)).ravel(), np.zeros(4), curves.ravel()])
    free = spread.free(x)
    assert len(free) == 2 * len(spread.knots) + 4 + 2 * len(spread.curve)
    # Log rates are lines in log position here, so that nothing is lost between knots.
    np.testing.assert_allclose(spread.full(free), x, atol=1e-9)


def test_the_prior_between_knots_is_the_one_the_model_has() -> None:
    """Rates of places that are not knots are no parameters: what follows the rates in the vector comes earlier."""
    cells, _ = drawn(3, queries=30, positions=90, contexts=3)
    model = first(cells)
    assert len(cells.places.spread.knots) < len(cells.places)
    where, often = model.knots
    rates = 2 * len(cells.places)
    model.x[rates : rates + len(where)] = np.linspace(-3, 2, len(where))
    model.x[rates + len(where) : rates + len(where) + len(often) - 1] = 0
    at, shown = np.log(cells.places.position)[cells.place], cells.impressions
    logits = cells.per_pattern(shown * np.interp(at, where, np.linspace(-3, 2, len(where)))) / cells.per_pattern(shown)
    np.testing.assert_allclose(prior_of(model, cells)[1], expit(logits), atol=1e-12)


def test_more_grades_end_as_high_as_from_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    worlds, kinds = importlib.import_module("worlds"), importlib.import_module("world_kinds")
    world = worlds.make("frozen-graded", seed=2, impressions=200_000)
    places, place = cell_places(world.position, world.context)
    columns = world.document, place, world.impressions, world.clicks
    query = np.unique(world.query, return_inverse=True)[1]
    cells, entry = Cells.of_documents(places, query, *columns, queries=int(query.max()) + 1)
    found = fit(cells, grades=5)[0]
    kind, k = kinds.KINDS["frozen-graded"], np.arange(1, 21)
    ends = [kinds.rate(kind, np.array(x), k, np.zeros(20, dtype=int), np.array(0.0)) for x in (0.0, 1.0)]
    prior = kinds.prior(
        kind, np.clip(np.rint(np.exp(found.knots[0])).astype(int), 1, 20), np.zeros(len(found.knots[0]))
    )
    logits = np.hstack([np.log(prior[:, 1:] / prior[:, :1]).T, np.zeros((4, len(found.knots[1]) - 1))])
    start = Model(**{**vars(found), "x": np.concatenate([logit(np.concatenate(ends)), logits.ravel()]), "trace": ()})
    # A climb stops where a round brings less than .3; the walk is estimated again in each.
    assert found.trace[-1] > climb(cells, start)[0].trace[-1] - 3
    assert world.error(label(found, cells).relevance[entry]) < 1.05 * world.error(world.limit)


def test_robots_in_some_queries_choose_no_model_for_the_others() -> None:
    cells, _ = drawn(4, queries=200, positions=8)
    query, document, place, n, c = cells.rows()
    clicked = np.where(query[document] % 16 == 0, np.random.default_rng(0).binomial(n.astype(int), 0.3), c)
    mixed, _ = Cells.of_documents(cells.places, query, document, place, n, np.minimum(clicked, n), queries=200)
    model = choose(mixed, rng=np.random.default_rng(0))
    assert not model.effects.shares
    assert model.grades == 2


def test_a_model_says_which_share_of_the_queries_it_was_fitted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, _ = drawn(7, queries=400, positions=8)
    assert choose(cells, rng=np.random.default_rng(0)).share == 1
    fitted: list[int] = []
    sample = Cells.sample

    def recorded(cells: Cells, queries: np.ndarray) -> Cells:
        fitted.append(len(queries))
        return sample(cells, queries)

    monkeypatch.setattr(Cells, "sample", recorded)
    monkeypatch.setattr(importlib.import_module("clickmix.mixtures.hierarchical.choose"), "MOST_FITTED", cells.work / 4)
    assert choose(cells, rng=np.random.default_rng(0)).share == fitted[0] / 400 < 0.5


def test_the_number_of_threads_changes_nothing() -> None:
    code = (
        "import hashlib, numpy as np, test_hierarchical_recovery as t;"
        "cells, _ = t.drawn(5, queries=60, positions=20, contexts=3);"
        "model = t.choose(cells, rng=np.random.default_rng(0));"
        "print(hashlib.sha256(model.x.tobytes() + t.label(model, cells).relevance.tobytes()).hexdigest())"
    )
    folders = [str(Path(__file__).parent), *(path for path in sys.path if path)]
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)} | dict.fromkeys(THREADS, number),
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for number in ("1", "2")
    ]
    assert found[0] == found[1]


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def test_a_document_shown_once_is_as_uncertain_as_its_prior() -> None:
    cells, _ = drawn(6, queries=200, positions=4)
    query, document, place, n, c = cells.rows()
    n[document == 3], c[document == 3] = 1, 0
    thin, entry = Cells.of_documents(cells.places, query, document, place, n, c, queries=200)
    model = fit(thin)[0]
    found = label(model, thin)
    low, high = found.low[entry[3]], found.high[entry[3]]
    relevance = found.relevance[entry[3]]
    # One skip at position 4 leaves the odds of a fifth nearly as they were: (1 - .225) / (1 - .0375) of them.
    assert (low, high) == (0, 1)
    assert relevance == pytest.approx(expit(logit(0.2) + np.log((1 - 0.225) / (1 - 0.0375))), abs=0.08)
