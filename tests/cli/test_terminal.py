"""What the command prints: a closed pipe does not stop the work, and a spinner is cleared before a line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clickmix.cli import terminal
from logs import small_log, write


def test_a_reader_who_leaves_does_not_stop_the_work(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", small_log())
    read, write_end = os.pipe()
    os.close(read)  # as `| head` does after its last line
    words = [sys.executable, "-m", "clickmix", "debias", "log.csv", "-o", "labels.csv", "--report", "report.html"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, stdout=write_end, stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["labels.csv", "log.csv", "report.html"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_that_cannot_be_written_is_one_line_and_messages_that_cannot_are_dropped(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", small_log())
    words = [sys.executable, "-m", "clickmix", "counts", "log.csv", "-o", "counts.csv"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, cwd=tmp_path, env=environment, stdout=full, stderr=subprocess.PIPE, text=True)
        expected = "clickmix: standard output: No space left on device. Nothing was written.\n"
        assert (done.returncode, done.stderr) == (2, expected)
        assert not (tmp_path / "counts.csv").exists()
        dropped = subprocess.run([*words, "--wrong"], cwd=tmp_path, env=environment, stderr=full)
        assert dropped.returncode == 2


class Terminal:
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_spinner_is_cleared_before_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []

    class Spinner:
        """Notes when it is drawn and cleared."""

        def __init__(self, *columns: Any, **settings: Any) -> None: ...

        def __enter__(self) -> Spinner:
            self.start()
            return self

        def __exit__(self, *error: object) -> None:
            self.stop()

        def start(self) -> None:
            happened.append("drawn")

        def stop(self) -> None:
            happened.append("cleared")

        def add_task(self, title: str, total: float | None) -> int:
            return 0

    monkeypatch.setattr("rich.progress.Progress", Spinner)
    monkeypatch.setattr("typer.echo", lambda text, err: happened.append(text))
    monkeypatch.setattr("sys.stderr", Terminal())
    with terminal.stages():
        terminal.say("a line")
    assert happened == ["drawn", "cleared", "a line", "drawn", "cleared"]
    terminal.say("later")
    assert happened[5:] == ["later"]
