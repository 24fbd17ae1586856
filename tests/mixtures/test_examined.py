"""Groups that are alike but for examination: recovered, better than by themselves, named where they say nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickmix.groups.observations import Observations
from clickmix.mixtures.examination import _expect, _maximise, _Point, _pooled, fit_examined
from clickmix.mixtures.mixture import Verdict
from clickmix.mixtures.single import fit_group

EXAMINATION = np.array([1.0, 0.6, 0.3])
GRADED = np.array([0.2, 0.35, 0.5, 0.65, 0.8])
SHARES = np.array([0.5, 0.3, 0.14, 0.03, 0.03])


def group(rng: np.random.Generator, *, examination: float, documents: int, shown: int = 300) -> tuple[Any, Any]:
    """A group's observations, and the true relevance of its documents, one row each."""
    grade = rng.choice(5, p=SHARES, size=documents)
    clicks = rng.binomial(shown, examination * GRADED[grade])
    ones = np.ones(documents)
    return Observations.histogram(ones * shown, clicks, ones), grade / 4


def drawn(seed: int, *, documents: int) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [group(rng, examination=e, documents=documents) for e in EXAMINATION]


def test_rates_are_recovered() -> None:
    seen = [observations for observations, _ in drawn(0, documents=3000)]
    mixtures = fit_examined(seen, grades=5)
    rates = np.array([mixture.rates for mixture in mixtures])
    # One factor for all rates of a group, exactly; 300 x 3000 impressions make each good to far less than 2 %.
    assert (rates[0] / rates[1]).std() < 1e-12
    assert rates == pytest.approx(EXAMINATION[:, None] * GRADED, rel=0.02)
    assert np.array([m.weights for m in mixtures]) == pytest.approx(np.tile(SHARES, (3, 1)), abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_small_groups_are_labelled_better_together(seed: int) -> None:
    groups = drawn(seed, documents=60)
    together = fit_examined([observations for observations, _ in groups], grades=5)
    alone = [fit_group(observations, "binomial", grades=5) for observations, _ in groups]
    errors = [
        [np.mean((m.relevance(o.impressions, o.clicks) - truth) ** 2) for m, (o, truth) in zip(ms, groups, strict=True)]
        for ms in (together, alone)
    ]
    assert np.sum(errors[0]) < np.sum(errors[1])


def test_the_likelihood_never_falls_by_more_than_what_shares_are_drawn_towards() -> None:
    """The position's shares, towards which its groups' are drawn, are those of the last step: they settle, too."""
    seen = [observations for observations, _ in drawn(1, documents=200)]
    pooled, member = _pooled(seen), np.repeat(np.arange(3), 200)
    point, values = _Point(np.full((3, 5), 0.2), np.array([0.7, 1.0, 1.3]), np.array([0.1, 0.5])), []
    for _ in range(30):
        value, posterior = _expect(pooled, member, point)
        point = _maximise(pooled, member, point, posterior)
        values.append(value)
    assert (np.diff(values) >= -0.05).all()
    assert values[-1] > values[0] + 1_000


def test_groups_that_say_nothing_are_named() -> None:
    rng = np.random.default_rng(0)
    ones = np.ones(200)
    same = [Observations.histogram(ones * 50, rng.binomial(50, rate, 200), ones) for rate in (0.3, 0.3)]
    none = Observations.histogram(ones, 0 * ones, ones)
    assert [m.verdict for m in fit_examined([*same, none], grades=2)] == [
        Verdict.ONE_RATE,
        Verdict.ONE_RATE,
        Verdict.NO_CLICKS,
    ]
    assert [m.verdict for m in fit_examined([none], grades=2)] == [Verdict.NO_CLICKS]
