"""Labels against known truth: the paper's users over 18,919 queries, top 20; and documents that move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickmix.corrections.mixture import MixtureCorrection
from simulation import Simulated, rmse, simulated, spread

SEEDS = range(3)  # `benchmarks/truth.py` takes more


def labels_of(log: Simulated, mixture: str) -> np.ndarray[Any, Any]:
    """Labels in the shape of the log; documents never shown keep the prior of the truth on both sides."""
    counts = log.counts()
    labels = MixtureCorrection(mixture).fit(counts).label(counts)
    out = log.prior_only.copy()
    out[labels.query_id, labels.doc_id % 100 - 1] = labels.relevance
    return out


@pytest.mark.parametrize(
    ("mixture", "eta", "clicks", "bound"),
    [
        ("binomial", 1, 8_000_000, 1.05),
        ("binomial", 2, 8_000_000, 1.05),
        ("auto", 1, 2_000_000, 1.05),
        ("auto", 2, 2_000_000, 1.10),
    ],
)
def test_labels_come_near_the_limit(mixture: str, eta: float, clicks: int, bound: float) -> None:
    logs = [simulated(eta=eta, clicks=clicks, seed=seed) for seed in SEEDS]
    ratios = [rmse(labels_of(log, mixture), log.relevance) / rmse(log.limit, log.relevance) for log in logs]
    assert np.median(ratios) < bound


def test_few_clicks_tell_that_there_are_more_than_two_grades() -> None:
    """Half a click per document: all of them together tell it, not those of a sample."""
    logs = [simulated(eta=1, clicks=200_000, seed=seed, relevance="graded") for seed in SEEDS]
    prior, labels, limit = np.transpose(
        [[rmse(each, log.relevance) for each in (log.prior_only, labels_of(log, "auto"), log.limit)] for log in logs]
    )
    assert np.median((prior - labels) / (prior - limit)) > 0.6


@pytest.mark.parametrize(("eta", "clicks"), [(1, 2_000_000), (1, 8_000_000), (2, 2_000_000), (2, 8_000_000)])
def test_gaussian_labels_are_not_worse_than_scikit_learns(eta: float, clicks: int) -> None:
    from sklearn.mixture import GaussianMixture

    log = simulated(eta=eta, clicks=clicks, seed=11)
    rates = log.clicks / np.maximum(log.impressions, 1)
    theirs = np.empty_like(rates)
    for k in range(20):
        fit = GaussianMixture(2, random_state=0).fit(rates[:, k : k + 1])
        theirs[:, k] = fit.predict_proba(rates[:, k : k + 1])[:, fit.means_[:, 0].argmax()]
    assert rmse(labels_of(log, "gaussian"), log.relevance) <= rmse(theirs, log.relevance)


def test_a_flat_prior_is_the_share_of_relevant_documents() -> None:
    log = simulated(eta=1, clicks=2_000_000, seed=0)
    fit = MixtureCorrection(prior="flat").fit(log.counts())
    assert np.ptp([group.prior_relevance for group in fit.groups]) == pytest.approx(0, abs=1e-12)
    assert fit.groups[0].prior_relevance == pytest.approx(log.relevance.mean(), rel=0.05)


def test_documents_that_move_come_near_the_limit() -> None:
    counts, relevant, limit = spread(0)
    fit = MixtureCorrection().fit(counts)
    ratio = rmse(fit.label(counts).relevance, relevant) / rmse(limit, relevant)
    each_alone = MixtureCorrection("binomial", sharing=False).fit(counts)
    assert ratio < 1.08
    assert ratio < rmse(each_alone.label(counts).relevance, relevant) / rmse(limit, relevant)
