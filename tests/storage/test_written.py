"""What was written is recorded for whoever asks, and for nobody else."""

from __future__ import annotations

import copy
import errno
import os
import threading
from pathlib import Path

import pytest

from clickmix.errors import EngineError, MissingColumnError
from clickmix.storage.atomic import make_folder, recording, replacing_together, write_atomically


def test_nothing_was_written() -> None:
    with recording() as written:
        pass
    assert str(written) == "Nothing was written."


def test_files_and_folders_are_listed_once_in_order(tmp_path: Path) -> None:
    with recording() as written:
        make_folder(tmp_path / "new")
        for name in ("b", "a", "b"):
            write_atomically(tmp_path / name, b"")
        make_folder(tmp_path / "new")
    assert str(written) == f"Written before that: {tmp_path}/new, {tmp_path}/b, {tmp_path}/a."


def test_a_file_that_failed_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*paths: object) -> None:
        raise OSError(errno.EIO, "refused")

    with recording() as written:
        write_atomically(tmp_path / "a", b"")
        monkeypatch.setattr("os.replace", refuse)
        with pytest.raises(OSError, match="refused"):
            write_atomically(tmp_path / "b", b"")
    assert list(written.targets) == [str(tmp_path / "a")]


def test_only_the_last_of_many_are_named(tmp_path: Path) -> None:
    with recording() as written:
        for i in range(25):
            write_atomically(tmp_path / f"{i}", b"")
    assert str(written).startswith(f"Written before that: {tmp_path}/5, ")


def test_files_that_belong_together_are_listed_when_they_are_in_place(tmp_path: Path) -> None:
    with recording() as written, replacing_together(tmp_path, last="a") as folder:
        write_atomically(folder / "a", b"")
        write_atomically(folder / "z", b"")
        assert list(written.targets) == []
    assert list(written.targets) == [str(tmp_path / "z"), str(tmp_path / "a")]


@pytest.mark.parametrize("links", [True, False])
def test_files_that_belong_together_come_back_if_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"old")

    def fail(*names: object) -> None:
        raise OSError(errno.EIO, "broken", str(names[0]))

    def write() -> None:
        with replacing_together(tmp_path, last="a") as folder:
            for name in ("a", "b", "z"):
                write_atomically(folder / name, b"new")
            replace = os.replace
            monkeypatch.setattr("os.replace", lambda *names: (fail if names[0].name == "z" else replace)(*names))
            if not links:
                monkeypatch.setattr("os.link", fail)

    with recording() as written, pytest.raises(OSError, match="broken"):
        write()
    assert list(written.targets) == []
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"a": b"old", "b": b"old"}


def test_two_commands_at_once_know_their_own_files(tmp_path: Path) -> None:
    found: dict[str, list[str]] = {}

    def run(name: str) -> None:
        with recording() as written:
            write_atomically(tmp_path / name, b"")
        found[name] = list(written.targets)

    threads = [threading.Thread(target=run, args=[name]) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {name: [str(tmp_path / name)] for name in ("a", "b")}


def test_an_error_keeps_its_attributes_when_it_comes_from_another_process() -> None:
    """A copy is made the same way as an error that crosses processes."""
    lost = copy.copy(EngineError("lost.", nothing_written=True))
    assert (str(lost), lost.message, lost.nothing_written) == ("lost. Nothing was written.", "lost.", True)
    missing = copy.copy(MissingColumnError("no x.", "Name y.", role="context", column="x"))
    assert (str(missing), missing.problem, missing.role, missing.column) == ("no x. Name y.", "no x.", "context", "x")
