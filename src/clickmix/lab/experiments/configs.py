"""The paper's tables and figures as data: which users, labels and rankers.   name, study -> tasks"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from clickmix.errors import SettingError
from clickmix.lab.experiments.estimates import SHOWN_ITERATIONS
from clickmix.lab.experiments.study import Setting, Study
from clickmix.lab.experiments.tasks import Task
from clickmix.lab.regressions import REGRESSIONS

REGRESSION = "dnn-sigmoid"  # the paper's choice for AC


@dataclass(frozen=True)
class Grid:
    """Rankers trained on each kind of labels for each kind of users, `runs` times: tables, and curves over clicks."""

    name: str
    title: str
    settings: tuple[Setting, ...]
    labels: tuple[str, ...]
    rankers: tuple[str, ...] = ("lambdamart", "dnn")

    def tasks(self, study: Study) -> list[Task]:
        """All tasks, run by run, so that a run that is finished first can be looked at first."""
        chosen = [ranker for ranker in self.rankers if ranker in study.rankers]
        if not chosen:
            raise SettingError(f"{self.name} is made with {' and '.join(self.rankers)}, not with {study.rankers[0]}.")
        return [task for run in range(study.runs) for ranker in chosen for task in self.run(run, ranker)]

    def run(self, run: int, ranker: str) -> Iterator[Task]:
        """The tasks of one run of one ranker."""
        done = set()
        for setting in self.settings:
            for labels in self.labels:
                task = self.task(run, setting, labels, ranker)
                if task not in done:
                    done.add(task)
                    yield task

    def task(self, run: int, setting: Setting, labels: str, ranker: str) -> Task:
        """The task behind one number. Truth does not depend on how people click, so it is trained on once."""
        if labels == "truth":
            setting = next(other for other in self.settings if other.relevance == setting.relevance)
        return Task("ranking", run, setting, labels, ranker, REGRESSION if labels == "ac" else "")


@dataclass(frozen=True)
class Pictures:
    """What labels say of the documents at some positions, in one run."""

    name: str
    title: str
    setting: Setting
    positions: tuple[int, ...]
    labels: tuple[str, ...]

    def tasks(self, study: Study) -> list[Task]:
        """One task per position."""
        regression = REGRESSION if "ac" in self.labels else ""
        return [
            Task("picture", 0, self.setting, "+".join(self.labels), regression=regression, position=position)
            for position in self.positions
        ]


@dataclass(frozen=True)
class Iterations:
    """LambdaMART on the labels of AC after each of some iterations of regression EM, for each regression."""

    name: str
    title: str
    setting: Setting
    regressions: tuple[str, ...]
    iterations: tuple[int, ...]
    beside: tuple[str, ...]  # labels to compare with

    def tasks(self, study: Study) -> list[Task]:
        """Run by run: what to compare with, then every regression."""
        return [task for run in range(study.runs) for task in self.run(run)]

    def run(self, run: int) -> list[Task]:
        """The tasks of one run."""
        beside = [Task("ranking", run, self.setting, labels, "lambdamart") for labels in self.beside]
        return beside + [self.task(run, name, i) for name in self.regressions for i in self.iterations]

    def task(self, run: int, regression: str, iteration: int) -> Task:
        """The task behind one point of a curve."""
        return Task("ranking", run, self.setting, "ac", "lambdamart", regression, iteration)


@dataclass(frozen=True)
class Timings:
    """What corrections cost: mixtures, MBC first, and AC with each regression."""

    name: str
    title: str
    setting: Setting
    labels: tuple[str, ...]
    regressions: tuple[str, ...]

    def tasks(self, study: Study) -> list[Task]:
        """One task per run and correction."""
        return [task for run in range(study.runs) for task in self.run(run)]

    def run(self, run: int) -> list[Task]:
        """The tasks of one run."""
        mixtures = [Task("timing", run, self.setting, labels) for labels in self.labels]
        return mixtures + [self.task(run, regression) for regression in self.regressions]

    def task(self, run: int, regression: str) -> Task:
        """The task behind a row of AC."""
        return Task("timing", run, self.setting, "ac", regression=regression)


Experiment = Grid | Pictures | Iterations | Timings
BOTH_RELEVANCES = [Setting(relevance="binarized"), Setting(relevance="graded")]

TABLE1 = Grid(
    "table1",
    "Ranking quality by correction and severity of bias",
    tuple(replace(setting, eta=eta) for eta in (1.0, 2.0) for setting in BOTH_RELEVANCES),
    ("none", "ac", "mbc", "auto", "auto-flat", "ideal-ac", "limit", "truth"),
)
TABLE2 = Grid(
    "table2",
    "Ranking quality when people click otherwise than the corrections assume",
    tuple(replace(setting, user="dcm") for setting in BOTH_RELEVANCES)
    + tuple(replace(setting, user="ubm") for setting in BOTH_RELEVANCES),
    ("none", "ac", "mbc", "auto", "matching", "truth"),
)
FIGURE1 = Pictures(
    "figure1", "What a label is made of", Setting(relevance="binarized"), (1, 9), ("mbc", "ac", "ideal-ac")
)
FIGURE2 = Grid(
    "figure2",
    "Ranking quality by number of clicks",
    tuple(Setting(clicks=clicks) for clicks in (20_000, 50_000, 100_000, 200_000, 500_000, 2_000_000, 8_000_000)),
    ("none", "gaussian", "mbc", "auto", "limit", "truth"),
    ("lambdamart",),
)

FIGURE3 = Iterations(
    "figure3",
    "Regression EM by iteration",
    Setting(),
    REGRESSIONS,
    SHOWN_ITERATIONS,
    ("none", "ideal-ac", "mbc"),
)
EFFICIENCY = Timings("efficiency", "What a correction costs", Setting(), ("mbc", "auto"), REGRESSIONS)

EXPERIMENTS: dict[str, Experiment] = {
    config.name: config for config in (TABLE1, TABLE2, FIGURE1, FIGURE2, FIGURE3, EFFICIENCY)
}


def experiment(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        raise SettingError(f"There is no experiment named {name!r}. Choose one of {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]
