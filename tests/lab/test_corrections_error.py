"""The expected error of affine labels: the formulas against simulation, limits, and the table of wrong parameters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from clickmix.corrections.affine import AffineCorrection
from clickmix.corrections.parameters import BiasParameters
from clickmix.counts.counts import Counts
from clickmix.errors import SettingError
from clickmix.lab.affine_error import affine_error, wrong_parameters
from clickmix.lab.users import PositionBased

USER = PositionBased.with_eta(1, positions=20)
TRUE = BiasParameters(USER.alpha, USER.beta)
WRONG = BiasParameters(USER.alpha * 0.8, USER.beta * 1.1)
GAMMA = 0.3
RELEVANCES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "binary": ((0.0, 1.0), (1 - GAMMA, GAMMA)),
    "graded": ((0.0, 0.25, 0.5, 0.75, 1.0), (0.52, 0.32, 0.12, 0.02, 0.02)),
}
ESTIMATES = {"true parameters": TRUE, "wrong parameters": WRONG}


def simulated(estimated: BiasParameters, kind: str, *, impressions: int, documents: int) -> NDArray[np.float64]:
    """|label - relevance| of affine labels, positions x documents; relevance drawn once per document."""
    rng = np.random.default_rng(0)
    relevance = rng.choice(RELEVANCES[kind][0], (20, documents), p=RELEVANCES[kind][1])
    p = TRUE.alpha[:, None] * relevance + TRUE.beta[:, None]
    k, d = (index.ravel() for index in np.meshgrid(np.arange(20), np.arange(documents), indexing="ij"))
    clicks = rng.binomial(impressions, p).ravel()
    counts = Counts.from_arrays(k, d, k + 1, np.full(len(k), impressions), clicks)
    estimate = AffineCorrection(estimated).label(counts).estimate
    return np.asarray(np.abs(estimate.reshape(20, documents) - relevance))


@pytest.mark.parametrize("kind", RELEVANCES)
@pytest.mark.parametrize("which", ESTIMATES)
@pytest.mark.parametrize("impressions", [1, 7, 100])
def test_the_exact_error_is_that_of_simulated_labels(impressions: int, which: str, kind: str) -> None:
    relevance, chances = RELEVANCES[kind]
    errors = simulated(ESTIMATES[which], kind, impressions=impressions, documents=4000)
    exact = affine_error(TRUE, ESTIMATES[which], relevance=relevance, chances=chances, impressions=impressions)
    z = (errors.mean(axis=1) - exact) / (errors.std(axis=1) / np.sqrt(4000))
    assert np.abs(z).max() < 5


@pytest.mark.parametrize("kind", RELEVANCES)
def test_the_limit_is_that_of_simulated_labels_with_very_many_impressions(kind: str) -> None:
    """A rate of n impressions is off by at most 1/2 / sqrt(n) on average; the shares of relevances are off as well."""
    relevance, chances = RELEVANCES[kind]
    n, documents = 10**12, 4000
    errors = simulated(WRONG, kind, impressions=n, documents=documents)
    limit = affine_error(TRUE, WRONG, relevance=relevance, chances=chances)
    bound = 0.5 / np.sqrt(n) / WRONG.alpha + 5 * errors.std(axis=1) / np.sqrt(documents)
    assert (np.abs(errors.mean(axis=1) - limit) < bound + 1e-9).all()


def test_equation_5_of_the_paper_in_its_own_letters() -> None:
    delta_alpha, delta_beta = WRONG.alpha - TRUE.alpha, WRONG.beta - TRUE.beta
    paper = (
        GAMMA * (np.abs(delta_alpha + delta_beta) - np.abs(delta_beta)) / WRONG.alpha + np.abs(delta_beta) / WRONG.alpha
    )
    assert affine_error(TRUE, WRONG, chances=(1 - GAMMA, GAMMA)) == pytest.approx(paper, rel=1e-12)


@pytest.mark.parametrize("kind", RELEVANCES)
def test_the_exact_error_goes_to_the_limit(kind: str) -> None:
    relevance, chances = RELEVANCES[kind]
    n = 20_000
    exact = affine_error(TRUE, WRONG, relevance=relevance, chances=chances, impressions=n)
    limit = affine_error(TRUE, WRONG, relevance=relevance, chances=chances)
    assert (exact >= limit - 1e-9).all()  # Jensen: the limit is the error of the mean
    assert (exact - limit <= 0.5 / np.sqrt(n) / WRONG.alpha).all()


def test_true_parameters_have_no_error_in_the_limit_and_some_before() -> None:
    assert affine_error(TRUE, TRUE, chances=(0.7, 0.3)).max() == 0
    assert affine_error(TRUE, TRUE, chances=(0.7, 0.3), impressions=1000).min() > 0.01


def test_a_table_of_wrong_parameters() -> None:
    table = wrong_parameters(TRUE, position=3, chances=(0.7, 0.3), off=(-0.2, 0.0, 0.2))
    alpha, beta = TRUE.alpha[2], TRUE.beta[2]
    assert table.error[1, 1] == 0
    assert table.error[0, 1] == pytest.approx(0.3 * 0.2 / 0.8)  # alpha alone hurts relevant documents only
    assert table.error[1, 2] == pytest.approx(0.2 * beta / alpha)  # beta alone hurts all alike
    assert table.error[2, 0] == pytest.approx((0.3 * abs(0.2 * alpha - 0.2 * beta) + 0.7 * 0.2 * beta) / (1.2 * alpha))


def test_parameters_that_cannot_be_have_no_error() -> None:
    """At position 1 alpha is .33 and beta .65, so that half as much again is too much of beta, not of alpha alone."""
    table = wrong_parameters(BiasParameters([0.33], [0.65]), position=1, chances=(0.7, 0.3), off=(-0.5, 0.0, 0.5))
    assert np.isnan(table.error).tolist() == [[False, False, True], [False, False, True], [False, True, True]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chances": (0.5, 0.6)}, "Expected relevance from 0 to 1, and chances from 0 that add up to 1."),
        (
            {"chances": (0.5, 0.2, 0.3)},
            "relevance of shape (2,), chances of shape (3,): expected one chance for each.",
        ),
        (
            {"chances": (0.5, 0.5), "impressions": 0},
            "impressions=0: expected a whole number from 1, and small enough to sum over.",
        ),
        (
            {"chances": (0.5, 0.5), "impressions": 1.5},
            "impressions=1.5: expected a whole number from 1, and small enough to sum over.",
        ),
    ],
)
def test_settings(settings: Any, message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        affine_error(TRUE, WRONG, **settings)


def test_other_positions() -> None:
    message = "True parameters for 20 positions, estimated ones for 1. Give both for the same positions."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        affine_error(TRUE, BiasParameters([1], [0]), chances=(0.5, 0.5))
    with pytest.raises(SettingError, match=re.escape("position=21: the parameters are for positions 1 to 20.")):
        wrong_parameters(TRUE, position=21, chances=(0.5, 0.5))
