"""Regression-based EM: alpha and beta estimated with a regression of relevance on features.   Counts -> RegressionEMFit

Most documents stay at one position, and then their clicks cannot separate relevance from bias. So a regression on
features is fitted to the relevance that the M-step gives each document, and its predictions go into the next E-step.
That is no longer EM: the likelihood can fall, and more iterations can make it worse. So it stops by itself and says
why. The caller passes the regression. Labels come from affine correction (without trust: IPS) with the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from clickmix.corrections.affine import affine_labels
from clickmix.corrections.affine_em import (
    CodedCells,
    e_step,
    log_likelihood,
    log_likelihood_of_positions,
    m_step,
    read_cells,
    start_parameters,
    targets,
)
from clickmix.corrections.clipping import Clip, checked_clip, clip_title
from clickmix.corrections.correction import Labels
from clickmix.corrections.parameters import LEAST_ALPHA, BiasParameters
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.errors import SettingError, check_whole
from clickmix.types import Floats, Progress

ROUNDS = 2  # rounds of E and M per regression, as in the paper's program
TOP = 5  # positions whose predicted relevance is watched
TOO_RELEVANT = 0.8  # mean predicted relevance at the top
BACK = 10  # iterations to go back if the mean is higher
KEPT_SHARE = 0.5  # share of the most that relevance explained; less is a sudden drop


class Regressing(Protocol):
    """A regression on the documents of one log."""

    def fit(self, target: Floats, weight: Floats) -> Floats:
        """Learn from these targets (0 to 1) and weights; return the predicted relevance of every document."""


class Regression(Protocol):
    """A regression of relevance on features."""

    def start(self, query_id: NDArray[Any], doc_id: NDArray[Any]) -> Regressing:
        """Find the features of these documents, which come query by query; refuse documents without features."""


class Stop(StrEnum):
    """Why regression EM stopped, a closed list."""

    CONVERGED = "converged"
    TOO_RELEVANT = "predicted relevance too high"
    SUDDEN_DROP = "sudden drop"
    ITERATIONS = "iterations used up"


@dataclass(frozen=True, eq=False)
class Iteration:
    """One regression with its E- and M-steps: the results, and the time of each.

    `explained` is the log-likelihood above that of one click rate per position, `top_relevance` the mean predicted
    relevance at positions 1 to 5, `score` the result of the caller's measure.
    """

    number: int
    parameters: BiasParameters
    log_likelihood: float
    explained: float
    top_relevance: float
    regression_seconds: float
    step_seconds: float
    score: float | None


@dataclass(frozen=True)
class RegressionEM(TakesCounts):
    """Settings of regression-based EM.

    regression   learns relevance from features (`clickmix.lab.regressions`)
    trust        whether people also click documents that are not relevant (AC), or never do (IPS)
    iterations   the most iterations
    tolerance    alpha and beta have converged if none moves by more in an iteration
    score        measures the parameters of each iteration for the trace, for instance by nDCG on a test set

    >>> from clickmix import debias
    >>> debias("log.parquet", correction="regression-em", features="features.parquet")  # doctest: +SKIP
    """

    saves_model: ClassVar[bool] = True

    regression: Regression
    trust: bool = True
    clip: Clip = "one"
    iterations: int = 100
    tolerance: float = 1e-5
    score: Callable[[BiasParameters], float] | None = None
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        checked_clip(self.clip)
        check_whole("iterations", self.iterations, least=1)
        if not self.tolerance >= 0:
            raise SettingError(f"tolerance={self.tolerance!r}: expected a number from 0.")

    @property
    def title(self) -> str:
        """The name in tables."""
        return clip_title("regression EM" if self.trust else "regression EM without trust", self.clip)

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> RegressionEMFit:
        """Estimate alpha and beta; `progress` is called with the share of iterations done."""
        cells = read_cells(counts, correction="regression-em")
        regressing = self.regression.start(cells.query_id, cells.doc_id)
        shown = cells.by_document(cells.impressions)
        target = cells.by_document(cells.clicks) / shown  # as if people examined everything
        parameters = start_parameters(cells.positions, trust=self.trust)
        trace: list[Iteration] = []
        while True:
            begun = self.clock()
            relevance = regressing.fit(target, shown)
            regressed = self.clock()
            before, (parameters, target) = parameters, self._steps(cells, relevance, parameters)
            iteration = self._iteration(cells, relevance, parameters, len(trace) + 1, regressed - begun, regressed)
            trace.append(iteration)
            if progress is not None:
                progress(len(trace) / self.iterations)
            stopped = self._stop(trace, before)
            if stopped is not None:
                back = {Stop.TOO_RELEVANT: BACK, Stop.SUDDEN_DROP: 1}.get(stopped, 0)  # keep what was before an anomaly
                return RegressionEMFit(self.trust, self.clip, stopped, max(len(trace) - back, 1), tuple(trace))

    def _steps(self, cells: CodedCells, relevance: Floats, parameters: BiasParameters) -> tuple[BiasParameters, Floats]:
        """The parameters after some rounds of E and M, and the target of the next regression."""
        for _ in range(ROUNDS):
            parameters = m_step(cells, *e_step(cells, relevance, parameters), trust=self.trust)
        return parameters, targets(cells, *e_step(cells, relevance, parameters))

    def _iteration(
        self,
        cells: CodedCells,
        relevance: Floats,
        parameters: BiasParameters,
        number: int,
        regression_seconds: float,
        regressed: float,
    ) -> Iteration:
        likelihood = log_likelihood(cells, relevance, parameters)
        top = np.flatnonzero(cells.position < TOP)
        top_relevance = float(np.average(relevance[cells.document[top]], weights=cells.impressions[top]))
        seconds = self.clock() - regressed
        score = None if self.score is None else self.score(parameters)
        explained = likelihood - log_likelihood_of_positions(cells)
        return Iteration(number, parameters, likelihood, explained, top_relevance, regression_seconds, seconds, score)

    def _stop(self, trace: list[Iteration], before: BiasParameters) -> Stop | None:
        """Why to stop now, or None to go on."""
        last = trace[-1]
        if last.top_relevance > TOO_RELEVANT:
            return Stop.TOO_RELEVANT
        best = max(iteration.explained for iteration in trace)
        if best > 0 and last.explained < KEPT_SHARE * best:
            return Stop.SUDDEN_DROP
        moved = max(
            float(np.abs(last.parameters.alpha - before.alpha).max()),
            float(np.abs(last.parameters.beta - before.beta).max()),
        )
        if moved <= self.tolerance:
            return Stop.CONVERGED
        return Stop.ITERATIONS if len(trace) >= self.iterations else None


@dataclass(frozen=True, eq=False)
class RegressionEMFit(TakesCounts):
    """The result of regression EM: the parameters of iteration `kept`, why it stopped, and all iterations.

    >>> from clickmix import RegressionEM
    >>> fit = RegressionEM(regression).fit(counts)  # doctest: +SKIP
    >>> fit.parameters.write("ab.json")  # doctest: +SKIP
    """

    trust: bool
    clip: Clip
    stopped: Stop
    kept: int
    trace: tuple[Iteration, ...]

    @property
    def parameters(self) -> BiasParameters:
        """alpha and beta of the kept iteration; without trust, alpha is the examination theta."""
        return self.trace[self.kept - 1].parameters

    @property
    def tied(self) -> tuple[int, ...]:
        """Positions where relevant documents are clicked no more than others, so that estimates are noise."""
        return tuple((np.flatnonzero(self.parameters.alpha <= LEAST_ALPHA) + 1).tolist())

    @property
    def summary(self) -> str:
        """How the fit went, in two or three sentences."""
        tied = f" Relevant and other documents do not differ at position(s) {', '.join(map(str, self.tied))}."
        return (
            f"Regression EM stopped after iteration {len(self.trace)}: {self.stopped}. It kept the parameters of "
            f"iteration {self.kept}.{tied if self.tied else ''}"
        )

    def write(self, path: str | Path) -> None:
        """Write a parameters file."""
        self.parameters.write(path)

    def label(self, counts: Counts) -> Labels:
        """Estimate and clipped relevance of every document, by affine correction."""
        return affine_labels(counts, self.parameters, clip=self.clip, correction="regression-em")
