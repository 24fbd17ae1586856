"""Task: the smallest piece of work whose result is kept; its scenario, its experiment.   Request -> tasks -> results"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from clickmix.features import Collection, Split
from clickmix.lab.experiments.request import Request
from clickmix.lab.simulate import Relevance
from clickmix.report import Page

Kind = Literal["lists", "estimate", "ranking", "picture", "timing"]
Result = dict[str, Any]  # values that JSON can hold
Results = dict[str, Result]  # by the task's key

MEASURE, LABEL_ERROR = "ndcg@10", "label error"  # the keys of a ranking's result
PAPER_CLICKS, PAPER_QUERIES = 8_000_000, 18_919  # clicks grow with the training queries

# How long a task takes compared with training one LambdaMART; only the estimate of the time left depends on it.
COSTS: dict[str, float] = {"lists": 1.0, "estimate": 10.0, "ranking": 1.0, "picture": 0.2, "timing": 10.0}
DNN_COST = 3.0


@dataclass(frozen=True)
class Scenario:
    """Who clicks (a name for `preset`), on what relevance, and how often on as many queries as in the paper."""

    user: str = "pbm-eta1"
    relevance: Relevance = "binarized"
    clicks: int = PAPER_CLICKS

    @property
    def name(self) -> str:
        """One word for it, as in results.

        >>> Scenario(user="pbm-eta2", relevance="graded").name
        'pbm-eta2-graded-8000000'
        """
        return f"{self.user}-{self.relevance}-{self.clicks}"

    def clicks_on(self, split: Split) -> int:
        """How many clicks these queries get, in proportion to the paper's."""
        return max(1, round(self.clicks * split.queries / PAPER_QUERIES))


@dataclass(frozen=True)
class Task:
    """What a worker does at a time; `run` fixes all its seeds. Fields that a kind does not use stay empty."""

    kind: Kind
    run: int
    scenario: Scenario
    labels: str = ""
    ranker: str = ""
    regression: str = ""
    iteration: int = 0
    position: int = 0

    @property
    def key(self) -> str:
        """The task as one line of text, the key of its result."""
        parts = [self.kind, f"run {self.run}", "" if self.kind == "lists" else self.scenario.name]
        parts += [self.regression, f"iteration {self.iteration}" if self.iteration else ""]
        parts += [f"position {self.position}" if self.position else "", self.labels, self.ranker]
        return ", ".join(part for part in parts if part)

    @property
    def kept(self) -> bool:
        """Whether the result goes to the results file; lists are made again when they are needed."""
        return self.kind != "lists"

    @property
    def cost(self) -> float:
        """Roughly how long it takes."""
        return DNN_COST if self.ranker == "dnn" else COSTS[self.kind]

    @property
    def needs(self) -> tuple[Task, ...]:
        """The tasks that must be finished before."""
        if self.kind == "lists":
            return ()
        lists = Task("lists", self.run, Scenario(user=self.scenario.user))
        if self.kind in ("ranking", "picture") and self.regression:
            return lists, Task("estimate", self.run, self.scenario, regression=self.regression)
        return (lists,)


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its name in the command, its title, its tasks, and the page of its results."""

    name: str
    title: str

    by_ranker: ClassVar[bool] = False  # made ranker by ranker, so that one alone can be chosen
    measures_rankings: ClassVar[bool] = False  # on test queries, of which there must be enough
    timed: ClassVar[bool] = False  # measures seconds, so that no other worker may run at the same time

    def tasks(self, request: Request) -> list[Task]:
        """All tasks, run by run."""
        raise NotImplementedError

    def page(self, request: Request, collection: Collection, results: Results) -> Page:
        """The page of its results."""
        raise NotImplementedError
