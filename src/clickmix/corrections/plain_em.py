"""Plain EM: alpha and beta from documents that were shown at several positions.   Counts -> PlainEMFit

Every document has its own relevance r, P(click at k) = alpha_k r + beta_k, and all are fitted together. If documents
stay at their positions there is nothing to learn, and plain EM refuses the log. Clicks determine only the products, so
relevance could be stretched and shifted. Plain EM takes the widest scale:

    with trust      beta is 0 at some position, and alpha + beta is 1 at some position
    without trust   beta is 0 everywhere, and the examination theta = alpha is 1 at some position
so that 0 and 1 are the lowest and highest relevance that any document could have. If no position has these click rates,
true relevance is on a narrower scale. The order of documents stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from clickmix.corrections.affine import affine_labels
from clickmix.corrections.affine_em import TRUST, CodedCells, e_step, log_likelihood, m_step, read_cells, targets
from clickmix.corrections.clipping import CLIP, Clip, checked_clip, clip_title
from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.corrections.parameters import LEAST_ALPHA, BiasParameters
from clickmix.corrections.squarem import ascend, leap_on_log_odds
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.errors import InputError, SettingError, check_whole
from clickmix.types import Floats, Progress

FARTHEST = 20.0  # log-odds


@CORRECTIONS.register(
    "plain-em", help="Affine, with alpha and beta estimated by EM from documents that move.", options=(TRUST, CLIP)
)
@dataclass(frozen=True)
class PlainEM(TakesCounts):
    """Settings of plain EM: with `trust`, people also click documents that are not relevant (AC); without, never (IPS).

    It has converged when a step gains at most `tolerance` times the log-likelihood.

    >>> from clickmix import Counts
    >>> shown, clicked = [1000] * 8, [600, 300, 200, 100, 500, 250, 100, 50]
    >>> counts = Counts.from_arrays(["q"] * 8, [*"aabbccdd"], [1, 2] * 4, shown, clicked)
    >>> PlainEM(trust=False).fit(counts).parameters.alpha.round(2).tolist()
    [1.0, 0.5]
    """

    saves_model: ClassVar[bool] = True

    trust: bool = True
    clip: Clip = "one"
    tolerance: float = 1e-9
    max_steps: int = 2000

    def __post_init__(self) -> None:
        checked_clip(self.clip)
        check_whole("max_steps", self.max_steps, least=1)
        if not self.tolerance >= 0:
            raise SettingError(f"tolerance={self.tolerance!r}: expected a number from 0.")

    @property
    def title(self) -> str:
        """The name in tables."""
        return clip_title("plain EM" if self.trust else "plain EM without trust", self.clip)

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> PlainEMFit:
        """Estimate alpha and beta, together with the relevance of every document."""
        cells = read_cells(counts, correction="plain-em")
        check_linked(cells, trust=self.trust, correction="plain EM")
        ascent = ascend(
            _start(cells, trust=self.trust),
            step=lambda point: point.step(cells, trust=self.trust),
            leap=partial(_leap, trust=self.trust),
            log_likelihood=lambda point: point.log_likelihood(cells),
            tolerance=self.tolerance,
            max_steps=self.max_steps,
            progress=progress,
        )
        parameters = _widest(ascent.end.parameters)
        return PlainEMFit(self.trust, self.clip, parameters, ascent.log_likelihoods, ascent.converged)


@dataclass(frozen=True, eq=False)
class PlainEMFit(TakesCounts):
    """The result of plain EM: parameters on the widest scale, and the log-likelihood of every step (it never falls).

    >>> from clickmix import Counts
    >>> shown, clicked = [1000] * 8, [600, 300, 200, 100, 500, 250, 100, 50]
    >>> counts = Counts.from_arrays(["q"] * 8, [*"aabbccdd"], [1, 2] * 4, shown, clicked)
    >>> PlainEM(trust=False).fit(counts).label(counts).relevance.round(1).tolist()
    [0.6, 0.2, 0.5, 0.1]
    """

    trust: bool
    clip: Clip
    parameters: BiasParameters
    log_likelihoods: tuple[float, ...]
    converged: bool

    @property
    def summary(self) -> str:
        """How the fit went, in two sentences."""
        how = "converged" if self.converged else "was still improving when it stopped"
        return (
            f"Plain EM {how} after {len(self.log_likelihoods) - 1} steps. Relevance is on the widest scale: 0 and 1 "
            "are the lowest and highest values that any document could have."
        )

    def write(self, path: str | Path) -> None:
        """Write a parameters file."""
        self.parameters.write(path)

    def label(self, counts: Counts) -> Labels:
        """Estimate and clipped relevance of every document, by affine correction."""
        return affine_labels(counts, self.parameters, clip=self.clip, correction="plain-em")


@dataclass(frozen=True, eq=False)
class _Point:
    """Where EM is: a relevance per document, parameters per position."""

    relevance: Floats
    parameters: BiasParameters

    def step(self, cells: CodedCells, *, trust: bool) -> _Point:
        """One step of E and M."""
        expected = e_step(cells, self.relevance, self.parameters)
        return _Point(targets(cells, *expected), m_step(cells, *expected, trust=trust))

    def log_likelihood(self, cells: CodedCells) -> float:
        """The log-likelihood of the clicks in these cells."""
        return log_likelihood(cells, self.relevance, self.parameters)

    def log_odds(self) -> Floats:
        """All numbers in one array: relevance, z1 and z0."""
        from scipy.special import logit  # here, because --help loads this module

        z0 = self.parameters.beta
        rates = np.concatenate([self.relevance, self.parameters.alpha + z0, z0])
        return np.asarray(np.clip(logit(np.clip(rates, 0, 1)), -FARTHEST, FARTHEST))


def _leap(start: _Point, first: _Point, second: _Point, longest: float, *, trust: bool) -> tuple[_Point, float]:
    """Leap on the log-odds, and read the numbers back as relevance and parameters."""
    points = (point.log_odds() for point in (start, first, second))
    leapt, length = leap_on_log_odds(*points, farthest=FARTHEST, longest=longest)
    documents, positions = len(start.relevance), start.parameters.positions
    z1, z0 = leapt[documents : documents + positions], leapt[documents + positions :]
    beta = np.minimum(z0, 1 - LEAST_ALPHA) if trust else np.zeros(positions)
    return _Point(leapt[:documents], BiasParameters(np.maximum(z1 - beta, LEAST_ALPHA), beta)), length


def _start(cells: CodedCells, *, trust: bool) -> _Point:
    """z0 and z1 are half and twice each position's click rate; relevance is clicks over expected, on that scale."""
    rate = np.clip(cells.by_position(cells.clicks) / cells.by_position(cells.impressions), 1e-6, 1 - 1e-3)
    expected = cells.by_document(cells.impressions * rate[cells.position])
    over = cells.by_document(cells.clicks) / expected
    z0 = rate / 2 if trust else np.zeros(cells.positions)
    z1 = np.minimum(2 * rate, (1 + rate) / 2)
    relevance = np.clip((over - 0.5) / 1.5 if trust else over / 2, 0.01, 0.99)
    return _Point(relevance, BiasParameters(z1 - z0, z0))


def _widest(parameters: BiasParameters) -> BiasParameters:
    """The same click rates with relevance on the widest scale: r' = (r + shift) / stretch."""
    alpha, beta = parameters.alpha, parameters.beta
    beta = beta - (beta / alpha).min() * alpha
    stretch = ((1 - beta) / alpha).min()
    return BiasParameters(np.clip(alpha * stretch, LEAST_ALPHA, 1.0), np.clip(beta, 0.0, 1.0))


def check_linked(cells: CodedCells, *, trust: bool, correction: str) -> None:
    """Refuse a log in which some positions have no clicked documents in common with the others."""
    needed = 2 if trust else 1  # a line takes two documents, a ratio one
    clicked = cells.by_document(cells.clicks)[cells.document] > 0
    document, position = cells.document[clicked], cells.position[clicked]
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    shown = coo_array((np.ones(len(document)), (document, position)), shape=(cells.documents, cells.positions)).tocsr()
    _, part = connected_components((shown.T @ shown) >= needed, directed=False)
    apart = np.flatnonzero(part != part[0]) + 1
    if len(apart):
        raise InputError(
            f"Position(s) {', '.join(map(str, apart))}: fewer than {needed} clicked documents link them with position "
            f"1, so {correction} cannot separate bias from relevance there. Use a log in which documents "
            "move, or use regression-em or mixture, which need no such documents."
        )
