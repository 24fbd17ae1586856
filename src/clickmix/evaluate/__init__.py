"""Evaluation: scores and grades in; Scores per query, comparisons and tables out."""

from clickmix.evaluate.comparisons import (
    Interval,
    Outcomes,
    TTest,
    bootstrap_interval,
    differences,
    paired_t_test,
    student_t_test,
    wins_ties_losses,
)
from clickmix.evaluate.measures import Measure
from clickmix.evaluate.rankings import Ranking, query_index, rank
from clickmix.evaluate.runs import Run, make_run, trec_run, write_scores
from clickmix.evaluate.scores import Scores, evaluate, score
from clickmix.evaluate.tables import Cell, Table, tabulate

__all__ = [
    "Cell",
    "Interval",
    "Measure",
    "Outcomes",
    "Ranking",
    "Run",
    "Scores",
    "TTest",
    "Table",
    "bootstrap_interval",
    "differences",
    "evaluate",
    "make_run",
    "paired_t_test",
    "query_index",
    "rank",
    "score",
    "student_t_test",
    "tabulate",
    "trec_run",
    "wins_ties_losses",
    "write_scores",
]
