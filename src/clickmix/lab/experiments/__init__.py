"""Experiments: the paper's tables and figures, as data, run by one resumable runner.

`reproduce(Study("table1"), folder)` does what is left to do and writes tables and figures. Workers are started by
`spawn`: a program that calls it needs the usual `if __name__ == "__main__":`.
"""

from clickmix.lab.experiments.configs import EXPERIMENTS
from clickmix.lab.experiments.reproduce import Reproduced, reproduce
from clickmix.lab.experiments.study import Setting, Study
from clickmix.lab.experiments.tasks import Task

__all__ = ["EXPERIMENTS", "Reproduced", "Setting", "Study", "Task", "reproduce"]
