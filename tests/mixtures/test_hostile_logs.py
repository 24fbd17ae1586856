"""Logs that few would draw: no warning, and a model with finite numbers."""

from __future__ import annotations

import numpy as np

from cell_places import cell_places
from clickmix import Counts, MixtureCorrection
from clickmix.mixtures.hierarchical import Cells, Effects, fit
from clickmix.mixtures.hierarchical.queries import Halved


def test_a_half_that_finds_impossible_what_the_other_one_shows() -> None:
    """Tens of thousands of impressions of every document, in queries that differ in attention."""
    rng = np.random.default_rng(0)
    document = np.arange(2_000)
    position, shown = document % 20 + 1, 1 + rng.permutation(2_000) * 25
    attention = np.exp(rng.normal(0, 0.6, 100))[document // 20]
    rate = np.where(rng.random(2_000) < 0.1, 0.9, 0.27) / np.sqrt(position)
    clicks = rng.binomial(shown, 1 - (1 - rate) ** attention)
    fit = MixtureCorrection().fit(Counts.from_arrays(document // 20, document, position, shown, clicks))
    assert fit.model
    assert np.isfinite([looked.score for looked in fit.model.looked]).all()


def test_a_place_of_which_a_sample_of_queries_has_no_document() -> None:
    """Only one query shows position 9, and starts of the search are tried on every fourth."""
    rng = np.random.default_rng(0)
    document = np.arange(12_040)
    lone = document >= 12_000
    query, position = np.where(lone, 1, document // 2), np.where(lone, 9, document % 2 + 1)
    clicks = rng.binomial(50 + document, rng.choice([0.1, 0.4, 0.8], len(document)) / position)
    log = Counts.from_arrays(query, document, position, 50 + document, clicks)
    fit = MixtureCorrection("graded", grades=3).fit(log)
    assert fit.model
    assert len(fit.model.positions) == 3


def test_a_fit_of_queries_with_very_many_clicks_ends() -> None:
    """The attention of each is known to a hundredth: nodes in coarse steps, or beside it, would go round in circles.

    The deviation found has a standard error of 0.4 / sqrt(2 x 400) = 0.014.
    """
    rng = np.random.default_rng(1)
    document = np.arange(4_000)
    query, position = document // 10, document % 10 + 1
    shown = rng.integers(1, 50_000, len(document))
    odds = np.where(rng.random(len(document)) < 0.1, 0.6, 0.15) / np.sqrt(position)
    odds *= np.exp(rng.normal(0, 0.4, 400))[query]
    clicks = rng.binomial(shown, odds / (1 + odds))
    places, place = cell_places(position, np.zeros_like(position))
    cells, _ = Cells.of_documents(places, query, document, place, shown, clicks, queries=400)
    model = fit(cells, effects=Effects("odds"), gain=1.0)[0]
    assert model.converged
    assert abs(model.attention - 0.4) < 4 * 0.014


def test_held_out_clicks_are_never_more_than_certain() -> None:
    """A document's prior depends on how often it was shown, and is the same where only half of it is seen."""
    rng = np.random.default_rng(0)
    document = np.arange(600)
    often = rng.random(600) < 0.5
    shown = np.where(often, 40, 20)
    clicks = rng.binomial(shown, np.where(often, 0.99, 0.01))
    places, place = cell_places(np.ones(600, dtype=int), np.zeros(600, dtype=int))
    cells, _ = Cells.of_documents(places, document // 5, document, place, shown, clicks, queries=120)
    model, look = fit(cells)
    assert (Halved.dealt(cells, rng).held(120).score(model, look) <= 1e-9).all()


def test_hundreds_of_contexts_share_what_they_learn_and_keep_their_levels() -> None:
    """Two kinds of contexts, one clicked half as often: each context's rates are those of its kind."""
    rng = np.random.default_rng(0)
    contexts, documents = 200, 200
    context = np.repeat(np.arange(contexts), documents)
    document = np.arange(len(context))
    position = document % 5 + 1
    half = np.where(context % 2 == 0, 0.5, 1.0)
    clicks = rng.binomial(60, half * np.where(rng.random(len(document)) < 0.2, 0.8, 0.2) / position)
    log = Counts.from_arrays(document, document, position, [60] * len(document), clicks, context=context)
    fit = MixtureCorrection().fit(log)
    assert len({group.places[0].place.context for group in fit.groups}) <= 60
    found = {seen.place: group.mixture.rates[1] for group in fit.groups for seen in group.places}
    off = [
        rate / (0.8 * (0.5 if int(place.context[0]) % 2 == 0 else 1) / place.position) for place, rate in found.items()
    ]
    assert len(off) == contexts * 5
    assert np.abs(np.log(off)).max() < 0.25
    assert np.sqrt(np.mean(np.log(off) ** 2)) < 0.08
