"""The mixture correction against affine correction with regression EM, 30 iterations of each regression, on one log.

The synthetic collection, top 20, binarized relevance, position-based users with trust bias, clicks in the paper's
proportion. 1,000 training queries where there is no GPU, else all 18,919, in corrections-gpu.json; another number can
be given: python benchmarks/corrections.py 100. Besides, on a log of 8M clicks, what an iteration costs apart from its
regression.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clickmix.corrections.affine import AffineCorrection
from clickmix.corrections.affine_em import log_likelihood, read_cells, start_parameters
from clickmix.corrections.correction import Correction
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.none import NoCorrection
from clickmix.corrections.oracle import Oracle
from clickmix.corrections.parameters import BiasParameters
from clickmix.corrections.regression_em import RegressionEM, RegressionEMFit
from clickmix.counts.counts import Counts
from clickmix.features import binarized
from clickmix.features.split import Split
from clickmix.lab.affine_error import affine_error
from clickmix.lab.collections import production_ranker, synthetic_collection
from clickmix.lab.regressions import REGRESSIONS, TreeRegression, choose_regression
from clickmix.lab.users import PositionBased
from measuring import least_seconds, write_result
from simulation import rmse, simulated

PAPER_QUERIES, PAPER_CLICKS, TOP, ITERATIONS = 18_919, 8_000_000, 20, 30
MBC = MixtureCorrection("binomial")  # as the paper has it


@dataclass(frozen=True)
class Log:
    """Counts of a simulated log, with features, truth and the user's own parameters."""

    counts: Counts
    features: Split
    truth: np.ndarray[Any, Any]
    parameters: BiasParameters

    @classmethod
    def simulate(cls, *, queries: int, eta: float) -> Log:
        """The production ranker shows the top 20 of every training query; people click."""
        collection = synthetic_collection(queries=queries, rng=np.random.default_rng([0, 0]))
        train = collection.train
        relevance = binarized(train.grade, largest_grade=collection.largest_grade)
        rows = production_ranker(train, rng=np.random.default_rng([0, 1])).top(train, length=TOP)
        user = PositionBased.with_eta(eta, positions=TOP)
        shown = np.where(rows < 0, np.nan, relevance[rows])
        clicks = round(PAPER_CLICKS * queries / PAPER_QUERIES)
        counted = user.simulate_counts(shown, clicks=clicks, rng=np.random.default_rng([0, 2]))
        q, k = np.nonzero((rows >= 0) & (counted.impressions[:, None] > 0))
        document = rows[q, k]
        impressions, clicked = counted.impressions[q], counted.clicks[q, k]
        counts = Counts.from_arrays(train.query_id[q], train.doc_id[document], k + 1, impressions, clicked)
        truth = Oracle(train.query_id[train.query], train.doc_id, relevance).label(counts).relevance
        return cls(counts, train, truth, BiasParameters(user.alpha, user.beta))

    def rmse_of(self, correction: Any) -> float:
        """Of labels against the truth."""
        return round(rmse(correction.label(self.counts).relevance, self.truth), 4)


def measure(*, queries: int | None = None) -> dict[str, Any]:
    """Seconds and errors, for normal and severe bias; and the steps on 8M clicks."""
    queries = queries or (PAPER_QUERIES if _gpu() else 1_000)
    figures: dict[str, Any] = {"device": _gpu() or "cpu", "queries": queries, "iterations": ITERATIONS}
    for eta in (1, 2):
        log = Log.simulate(queries=queries, eta=eta)
        figures[f"eta_{eta}"] = _compared(log)
    return figures | {"8M_clicks": _steps()}


def _compared(log: Log) -> dict[str, Any]:
    mixture = least_seconds(lambda: _labels(MBC, log.counts))
    figures: dict[str, Any] = {
        "mixture_seconds": round(mixture, 3),
        "rmse": {
            "none": log.rmse_of(NoCorrection()),
            "mixture": log.rmse_of(MBC.fit(log.counts)),
            "affine, true parameters": log.rmse_of(AffineCorrection(log.parameters)),
        },
    }
    for name in REGRESSIONS:
        fit = _regression_em(name, log)
        figures[name] = _told(fit, log, mixture)
        print(name, figures[name], flush=True)
    return figures


def _regression_em(name: Any, log: Log) -> RegressionEMFit:
    regression = choose_regression(name, log.features)
    if isinstance(regression, TreeRegression):
        regression = replace(regression, threads=len(os.sched_getaffinity(0)))
    return RegressionEM(regression, iterations=ITERATIONS).fit(log.counts)


def _told(fit: RegressionEMFit, log: Log, mixture: float) -> dict[str, Any]:
    """Seconds of 30 iterations, from those it took; how near it came."""
    done = len(fit.trace)
    regression = sum(iteration.regression_seconds for iteration in fit.trace) * ITERATIONS / done
    steps = sum(iteration.step_seconds for iteration in fit.trace) * ITERATIONS / done
    found, true = fit.parameters, log.parameters
    error = affine_error(true, found, chances=(1 - log.truth.mean(), log.truth.mean()))
    return {
        "seconds": round(regression + steps, 2),
        "seconds_of_steps": round(steps, 3),
        "times_slower_than_mixture": round((regression + steps) / mixture, 1),
        "times_slower_if_the_regression_were_free": round(steps / mixture, 1),
        "stopped": str(fit.stopped),
        "iterations_done": done,
        "iteration_kept": fit.kept,
        "alpha_over_true_at_1_5_10_20": _ratios(found.alpha, true.alpha),
        "beta_over_true_at_1_5_10_20": _ratios(found.beta, true.beta),
        "limit_error_median_over_positions": round(float(np.median(error)), 3),
        "rmse": log.rmse_of(fit),
    }


def _ratios(found: Any, true: Any) -> list[float]:
    return [round(float(found[k] / true[k]), 3) for k in (0, 4, 9, 19)]


def _steps() -> dict[str, Any]:
    """One iteration of regression EM apart from the regression, and 30 of them against the mixture correction."""
    log = simulated(eta=1, clicks=PAPER_CLICKS, seed=0)
    counts = log.counts()
    cells = read_cells(counts, correction="benchmark")
    relevance = log.relevance.ravel()[log.impressions.ravel() > 0].astype(np.float64)
    regression_em = RegressionEM(choose_regression("dnn-sigmoid", None))
    start = start_parameters(cells.positions, trust=True)

    def iteration() -> None:
        found, _ = regression_em._steps(cells, relevance, start)
        log_likelihood(cells, relevance, found)

    one = least_seconds(iteration)
    mixture = least_seconds(lambda: _labels(MBC, counts))
    return {
        "cells": len(cells.clicks),
        "milliseconds_of_an_iteration_apart_from_the_regression": round(1000 * one, 1),
        "milliseconds_of_reading_the_cells_once": round(
            1000 * least_seconds(lambda: read_cells(counts, correction="")), 1
        ),
        "mixture_seconds": round(mixture, 3),
        "30_iterations_with_a_free_regression_over_mixture": round(30 * one / mixture, 1),
    }


def _labels(correction: Correction, counts: Counts) -> None:
    """All labels in memory."""
    _ = correction.fit(counts).label(counts).relevance


def _gpu() -> str:
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""


if __name__ == "__main__":
    given = int(sys.argv[1]) if len(sys.argv) > 1 else None
    name = "corrections-gpu" if _gpu() else "corrections"
    write_result(name, " ".join(["python benchmarks/corrections.py", *sys.argv[1:]]), measure(queries=given))
