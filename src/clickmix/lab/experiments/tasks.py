"""Task: the smallest piece of work whose result is kept, and what it needs of others.   study -> tasks -> results"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from clickmix.lab.experiments.study import Setting

Kind = Literal["lists", "estimate", "ranking", "picture", "timing"]
Result = dict[str, Any]  # as it stands in JSON
Results = dict[str, Result]  # by the task's key

# How long a task takes beside training one LambdaMART; only the estimate of the time left depends on it.
COSTS: dict[str, float] = {"lists": 1.0, "estimate": 10.0, "ranking": 1.0, "picture": 0.2, "timing": 10.0}
DNN_COST = 3.0


@dataclass(frozen=True)
class Task:
    """What one worker does at a time; `run` fixes all its seeds. Fields that a kind has no use for stay empty."""

    kind: Kind
    run: int
    setting: Setting
    labels: str = ""
    ranker: str = ""
    regression: str = ""
    iteration: int = 0
    position: int = 0

    @property
    def key(self) -> str:
        """The task in one line of text, by which its result is found again."""
        parts = [self.kind, f"run {self.run}", "" if self.kind == "lists" else self.setting.name]
        parts += [self.regression, f"iteration {self.iteration}" if self.iteration else ""]
        parts += [f"position {self.position}" if self.position else "", self.labels, self.ranker]
        return ", ".join(part for part in parts if part)

    @property
    def kept(self) -> bool:
        """Whether the result goes into the results file; lists are made again where they are needed."""
        return self.kind != "lists"

    @property
    def cost(self) -> float:
        """How long it takes, roughly."""
        return DNN_COST if self.ranker == "dnn" else COSTS[self.kind]

    @property
    def needs(self) -> tuple[Task, ...]:
        """The tasks that must be finished before."""
        if self.kind == "lists":
            return ()
        lists = Task("lists", self.run, Setting(user=self.setting.user))
        if self.kind in ("ranking", "picture") and self.regression:
            return lists, Task("estimate", self.run, self.setting, regression=self.regression)
        return (lists,)
