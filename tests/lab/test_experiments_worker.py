"""Experiments end to end, small: real users, corrections and rankers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from clickmix import cli
from clickmix.lab.collections import load_collection
from clickmix.lab.experiments.bias_estimates import at_iteration
from clickmix.lab.experiments.labels import label
from clickmix.lab.experiments.paper import FIGURE3, TABLE1
from clickmix.lab.experiments.request import Request
from clickmix.lab.experiments.simulator import Simulator
from clickmix.lab.experiments.task import Result, Results, Scenario, Task
from clickmix.lab.experiments.worker import do_task, measure, teaches
from collections_rankers import split

COMMAND = [sys.executable, "-c", "import clickmix.cli; clickmix.cli.main()"]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
ESTIMATE = Task("estimate", 0, Scenario(), regression="dnn-sigmoid")


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    made = Simulator(Request("table1", scale=0.005), str(tmp_path_factory.mktemp("scratch")))
    do_task(made, Task("lists", 0, Scenario()), {})
    return made


@pytest.fixture(scope="module")
def estimated(simulator: Simulator) -> Result:
    return json.loads(json.dumps(do_task(simulator, ESTIMATE, {})))  # type: ignore[no-any-return]


def with_needs(task: Task, estimated: Result) -> Results:
    return {need.key: estimated if need.kind == "estimate" else {} for need in task.needs}


@pytest.mark.parametrize(
    ("relevance", "expected"),
    [
        ([[0.5, 0.5, np.nan], [0.1, 0.1, 0.1]], False),
        ([[0.5, 0.5, np.nan], [0.1, 0.1, 0.2]], True),
        ([[0.5, 0.5001, np.nan], [np.nan, np.nan, np.nan]], False),
        ([[np.nan, np.nan, np.nan], [0.0, 0.0, 1.0]], True),
    ],
    ids=["equal", "different", "rounded", "none"],
)
def test_labels_that_are_equal_within_lists_teach_nothing(relevance: list[list[float]], expected: bool) -> None:
    assert teaches(np.array(relevance)) is expected


@pytest.mark.xdist_group("simulator")  # which is made once
class TestWork:
    def test_labels_that_teach_nothing_rank_in_random_order(self, simulator: Simulator) -> None:
        few = Scenario(clicks=1_000)
        found = do_task(simulator, Task("ranking", 0, few, "mbc", "lambdamart"), {})
        test = simulator.collection.test
        assert not teaches(label("mbc", simulator.log(few, 0)).train)
        assert found["ndcg@10"] == measure(np.zeros(test.documents), test)

    def test_regression_em_gives_parameters_of_every_position(self, estimated: Result) -> None:
        assert len(estimated["alpha"]) == len(estimated["beta"]) == 20
        assert 1 <= estimated["kept"] <= estimated["iterations"] <= 50
        assert at_iteration(estimated, 1) == estimated["by iteration"]["1"]
        assert at_iteration(estimated, 0) is estimated
        assert at_iteration(estimated, 51) is None

    @pytest.mark.parametrize("ranker", ["lambdamart", "dnn"])
    def test_a_ranker_is_trained_and_measured(self, simulator: Simulator, estimated: Result, ranker: str) -> None:
        task = TABLE1.task(0, Scenario(), "ac", ranker)
        found = do_task(simulator, task, with_needs(task, estimated))
        assert set(found) == {"ndcg@10", "label error"}
        assert 0 < found["ndcg@10"] < 1

    def test_the_same_task_gives_the_same_result(self, simulator: Simulator) -> None:
        task = TABLE1.task(0, Scenario(), "mbc", "dnn")
        assert do_task(simulator, task, {}) == do_task(Simulator(simulator.request, simulator.scratch), task, {})

    def test_an_iteration_after_the_stop_has_no_number(self, simulator: Simulator, estimated: Result) -> None:
        stopped = estimated | {"by iteration": {"1": estimated["by iteration"]["1"]}}
        task = FIGURE3.task(0, "dnn-sigmoid", 2)
        assert do_task(simulator, task, with_needs(task, stopped)) == {"ndcg@10": None}

    def test_timing(self, simulator: Simulator) -> None:
        mbc = do_task(simulator, Task("timing", 0, Scenario(), "mbc"), {})
        ac = do_task(simulator, Task("timing", 0, Scenario(), "ac", regression="dnn-sigmoid"), {})
        assert mbc["seconds"] > 0
        assert ac["seconds"] > ac["regression seconds"] + ac["step seconds"] > 0

    def test_a_picture_counts_every_document(self, simulator: Simulator, estimated: Result) -> None:
        task = Task("picture", 0, Scenario(), "mbc+ac", regression="dnn-sigmoid", position=9)
        found = do_task(simulator, task, with_needs(task, estimated))
        log = simulator.log(Scenario(), 0)
        assert sum(found["relevant"]) == np.nansum(log.train.relevance[:, 8])
        assert sum(found["relevant"]) + sum(found["not relevant"]) == simulator.collection.train.queries
        inside = np.array(found["relevant"]) + found["not relevant"] > 0
        assert [mean is not None for mean in found["mbc"]["mean"]] == inside.tolist()


def test_the_command_makes_figure_1_and_says_where_it_is(tmp_path: Path) -> None:
    words = ["reproduce", "figure1", "--scale", "0.005", "--workers", "1", "-o", str(tmp_path / "results")]
    done = subprocess.run([*COMMAND, *words], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "3 results; typical time per task: dnn-sigmoid " in done.stdout
    names = {"figure1.jsonl", "figure1.json", "figure1.md", "figure1.html", "figure1.svg", "figure1-2.svg"}
    assert {file.name for file in (tmp_path / "results").iterdir()} == names
    document = json.loads((tmp_path / "results" / "figure1.json").read_text())
    assert document["settings"]["collection"] == "synthetic, 20 training queries"
    assert next(iter(document["results"])) == ESTIMATE.key


def write_collection(folder: Path) -> None:
    """Few documents with few features: rankers of the synthetic collection's 136 take most of the time."""
    folder.mkdir()
    for number, (name, queries) in enumerate({"train": 20, "vali": 7, "test": 7}.items(), start=1):
        made = split(sizes=[8] * queries, seed=number)
        lines = (
            f"{grade} qid:{100 * number + query} 1:{one:.3f} 2:{two:.3f} 3:{three:.3f}\n"
            for grade, query, (one, two, three) in zip(made.grade, made.query, made.features, strict=True)
        )
        (folder / f"{name}.txt").write_text("".join(lines))
    load_collection(folder)  # its copy for faster reading is made now, and not by the command that comes first


def test_a_command_that_was_interrupted_and_killed_ends_with_the_bytes_of_an_undisturbed_one(tmp_path: Path) -> None:
    write_collection(tmp_path / "data")

    def started(folder: str, *, workers: int, stderr: int | None = None) -> subprocess.Popen[bytes]:
        words = ["reproduce", "figure2", "--top", "5", "--runs", "1", "--workers", str(workers)]
        folders = ["--data", str(tmp_path / "data"), "-o", str(tmp_path / folder)]
        return subprocess.Popen([*COMMAND, *words, *folders], env=ENVIRONMENT, stdout=-3, stderr=stderr)

    def results(folder: str) -> int:
        journal = tmp_path / folder / "figure2.jsonl"
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    def outputs(folder: str) -> dict[str, bytes]:
        files = (tmp_path / folder).iterdir()
        return {file.name: file.read_bytes() for file in files if file.suffix != ".jsonl"}  # which has times in it

    undisturbed = started("undisturbed", workers=1)  # nor do bytes depend on their number
    rng = np.random.default_rng()
    for workers, stop in ((2, signal.SIGINT), (1, signal.SIGKILL)):
        process, before = started("killed", workers=workers, stderr=subprocess.PIPE), results("killed")
        while process.poll() is None and results("killed") < before + 5:
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0, 0.2)))
        process.send_signal(stop)
        said = process.communicate()[1].decode()
        if stop == signal.SIGINT:
            journal = tmp_path / "killed" / "figure2.jsonl"
            assert said == (
                f"clickmix: stopped. Written before that: {journal.parent}, {journal} (the same command continues from "
                "there).\n"
            )
    assert undisturbed.wait(timeout=300) == 0
    assert 10 <= results("killed") < results("undisturbed")  # killed on the way, and nothing was lost
    assert started("killed", workers=1).wait(timeout=300) == 0
    assert outputs("killed") == outputs("undisturbed")
    small = (
        "Too small to conclude anything from: 7 test queries (with 100, chance moves a mean nDCG@10 by less than "
        ".03) and a single run (a test takes two or more). Raise --scale or --runs."
    )
    assert small in outputs("killed")["figure2.md"].decode()
    assert results("killed") == results("undisturbed")  # nothing was done twice


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table1", "--scale", "0"], "clickmix: scale=0: expected a number above 0, up to 100.\n"),
        (["table1", "--workers", "0"], "clickmix: workers=0: expected at least 1.\n"),
        (["figure2", "--ranker", "dnn"], "clickmix: figure2 is made with lambdamart, not with dnn.\n"),
        (
            ["figure1", "--data", "nosuch"],
            "clickmix: nosuch: no such folder. Expected a folder with train, vali and test as .txt, .txt.gz or "
            ".parquet, or Fold1, Fold2, ... with these; for Yahoo! give FOLDER/set1 or FOLDER/set2.\n",
        ),
        (["figure1", "--top", "5"], "clickmix: top=5: figure1 shows position 9. Choose at least 9.\n"),
        (
            ["table2", "--top", "50"],
            "clickmix: The user dcm is known down to position 10, found lists of 50. Cut the lists to 10 results, or "
            "fit a user to longer ones.\n",
        ),
    ],
    ids=["scale", "workers", "ranker", "data", "positions", "top"],
)
def test_wrong_settings_are_told_before_any_work(
    tmp_path: Path,
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["clickmix", "reproduce", *words, "-o", str(tmp_path / "results")])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert (caught.value.code, capsys.readouterr().err) == (2, message)
    assert not (tmp_path / "results").exists()
