"""Damaged files end in good labels or in one clear line: 2,000 made by chance, and those that once ended badly."""

from __future__ import annotations

import gc
import random
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from clickmix import cli
from fuzz import KEPT, Sandbox, minimised, sandbox
from mutators import raw
from oracle import OLD, Ended, judge_files, left_in_temporary_folder, run_command
from results import judge_results
from targets import TARGETS, Target

pytestmark = pytest.mark.xdist_group("fuzz")  # the good files are made once
INPUTS = 2_000
SHARES = sum(target.weight for target in TARGETS)
COUNTS = {target.name: round(INPUTS * target.weight / SHARES) for target in TARGETS}


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    tmp_path_factory.getbasetemp()  # before the sandbox has its own temporary folder, which goes in the end
    with sandbox() as made:
        yield made
        gc.collect()
        assert left_in_temporary_folder() == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_damaged_files(box: Sandbox, target: Target) -> None:
    named, seed = box.seed(target)
    ends, problems = Counter[int | None](), []
    for number in range(COUNTS[target.name]):
        words, data = named.mutated(seed, number)
        ended, problem = box.problem(named, words, data)
        ends[ended.code] += 1
        problems += [f"input {number}, {' '.join(words)}: {problem}"] if problem else []
    assert problems == []
    assert ends[2], "no input was bad enough to be refused"


@pytest.mark.parametrize("path", sorted(KEPT.iterdir()), ids=lambda path: path.name)
def test_an_input_that_once_ended_badly(box: Sandbox, path: Path) -> None:
    head, _, data = path.read_bytes().partition(b"\n")
    file, _, command = head.decode().partition("\t")
    target, _ = box.seed(Target(file, (), ()))
    assert box.problem(target, shlex.split(command), data)[1] == ""


def test_good_files_end_well(box: Sandbox) -> None:
    """Or else the oracle could pass everything by refusing everything: every file, and every command on some file."""
    tried: set[str] = set()
    for target in TARGETS:
        named, seed = box.seed(target)
        new = [command for command in named.commands if command not in tried]
        tried.update(new)
        for command in dict.fromkeys(new or named.commands[:1]):
            words = shlex.split(command.format(f"in/{named.file}"))
            ended, problem = box.problem(named, words, seed)
            assert problem == "", (words, ended.err)
            assert ended.code == 0 or "--context" in words, (words, ended.err)  # some layouts have no device


@pytest.mark.parametrize(
    ("misbehave", "problem"),
    [
        ("raise KeyError('x')", "exception: KeyError"),
        ("print('x', file=sys.stderr)", "messages: exit 0"),
        ("print('x', file=sys.stderr); sys.exit(2)", "messages: expected one line"),
        ("print('clickmix: INTERNAL Error', file=sys.stderr); sys.exit(2)", "messages: unclear"),
        ("sys.exit(1)", "code: 1"),
        ("warnings.warn('x')", "exception: UserWarning"),
        ("time.sleep(600)", "hang: "),
    ],
)
def test_the_oracle_sees(monkeypatch: pytest.MonkeyPatch, misbehave: str, problem: str) -> None:
    if "sleep" in misbehave:  # a busy machine can take a second for the others
        monkeypatch.setattr("oracle.SECONDS", 0.3)

    def main() -> None:
        code = compile(f"import sys, time, warnings; {misbehave}", "<misbehaving>", "exec")
        exec(code)
        raise SystemExit(0)

    monkeypatch.setattr(cli, "main", main)
    assert run_command([]).problem.startswith(problem)


def test_the_oracle_sees_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([100.0, 900.0])
    monkeypatch.setattr("oracle.peak_megabytes", lambda: next(peaks))
    assert run_command(["--version"]).problem == "memory: 800 MB more"


def test_the_oracle_sees_files() -> None:
    before = {"labels.csv": OLD}
    refused, done = Ended(2, "", "clickmix: x\n"), Ended(0, "", "")
    assert judge_files(refused, before, before, ["labels.csv"]) == ""
    assert judge_files(refused, before, {"labels.csv": b"new"}, ["labels.csv"]).startswith("files: exit 2")
    assert judge_files(done, before, {"labels.csv": b"new"}, ["labels.csv"]) == ""
    assert judge_files(done, before, before | {".labels.csv.tmp": b""}, ["labels.csv"]).startswith("files: not asked")


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ("q,a,0.5,2,1\nq,b,0.1,1,0", ""),
        ("q,a,0.5,2,1\nq,b,0.1,2,0", "results: said (3, 1), wrote (4, 1)"),
        ("q,a,0.5,1,1\nq,a,0.1,2,0", "results: a key comes twice"),
        ("q,a,nan,2,1\nq,b,0.1,1,0", "results: a label is not finite"),
        ("q,a,0.5,2,3\nq,b,0.1,1,-2", "results: clicks above impressions, or no impressions"),
        ("q,a,0.5,2,1\nq,zz,0.1,1,0", "results: ids that were not in the input: ['zz']"),
        ("q,a,0.5,2,1\nq,b,0.1,1,0\n", ""),
    ],
)
def test_the_oracle_sees_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: str, problem: str) -> None:
    monkeypatch.chdir(tmp_path)
    log = b"query_id,doc_id,position,clicked\nq,a,1,1\nq,a,1,0\nq,b,2,0\n"
    Path("in").mkdir()
    Path("in/rows.csv").write_bytes(log)
    Path("labels.csv").write_text(f"query_id,doc_id,relevance,impressions,clicks\n{labels}\n")
    ended = Ended(0, "Read 3 impressions and 1 clicks.\n", "")
    words = ["debias", "in/rows.csv", "-o", "labels.csv"]
    assert judge_results(words, ended, log, "rows.csv") == problem
    lost = judge_results(words, ended, log + b"q,b,2,0\n", "rows.csv")
    assert lost == (problem or "results: 4 rows, but 3 kept and 0 skipped")


def test_the_same_number_gives_the_same_input(box: Sandbox) -> None:
    for target in TARGETS:
        named, seed = box.seed(target)
        assert named.mutated(seed, 7) == named.mutated(seed, 7)


def test_an_input_gets_smaller() -> None:
    data = random.Random(0).randbytes(300) + b"bad" + random.Random(1).randbytes(300)
    assert minimised(data, lambda tried: b"bad" in tried) == b"bad"


def test_bytes_change() -> None:
    rng = random.Random(0)
    assert len({raw(b"query_id,doc_id\nq,d\n", rng) for _ in range(100)}) > 90
