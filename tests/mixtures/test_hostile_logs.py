"""Logs that few would draw: no warning, and a model with finite numbers."""

from __future__ import annotations

import numpy as np

from clickmix import Counts, MixtureCorrection


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
