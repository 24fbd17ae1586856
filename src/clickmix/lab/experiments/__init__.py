"""Experiments: one resumable runner that reproduces the paper's tables and figures.

The road of `reproduce(Request("table1"), folder)`:

    request             what to reproduce: experiment, collection, scale, runs, rankers
    paper               the experiments as data; each lists its tasks and draws its page
      ranking_tables    tables 1 and 2, figure 2
      figure1           figure 1
      regression_figures  figure 3 and efficiency
    task                a task: one number or picture of one run, in one scenario of users and clicks
    runner              does the tasks that FOLDER/EXPERIMENT.jsonl does not have yet, in worker processes
      worker            does one task
      simulator         the collection, the lists of the production ranker, the clicks
      labels            labels by name: what rankers are trained on
      bias_estimates    alpha and beta by regression EM, and what they cost
    page_files          writes the page: JSON, Markdown, LaTeX, SVG, HTML
    reproduce           all of this, in order

Workers start with `spawn`: a program that calls `reproduce` needs the usual `if __name__ == "__main__":`.
"""

from clickmix.lab.experiments.paper import EXPERIMENTS
from clickmix.lab.experiments.reproduce import reproduce
from clickmix.lab.experiments.request import Request
from clickmix.lab.experiments.task import Task

__all__ = ["EXPERIMENTS", "Request", "Task", "reproduce"]
