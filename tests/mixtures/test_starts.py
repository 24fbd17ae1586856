"""Fits reach the highest top: with rare grades at either end, with many impressions, with few and many side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

import clickmix as cm
from clickmix.lab.users import PositionBased

Array = np.ndarray[Any, Any]
MSLR = (0.515, 0.325, 0.134, 0.018, 0.008)
FEW_LOWEST, FEW_HIGHEST = (0.1, 0.6, 0.3), (0.6, 0.3, 0.1)


@dataclass(frozen=True)
class Page:
    """Cells of documents of known relevance, and what Bayes would say who knows the rates."""

    relevance: Array
    document: Array
    place: Array
    impressions: Array
    clicks: Array
    limit: Array

    def counts(self) -> cm.Counts:
        """As clickmix counts a log; documents are numbered from 0."""
        return cm.Counts.from_arrays(self.document // 10, self.document, self.place + 1, self.impressions, self.clicks)


def page(
    shares: tuple[float, ...],
    *,
    positions: int,
    documents: int,
    impressions: float,
    sigma: float = 0.0,
    eta: float = 1.0,
    moving: bool = False,
    seed: int = 0,
) -> Page:
    """Position-based users; grades have these shares, impressions a lognormal spread, movers are at two places."""
    rng, user = np.random.default_rng(seed), PositionBased.with_eta(eta, positions=positions)
    home = np.repeat(np.arange(positions), documents)
    x = np.linspace(0, 1, len(shares))
    relevance = x[rng.choice(len(shares), p=shares, size=len(home))]
    document, place = np.arange(len(home)), home
    if moving:
        document = np.concatenate([document, document])
        place = np.concatenate([home, np.where(home == positions - 1, home - 1, home + 1)])
    spread = np.exp(sigma * rng.standard_normal(len(place)) - sigma**2 / 2)
    n = np.maximum(1, np.rint(impressions * spread)).astype(np.int64)
    c = rng.binomial(n, user.alpha[place] * relevance[document] + user.beta[place])
    cells = [binom.logpmf(c, n, user.alpha[place] * grade + user.beta[place]) for grade in x]
    of_grades = np.array([np.bincount(document, row) for row in cells]) + np.log(shares)[:, None]
    total = logsumexp(of_grades, axis=0)
    return Page(relevance, document, place, n, c, x @ np.exp(of_grades - total))


def error(labels: Array, seen: Page) -> float:
    return float(np.sqrt(np.mean((labels - seen.relevance) ** 2)))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("impressions", "sigma"), [(500, 0.0), (2_000, 0.0), (300, 1.5)])
@pytest.mark.parametrize("shares", [FEW_LOWEST, FEW_HIGHEST], ids=["few lowest", "few highest"])
def test_a_rare_grade_at_an_end_is_found(
    shares: tuple[float, ...], impressions: float, sigma: float, seed: int
) -> None:
    """Otherwise grades mean one thing at one position and another at the next."""
    seen = page(shares, positions=10, documents=300, impressions=impressions, sigma=sigma, seed=seed)
    counts = seen.counts()
    fitted = cm.MixtureCorrection().fit(counts)
    labels = fitted.label(counts)
    assert fitted.grades == 3
    assert error(labels.relevance[np.argsort(labels.doc_id)], seen) < 1.1 * error(seen.limit, seen) + 0.01
    assert fitted.error == pytest.approx(error(seen.limit, seen), rel=0.15, abs=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_five_grades_of_documents_that_move_are_found(seed: int) -> None:
    seen = page(MSLR, positions=5, documents=300, impressions=2_000, moving=True, seed=seed)
    counts = seen.counts()
    fitted = cm.MixtureCorrection().fit(counts)
    labels = fitted.label(counts)
    assert fitted.grades == 5
    assert error(labels.relevance[np.argsort(labels.doc_id)], seen) < 1.1 * error(seen.limit, seen) + 0.01


@pytest.mark.parametrize(
    ("share", "positions", "documents", "impressions", "eta", "seeds"),
    [
        (0.1, 3, 100, 300, 2.0, (28, 122)),
        (0.97, 10, 50, 2_000, 0.5, (50, 97, 104)),
        (0.01, 3, 50, 300, 1.0, (1, 13, 18)),
    ],
    ids=["some relevant", "nearly all relevant", "hardly any relevant"],
)
def test_documents_that_move_and_are_seen_unevenly_often(
    share: float, positions: int, documents: int, impressions: float, eta: float, seeds: tuple[int, ...]
) -> None:
    """Labels are as good as those of somebody who knows all rates."""
    for seed in seeds:
        size: dict[str, Any] = {"positions": positions, "documents": documents, "impressions": impressions}
        seen = page((1 - share, share), **size, sigma=2.5, eta=eta, moving=True, seed=seed)
        counts = seen.counts()
        labels = cm.MixtureCorrection("binomial").fit(counts).label(counts)
        assert error(labels.relevance[np.argsort(labels.doc_id)], seen) < 1.2 * error(seen.limit, seen) + 0.01
