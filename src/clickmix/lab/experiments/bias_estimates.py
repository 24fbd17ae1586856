"""Estimates: the bias parameters that regression EM finds, and their cost.   Log -> Result"""

from __future__ import annotations

import time
from typing import Any

from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.regression_em import RegressionEM
from clickmix.lab.experiments.labels import MIXTURES
from clickmix.lab.experiments.simulator import Log
from clickmix.lab.experiments.task import Result, Task
from clickmix.lab.regressions import choose_regression

ITERATIONS = 50  # the most; the paper goes up to 100 and calls 30 the minimum
SHOWN_ITERATIONS = (1, 2, 3, 5, 10, 15, 20, 30, 40, 50)  # iterations whose parameters are kept
TIMED_ITERATIONS = 30


def estimate(task: Task, log: Log) -> Result:
    """alpha and beta of the iteration that regression EM keeps, and of some before it."""
    fit = RegressionEM(_regression(task, log), iterations=ITERATIONS).fit(log.train.counts)
    return {
        **_parameters(fit.trace[fit.kept - 1]),
        "stopped": str(fit.stopped),
        "kept": fit.kept,
        "iterations": len(fit.trace),
        "by iteration": {str(each.number): _parameters(each) for each in fit.trace if each.number in SHOWN_ITERATIONS},
        "log likelihoods": [each.log_likelihood for each in fit.trace],
    }


def at_iteration(found: Result, iteration: int) -> Result | None:
    """The estimate after an iteration (0: the one that is kept); None if regression EM had stopped before."""
    by_iteration: dict[str, Result] = found["by iteration"]
    return found if iteration == 0 else by_iteration.get(str(iteration))


def time_correction(task: Task, log: Log) -> Result:
    """Seconds to label a log by a mixture, or by AC with TIMED_ITERATIONS of regression EM."""
    counts = log.train.counts
    mixture = MixtureCorrection(**MIXTURES["mbc" if task.regression else task.labels])
    mixture.fit(counts).label(counts).columns  # noqa: B018  (loads modules before the clock starts)
    begun = time.perf_counter()
    if not task.regression:
        mixture.fit(counts).label(counts).columns  # noqa: B018
        return {"seconds": time.perf_counter() - begun}
    fit = RegressionEM(_regression(task, log), iterations=TIMED_ITERATIONS, tolerance=0.0).fit(counts)
    fit.label(counts).columns  # noqa: B018
    return {
        "seconds": time.perf_counter() - begun,
        "iterations": len(fit.trace),
        "regression seconds": sum(each.regression_seconds for each in fit.trace),
        "step seconds": sum(each.step_seconds for each in fit.trace),
    }


def _regression(task: Task, log: Log) -> Any:
    name: Any = task.regression
    return choose_regression(name, log.train.numbered, seed=task.run)


def _parameters(iteration: Any) -> Result:
    return {"alpha": iteration.parameters.alpha.tolist(), "beta": iteration.parameters.beta.tolist()}
