"""The paper's tables and figures, and one of peers, as data: users, labels and rankers.   name -> Experiment"""

from __future__ import annotations

from typing import get_args

from clickmix.errors import SettingError
from clickmix.lab.experiments.bias_estimates import SHOWN_ITERATIONS
from clickmix.lab.experiments.figure1 import Pictures
from clickmix.lab.experiments.ranking_tables import ClickCurves, RankingTable
from clickmix.lab.experiments.regression_figures import Iterations, Timings
from clickmix.lab.experiments.task import Experiment, Scenario
from clickmix.lab.regressions import REGRESSIONS
from clickmix.lab.simulate import Relevance


def _both_relevances(*users: str) -> tuple[Scenario, ...]:
    return tuple(Scenario(user, relevance) for user in users for relevance in get_args(Relevance))


TABLE1 = RankingTable(
    "table1",
    "Ranking quality by correction and severity of bias",
    _both_relevances("pbm-eta1", "pbm-eta2"),
    ("none", "ac", "mbc", "auto", "auto-flat", "ideal-ac", "limit", "truth"),
)
TABLE2 = RankingTable(
    "table2",
    "Ranking quality if people do not click as the corrections assume",
    _both_relevances("dcm", "ubm"),
    ("none", "ac", "mbc", "auto", "matching", "truth"),
)
PEERS = RankingTable(
    "peers",
    "Ranking quality compared with rankers that debias themselves",
    _both_relevances("pbm-eta1", "pbm-eta2"),
    ("none", "ctr-then-rank", "lightgbm-position", "xgboost-unbiased", "dla", "mbc", "auto", "ideal-ac", "truth"),
    ("lambdamart",),
)
FIGURE1 = Pictures(
    "figure1", "What a label is made of", Scenario(relevance="binarized"), (1, 9), ("mbc", "ac", "ideal-ac")
)
FIGURE2 = ClickCurves(
    "figure2",
    "Ranking quality by number of clicks",
    tuple(Scenario(clicks=clicks) for clicks in (20_000, 50_000, 100_000, 200_000, 500_000, 2_000_000, 8_000_000)),
    ("none", "gaussian", "mbc", "auto", "limit", "truth"),
    ("lambdamart",),
)

FIGURE3 = Iterations(
    "figure3", "Regression EM by iteration", Scenario(), REGRESSIONS, SHOWN_ITERATIONS, ("none", "ideal-ac", "mbc")
)
EFFICIENCY = Timings("efficiency", "What a correction costs", Scenario(), ("mbc", "auto"), REGRESSIONS)

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each for each in (TABLE1, TABLE2, FIGURE1, FIGURE2, FIGURE3, EFFICIENCY, PEERS)
}


def experiment(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        raise SettingError(f"There is no experiment named {name!r}. Choose one of {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]
