"""Worker: does one task, in its own process with one thread.   Task -> Result"""

from __future__ import annotations

import numpy as np

from clickmix.evaluate import evaluate
from clickmix.features import Collection, Examples, Split, make_examples
from clickmix.lab.experiments.bias_estimates import at_iteration, estimate, time_correction
from clickmix.lab.experiments.figure1 import picture
from clickmix.lab.experiments.labels import Labelled, label, label_error
from clickmix.lab.experiments.request import lambdamart
from clickmix.lab.experiments.simulator import Log, Shown, Simulator
from clickmix.lab.experiments.task import LABEL_ERROR, MEASURE, Result, Results, Task
from clickmix.lab.self_debiasing import SELF_DEBIASING
from clickmix.rankers import Ranker
from clickmix.rankers.dnn import DNN
from clickmix.rankers.lambdamart import STEPS
from clickmix.types import Floats


def do_task(simulator: Simulator, task: Task, found: Results) -> Result:
    """The result of a task; `found` has those of the tasks that it needs."""
    if task.kind == "lists":
        simulator.make_lists(task.scenario, task.run)
        return {}
    log = simulator.log(task.scenario, task.run)
    if task.kind == "ranking":
        return _ranking(simulator.collection, log, task, found)
    if task.kind == "picture":
        return picture(task, log, _estimated(task, found))
    _one_thread(task.regression)
    return estimate(task, log) if task.kind == "estimate" else time_correction(task, log)


def _ranking(collection: Collection, log: Log, task: Task, found: Results) -> Result:
    """nDCG@10 on the graded test queries of a ranker trained on the task's labels."""
    test = collection.test
    if task.labels in SELF_DEBIASING:
        _one_thread("dnn" if task.labels == "dla" else "")
        ranker = SELF_DEBIASING[task.labels](log.train.clicked, seed=task.run)
        return {MEASURE: measure(ranker.score(test.features), test)}
    estimated = _estimated(task, found)
    if task.iteration and estimated is None:
        return {MEASURE: None}  # regression EM had stopped before
    labelled = label(task.labels, log, estimate=estimated)
    scores = np.zeros(test.documents)  # if labels teach nothing, any order is as good: ties are averaged
    if teaches(labelled.train):
        scores = train(task.ranker, labelled, log, collection, seed=task.run).score(test.features)
    return {MEASURE: measure(scores, test), LABEL_ERROR: label_error(labelled, log)}


def teaches(relevance: Floats) -> bool:
    """Whether labels differ within some list, after LambdaMART's rounding to thousandths."""
    rounded = np.rint(relevance * STEPS)
    return bool((np.nanmax(rounded, axis=1, initial=0) > np.nanmin(rounded, axis=1, initial=STEPS)).any())


def train(name: str, labelled: Labelled, log: Log, collection: Collection, *, seed: int) -> Ranker:
    """A ranker of this name. LambdaMART has the authors' 300 trees; validation labels stop the network."""
    examples = _examples(log.train, labelled.train)
    if name == "lambdamart":
        return lambdamart(collection).fit(examples, seed=seed)
    _one_thread(name)
    vali = _examples(log.vali, labelled.vali) if teaches(labelled.vali) else None
    return DNN().fit(examples, vali=vali, seed=seed)


def measure(scores: Floats, test: Split) -> float:
    """Mean nDCG@10 by the grades, without queries that have no relevant documents, as the authors do."""
    return evaluate(scores, test.grade, test.query_id[test.query], measure=MEASURE).mean


def _examples(shown: Shown, relevance: Floats) -> Examples:
    lists, place = np.nonzero(~np.isnan(relevance))
    rows = shown.rows[lists, place]
    return make_examples(shown.split, (shown.split.query_id[lists], shown.split.doc_id[rows], relevance[lists, place]))


def _estimated(task: Task, found: Results) -> Result | None:
    """The result of regression EM, at the task's iteration."""
    needed = next((found[need.key] for need in task.needs if need.kind == "estimate"), None)
    return None if needed is None else at_iteration(needed, task.iteration)


def _one_thread(name: str) -> None:
    """Limit torch, if it is used, to one thread: it does not follow the environment."""
    if name.startswith("dnn"):
        from clickmix.rankers.network import torch_module

        torch_module().set_num_threads(1)
