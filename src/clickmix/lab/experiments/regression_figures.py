"""Figure 3 and efficiency: regression EM by iteration, and its time.   results -> Page"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean, median

from clickmix.features import Collection
from clickmix.lab.experiments.bias_estimates import TIMED_ITERATIONS
from clickmix.lab.experiments.labels import TITLES
from clickmix.lab.experiments.ranking_tables import line_of_means
from clickmix.lab.experiments.request import Request
from clickmix.lab.experiments.task import MEASURE, Experiment, Results, Scenario, Task
from clickmix.report import Axis, Figure, Line, Listing, Page, Panel, Section


@dataclass(frozen=True)
class Iterations(Experiment):
    """LambdaMART on the labels of AC after each of some iterations of regression EM, for each regression."""

    scenario: Scenario
    regressions: tuple[str, ...]
    iterations: tuple[int, ...]
    beside: tuple[str, ...]  # labels to compare with

    measures_rankings = True

    def tasks(self, request: Request) -> list[Task]:
        """Run by run: the labels to compare with, then every regression."""
        return [task for run in range(request.runs) for task in self.run(run)]

    def run(self, run: int) -> list[Task]:
        """The tasks of one run."""
        beside = [Task("ranking", run, self.scenario, labels, "lambdamart") for labels in self.beside]
        return beside + [self.task(run, name, i) for name in self.regressions for i in self.iterations]

    def task(self, run: int, regression: str, iteration: int) -> Task:
        """The task behind one point of a curve."""
        return Task("ranking", run, self.scenario, "ac", "lambdamart", regression, iteration)

    def page(self, request: Request, collection: Collection, results: Results) -> Page:
        """Curves of nDCG@10 by iteration, and why each regression stopped."""
        lines = [_curve(self, request, results, regression) for regression in self.regressions]
        lines += [_level(self, request, results, labels) for labels in self.beside]
        figure = Figure(
            "nDCG@10 of LambdaMART on AC labels, by iteration of regression EM",
            Axis("iteration", log=True),
            (Panel(Axis("nDCG@10 on the test queries"), tuple(lines), height=220),),
            "Means over the runs that got that far, with 95 % intervals. A curve ends where regression EM stopped in "
            "all runs.",
        )
        prose = [
            "Affine correction (AC) with bias parameters estimated by regression EM, as the number of iterations "
            "grows, for four regressions; users with normal bias (eta 1) and binarized relevance.",
        ]
        sections = [
            Section("Curves", figures=[figure]),
            Section("How each ended", tables=[_endings(self, request, results)]),
        ]
        return Page(self.title, prose=prose, sections=sections)


def _curve(experiment: Iterations, request: Request, results: Results, regression: str) -> Line:
    samples = []
    for iteration in experiment.iterations:
        found = [results[experiment.task(run, regression, iteration).key][MEASURE] for run in range(request.runs)]
        samples.append([value for value in found if value is not None])
    return line_of_means(regression, experiment.iterations, samples)


def _level(experiment: Iterations, request: Request, results: Results, labels: str) -> Line:
    """A mean that does not depend on iterations, as a straight line."""
    keys = [Task("ranking", run, experiment.scenario, labels, "lambdamart").key for run in range(request.runs)]
    level = mean(results[key][MEASURE] for key in keys)
    ends = (experiment.iterations[0], experiment.iterations[-1])
    return Line(TITLES[labels], ends, (level, level), points=False)


def _endings(experiment: Iterations, request: Request, results: Results) -> Listing:
    rows = []
    for regression in experiment.regressions:
        for run in range(request.runs):
            found = results[Task("estimate", run, experiment.scenario, regression=regression).key]
            rows.append([regression, str(run + 1), str(found["iterations"]), found["stopped"], str(found["kept"])])
    head = ["regression", "run", "iterations", "stopped because", "kept"]
    return Listing(head, rows, numbers=frozenset({1, 2, 4}))


@dataclass(frozen=True)
class Timings(Experiment):
    """The time of corrections: mixtures, MBC first, and AC with each regression."""

    scenario: Scenario
    labels: tuple[str, ...]
    regressions: tuple[str, ...]

    timed = True

    def tasks(self, request: Request) -> list[Task]:
        """One task per run and correction."""
        return [task for run in range(request.runs) for task in self.run(run)]

    def run(self, run: int) -> list[Task]:
        """The tasks of one run."""
        mixtures = [Task("timing", run, self.scenario, labels) for labels in self.labels]
        return mixtures + [self.task(run, regression) for regression in self.regressions]

    def task(self, run: int, regression: str) -> Task:
        """The task behind a row of AC."""
        return Task("timing", run, self.scenario, "ac", regression=regression)

    def page(self, request: Request, collection: Collection, results: Results) -> Page:
        """Seconds of MBC and of AC, and how many times longer AC takes."""
        runs = range(request.runs)
        mixtures = {
            name: median(results[Task("timing", run, self.scenario, name).key]["seconds"] for run in runs)
            for name in self.labels
        }
        mbc = mixtures["mbc"]
        rows = [[TITLES[name], "-", "-", f"{found:.2f}", f"{found / mbc:.1f}", "-"] for name, found in mixtures.items()]
        for regression in self.regressions:
            found = [results[self.task(run, regression).key] for run in runs]
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
            "Time to make labels from the counts of a log, without training rankers; medians over runs, one process "
            "with one thread (networks use a GPU if there is one).",
            "The paper: MBC 110 s; AC 370 s for a regression and 50 s for its steps, so 12,600 s for 30 iterations, "
            "114 times MBC, and 13 times even if the regression were free. On counts a step takes milliseconds.",
        ]
        table = Listing(head, rows, notes=["-: a mixture has no regression."], numbers=frozenset(range(1, 6)))
        return Page(self.title, prose=prose, sections=[Section("Seconds", tables=[table])])
