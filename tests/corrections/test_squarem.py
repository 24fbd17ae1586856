"""EM that leaps: many parameters that converge in different ways, and a likelihood that never falls."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from clickmix.corrections.click_models.em import run_em
from clickmix.types import Floats

HALF = 250
LEFT = np.linspace(0.3, 0.97, HALF)  # what a step leaves of the first parameters' way to log-odds of 0
FADING = np.linspace(0.7, 0.99, HALF)  # by how much the others shrink on their way to 0


def step(probabilities: Floats) -> tuple[Floats, float]:
    """An EM step and the log-likelihood before it: some parameters settle at 1/2, others fade away."""
    x, fading = logit(probabilities[:HALF]), probabilities[HALF:]
    return np.concatenate([expit(LEFT * x), FADING * fading]), -1 - float(x @ x) / HALF - float(fading.mean())


def test_leaps_save_steps_where_parameters_converge_in_different_ways() -> None:
    """One length serves all. What fades away asks for long leaps, which would carry others past the top every time."""
    calls = 0

    def counted(probabilities: Floats) -> tuple[Floats, float]:
        nonlocal calls
        calls += 1
        return step(probabilities)

    start = np.concatenate([expit(np.full(HALF, 2.0)), np.full(HALF, 0.3)])
    ascent = run_em(counted, start, tolerance=1e-7, max_steps=500)
    point, steps = start, 0
    while step(point)[1] < ascent.log_likelihoods[-1]:
        point, steps = step(point)[0], steps + 1
    assert ascent.converged
    assert calls < steps / 3
    assert (np.diff(ascent.log_likelihoods) >= 0).all()
