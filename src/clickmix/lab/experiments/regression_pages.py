"""Figure 3 and efficiency: what regression EM did, iteration by iteration and second by second.   results -> Page"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median

import numpy as np

from clickmix.evaluate import bootstrap_interval
from clickmix.lab.experiments.configs import Iterations, Timings
from clickmix.lab.experiments.estimates import TIMED_ITERATIONS
from clickmix.lab.experiments.labels import TITLES
from clickmix.lab.experiments.study import Study
from clickmix.lab.experiments.tasks import Results, Task
from clickmix.lab.experiments.work import MEASURE
from clickmix.report import Axis, Figure, Line, Listing, Page, Panel, Section


def iterations_page(config: Iterations, study: Study, results: Results) -> Page:
    """Curves of nDCG@10 by iteration, and why each regression stopped."""
    lines = [_curve(config, study, results, regression) for regression in config.regressions]
    lines += [_level(config, study, results, labels) for labels in config.beside]
    figure = Figure(
        "nDCG@10 of LambdaMART on AC labels, by iteration of regression EM",
        Axis("iteration", log=True),
        (Panel(Axis("nDCG@10 on the test queries"), tuple(lines), height=220),),
        "Means over the runs that got so far, with 95 % intervals. A curve ends where regression EM stopped in all.",
    )
    prose = [
        "Affine correction (AC) with bias parameters estimated by regression EM, as the number of iterations grows, "
        "for four regressions; users with normal bias (eta 1) and binarized relevance.",
    ]
    sections = [
        Section("Curves", figures=[figure]),
        Section("How each ended", tables=[_endings(config, study, results)]),
    ]
    return Page(config.title, prose=prose, sections=sections)


def _curve(config: Iterations, study: Study, results: Results, regression: str) -> Line:
    samples = []
    for iteration in config.iterations:
        found = [results[config.task(run, regression, iteration).key][MEASURE] for run in range(study.runs)]
        samples.append([value for value in found if value is not None])
    return _line(regression, config.iterations, samples)


def _level(config: Iterations, study: Study, results: Results, labels: str) -> Line:
    """What does not depend on iterations, as a straight line."""
    keys = [Task("ranking", run, config.setting, labels, "lambdamart").key for run in range(study.runs)]
    level = mean(results[key][MEASURE] for key in keys)
    ends = (config.iterations[0], config.iterations[-1])
    return Line(TITLES[labels], ends, (level, level), points=False)


def _line(name: str, across: Sequence[int], samples: Sequence[Sequence[float]]) -> Line:
    intervals = [bootstrap_interval(sample, rng=np.random.default_rng(0)) if sample else None for sample in samples]
    return Line(
        name,
        tuple(across),
        tuple(mean(sample) if sample else np.nan for sample in samples),
        tuple(interval.low if interval else np.nan for interval in intervals),
        tuple(interval.high if interval else np.nan for interval in intervals),
    )


def _endings(config: Iterations, study: Study, results: Results) -> Listing:
    rows = []
    for regression in config.regressions:
        for run in range(study.runs):
            found = results[Task("estimate", run, config.setting, regression=regression).key]
            rows.append([regression, str(run + 1), str(found["iterations"]), found["stopped"], str(found["kept"])])
    head = ["regression", "run", "iterations", "stopped because", "kept"]
    return Listing(head, rows, numbers=frozenset({1, 2, 4}))


def timings_page(config: Timings, study: Study, results: Results) -> Page:
    """Seconds of MBC and of AC, and how many times longer AC takes."""
    runs = range(study.runs)
    mixtures = {
        name: median(results[Task("timing", run, config.setting, name).key]["seconds"] for run in runs)
        for name in config.labels
    }
    mbc = mixtures["mbc"]
    rows = [[TITLES[name], "", "", f"{found:.2f}", f"{found / mbc:.1f}", ""] for name, found in mixtures.items()]
    for regression in config.regressions:
        found = [results[config.task(run, regression).key] for run in runs]
        regressing = median(each["regression seconds"] / each["iterations"] for each in found)
        stepping = median(each["step seconds"] / each["iterations"] for each in found)
        total = TIMED_ITERATIONS * (regressing + stepping)
        free = TIMED_ITERATIONS * stepping / mbc
        seconds = [f"{regressing:.3f}", f"{stepping:.4f}", f"{total:.1f}"]
        rows.append([f"AC, {regression}", *seconds, f"{total / mbc:.0f}", f"{free:.2f}"])
    head = [
        "correction",
        "seconds of a regression",
        "seconds of its E and M steps",
        f"seconds of all, {TIMED_ITERATIONS} iterations",
        "times MBC",
        "times MBC if the regression were free",
    ]
    prose = [
        "Time to make labels from the counts of a log, training rankers apart; medians over runs, one process with one "
        "thread (a GPU, where there is one, works for the networks).",
        "The paper: MBC 110 s; AC 370 s for a regression and 50 s for its steps, so 12,600 s for 30 iterations, 114 "
        "times MBC, and 13 times even if the regression were free. On counts a step takes milliseconds.",
    ]
    return Page(
        config.title,
        prose=prose,
        sections=[Section("Seconds", tables=[Listing(head, rows, numbers=frozenset(range(1, 6)))])],
    )
