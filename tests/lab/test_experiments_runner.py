"""The runner of experiments: whatever stops it, nothing is lost, nothing is done twice, the outputs are the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickmix.errors import FormatError, InputError
from clickmix.lab.experiments import EXPERIMENTS, Request, Task, runner
from clickmix.lab.experiments.request import RANKERS
from clickmix.lab.experiments.runner import read_results, run_tasks
from clickmix.storage.locks import appending

PROGRAM = Path(__file__).parents[1] / "helpers" / "fake_experiments.py"
OUTPUTS = ("table1.json", "table1.md", "table1.tex", "table1.html")  # all but the journal, which has times in it


def started(
    folder: Path, *, runs: int = 2, ranker: str = "lambdamart+dnn", failing: str = "", workers: int = 2
) -> subprocess.Popen[bytes]:
    notes = folder.parent / "notes"
    notes.mkdir(exist_ok=True)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NOTES": str(notes), "TMPDIR": str(notes)}
    environment |= {"FAILING": failing, "WORKERS": str(workers)}
    return subprocess.Popen([sys.executable, PROGRAM, "table1", folder, str(runs), ranker], env=environment)


def finished(folder: Path, *, runs: int = 2, ranker: str = "lambdamart+dnn") -> dict[str, bytes]:
    """The outputs of a run with one worker, which starts sooner than two; bytes do not depend on their number."""
    assert started(folder, runs=runs, ranker=ranker, workers=1).wait(timeout=120) == 0
    return {name: (folder / name).read_bytes() for name in OUTPUTS}


def keys(folder: Path) -> list[str]:
    lines = [json.loads(line) for line in (folder / "table1.jsonl").read_text().splitlines()]
    return [line["task"] for line in lines if "task" in line]


def workers_of(folder: Path) -> list[int]:
    return [int(note.name) for note in (folder.parent / "notes").iterdir() if note.name.isdigit()]


def alive(process: int) -> bool:
    """Whether a process is there and not merely waiting to be collected."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole") / "results"
    finished(folder)
    return folder


def made_up_lines(left: list[Task], *_: Any, progress: Any, **__: Any) -> Iterator[dict[str, Any]]:
    """All that is left, at once."""
    if progress:
        progress(0.0)
    yield from ({"task": task.key, "result": {}, "seconds": 0.0} for task in left)
    if progress:
        progress(1.0)


@pytest.mark.xdist_group("interruptions")  # the run that nobody disturbs is made once
class TestInterruptions:
    def test_killed_at_random_moments_gives_the_bytes_of_an_undisturbed_run(self, whole: Path, tmp_path: Path) -> None:
        folder, rng, kills = tmp_path / "results", np.random.default_rng(7), 0
        while kills < 2:
            process = started(folder)
            deadline = time.monotonic() + 30
            wanted = whole_lines(folder) + int(rng.integers(0, 8))  # kill when so many are there, and a moment later
            while time.monotonic() < deadline and process.poll() is None and whole_lines(folder) < wanted:
                time.sleep(0.002)
            time.sleep(float(rng.uniform(0, 0.02)))
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        assert 0 < whole_lines(folder) < whole_lines(whole)  # it was killed on the way, not after the end
        assert finished(folder) == {name: (whole / name).read_bytes() for name in OUTPUTS}
        assert sorted(keys(folder)) == sorted(keys(whole))  # each task once

    def test_workers_end_when_the_program_is_killed(self, tmp_path: Path) -> None:
        folder = tmp_path / "results"
        process = started(folder)
        while not ((folder.parent / "notes").exists() and workers_of(folder)) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 20
        while any(map(alive, workers_of(folder))) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert workers_of(folder)
        assert not any(map(alive, workers_of(folder)))

    def test_a_task_that_fails_does_not_stop_the_others(self, whole: Path, tmp_path: Path) -> None:
        folder, failing = tmp_path / "results", "estimate, run 1, pbm-eta2-graded-8000000, dnn-sigmoid"
        assert started(folder, failing=failing).wait(timeout=120) == 1
        waiting = {f"ranking, run 1, pbm-eta2-graded-8000000, dnn-sigmoid, ac, {name}" for name in RANKERS}
        assert set(keys(whole)) - set(keys(folder)) == {failing} | waiting
        assert not (folder / "table1.md").exists()
        assert finished(folder) == {name: (whole / name).read_bytes() for name in OUTPUTS}

    def test_progress_begins_with_what_is_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tasks = EXPERIMENTS["figure2"].tasks(Request("figure2", runs=2))
        path, told = tmp_path / "figure2.jsonl", list[float]()
        monkeypatch.setattr(runner, "finished_lines", made_up_lines)
        given: dict[str, Any] = {"settings": {}, "versions": {}, "workers": 1}
        run_tasks(tasks[: len(tasks) // 4], Request("figure2"), path, **given)
        run_tasks(tasks, Request("figure2"), path, progress=told.append, **given)
        assert told == pytest.approx([0.25, 1.0])

    def test_a_finished_run_does_nothing_again(self, whole: Path) -> None:
        before = (whole / "table1.jsonl").read_bytes()
        finished(whole)
        assert (whole / "table1.jsonl").read_bytes() == before

    def test_runs_and_rankers_add_up(self, whole: Path, tmp_path: Path) -> None:
        folder = tmp_path / "results"
        finished(folder, runs=1, ranker="dnn")
        assert finished(folder) == {name: (whole / name).read_bytes() for name in OUTPUTS}


def whole_lines(folder: Path) -> int:
    path = folder / "table1.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


class TestJournal:
    @pytest.mark.parametrize("cut", range(1, 12))
    def test_a_line_that_was_being_written_is_cut_off(self, tmp_path: Path, cut: int) -> None:
        path = tmp_path / "lines"
        with appending(path) as lines:
            lines.append('{"a": 1}')
            lines.append('{"b": "é"}')
        data = path.read_bytes()
        path.write_bytes(data[:-cut])
        with appending(path) as lines:
            lines.append("{}")
            assert lines.found == ('{"a": 1}',)
        assert path.read_bytes() == b'{"a": 1}\n{}\n'

    def test_two_programs_at_once_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "lines"
        message = f"{path}: another clickmix is adding to it. Wait for it, or choose another folder."
        with appending(path), pytest.raises(InputError) as raised, appending(path):
            pass
        assert str(raised.value) == message

    @pytest.mark.parametrize("line", ['{"task": "a", "res', '{"task": "a"}', "7", ""])
    def test_a_damaged_line_is_named(self, tmp_path: Path, line: str) -> None:
        path = tmp_path / "table1.jsonl"
        path.write_text('{"format": 1, "settings": {}}\n' + line + "\n{}\n")
        with pytest.raises(FormatError) as raised:
            read_results(path, settings={})
        assert str(raised.value) == f"{path}, line 2: damaged. Remove the line, and its task is done again."

    def test_a_foreign_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "table1.jsonl"
        path.write_text('{"name": "x"}\n')
        with pytest.raises(FormatError) as raised:
            read_results(path, settings={})
        assert str(raised.value) == f"{path}: not a results file of this clickmix. Choose another folder."

    def test_other_settings_are_refused(self, tmp_path: Path) -> None:
        path, request = tmp_path / "figure1.jsonl", Request("figure1")
        path.write_text('{"format": 1, "settings": {"scale": 0.5}}\n')
        with pytest.raises(InputError) as raised:
            run_tasks(
                EXPERIMENTS["figure1"].tasks(request), request, path, settings={"scale": 1.0}, versions={}, workers=1
            )
        expected = f"{path}: made with scale 0.5, now it is 1.0. Choose another folder, or the same settings."
        assert str(raised.value) == expected
