"""A file is as it was, or whole and new, whatever fails and whenever the process dies."""

from __future__ import annotations

import errno
import gc
import gzip
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clickmix as cm
from clickmix.engines.duckdb import DuckDB
from clickmix.report import log_page, write_page
from clickmix.storage.atomic import check_writable, write_atomically
from clickmix.storage.packed import unpack
from logs import small_log, write

COUNTS = cm.Counts.from_arrays(["q"] * 4, [1, 2, 3, 4], [1, 1, 2, 2], [90, 90, 90, 90], [60, 5, 40, 2])
FIT = cm.MixtureCorrection().fit(COUNTS)
WRITERS: dict[str, Callable[[Path], object]] = {
    "counts.parquet": COUNTS.write,
    "counts.csv.gz": COUNTS.write,
    "labels.parquet": FIT.label(COUNTS).write,
    "labels.csv": FIT.label(COUNTS).write,
    "labels.ndjson": FIT.label(COUNTS).write,
    "model.json": FIT.write,
    "report.html": lambda path: write_page(log_page(COUNTS, FIT, sources=[], correction="mixture"), path),
}
# What a writer asks of the system, in the order in which it does.
DOCUMENTS = ["model.json"]
CALLS = ["os.open", "os.fsync", "os.close", "os.replace"]


def fail_at(monkeypatch: pytest.MonkeyPatch, point: int) -> list[str]:
    """Let the system refuse the `point`-th of those calls; tells which were made."""
    gc.collect()  # else what other tests left may be cleared away meanwhile, with calls like these
    made: list[str] = []

    def counted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            made.append(name)
            if len(made) == point:
                if name == "os.close":
                    original(*arguments)
                raise OSError(errno.EIO, f"{name} failed", "somewhere")
            return original(*arguments, **named)

        return call

    for name in CALLS:
        monkeypatch.setattr(name, counted(name, getattr(os, name.split(".")[1])))
    return made


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("point", range(1, 9))
def test_a_failing_call_leaves_the_old_file_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, point: int
) -> None:
    WRITERS[name](tmp_path / name)
    new = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(b"old")
    with monkeypatch.context() as patch:
        made = fail_at(patch, point)
        try:
            WRITERS[name](tmp_path / name)
        except OSError:
            expected = b"old"
        else:
            expected = new
    assert (tmp_path / name).read_bytes() == expected
    assert [file.name for file in tmp_path.iterdir()] == [name]
    # open, sync, close the file; rename it (the point of no return); then sync the folder, which may fail.
    replaced = made.index("os.replace") if "os.replace" in made else len(made)
    assert expected == (b"old" if point <= replaced + 1 else new)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A temporary path on a device that is always full."""
    (tmp_path / name).write_bytes(b"old")
    monkeypatch.setattr("secrets.token_hex", lambda size: "full")
    (tmp_path / f".{name}.full.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left|full"):
        WRITERS[name](tmp_path / name)
    assert (tmp_path / name).read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == [name]


# Writes each file in processes of their own, which kill themselves at the 1st call, the 2nd, and so on.
KILLED = """
import os, signal, sys
from pathlib import Path
import test_atomic
def counted(original):
    def call(*arguments, **named):
        made.append(original)
        if len(made) == point:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)
    return call
for point in test_atomic.POINTS:
    for name in test_atomic.DOCUMENTS:
        made = []
        if os.fork() == 0:
            for call in test_atomic.CALLS:
                setattr(os, call.split(".")[1], counted(getattr(os, call.split(".")[1])))
            test_atomic.WRITERS[name](Path(sys.argv[1], str(point), name))
            os._exit(0)
        os.wait()
"""
POINTS = range(1, 8)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each call: what a writer left that was killed there."""
    folder = tmp_path_factory.mktemp("killed")
    for point in POINTS:
        (folder / str(point)).mkdir()
        (folder / str(point) / "model.json").write_bytes(b"old")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=True, timeout=60, env=environment)
    return folder


@pytest.mark.xdist_group("killed at a call")  # by a program that starts once
@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_at_a_call_leaves_the_old_file_or_the_new_one(killed: Path, point: int) -> None:
    """All writers go the same way (`replacing`); the engine's threads do not live on after a fork, so: the document."""
    # Up to the rename the old one, after it the new one.
    assert (killed / str(point) / "model.json").read_bytes() == (b"old" if point <= 4 else FIT.to_json().encode())


def test_debias_killed_at_any_moment_leaves_old_or_new_files(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", small_log(rows=3000))
    labels, model = tmp_path / "labels.csv", tmp_path / "model.json"
    command = [
        sys.executable,
        "-c",
        "import clickmix.cli; clickmix.cli.main()",
        "debias",
        str(log),
        "-o",
        str(labels),
        "--model",
        str(model),
    ]
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
    whole = time.monotonic() - start
    new = {file: file.read_bytes() for file in (labels, model)}
    rng = random.Random(0)
    for moment in [rng.uniform(0.5, 1.1) * whole for _ in range(6)]:
        for file in new:
            file.write_bytes(b"old")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert all(file.read_bytes() in (b"old", bytes) for file, bytes in new.items())


def test_two_writers_at_once(tmp_path: Path) -> None:
    texts = [bytes([65 + i]) * 100_000 for i in range(4)]

    def often(data: bytes) -> None:
        for _ in range(20):
            write_atomically(tmp_path / "file", data)

    writers = [threading.Thread(target=often, args=(data,)) for data in texts]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        if (tmp_path / "file").exists():
            seen.add((tmp_path / "file").read_bytes())
    assert seen <= set(texts)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("missing/x.csv", "missing/x.csv: the folder missing does not exist. Create it first, or choose another path."),
        ("folder", "folder: this is a folder. Name a file to write."),
        ("pipe", "pipe: not an ordinary file, and it would be replaced. Name a file to write."),
        ("locked/x.csv", "locked/x.csv: the folder locked cannot be written to. Choose another path."),
    ],
)
def test_paths_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("folder", "locked"):
        Path(folder).mkdir()
    os.mkfifo("pipe")
    # Root may write anywhere, so the system's answer is given here.
    monkeypatch.setattr("os.access", lambda folder, mode: str(folder) != "locked")
    with pytest.raises(cm.InputError) as caught:
        check_writable(path)
    assert str(caught.value) == expected


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    COUNTS.write(tmp_path / ("x" * 229 + ".parquet"))
    assert [len(file.name) for file in tmp_path.iterdir()] == [237]


def test_a_full_temporary_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    expected = f"{tmp_path}: the temporary folder is full. Free some space, or choose another one with the environment "
    engine = DuckDB(memory="20MB", threads=1)
    engine.run("SET max_temp_directory_size = '1MB'")
    with pytest.raises(cm.EngineError, match=re.escape(expected)):
        engine.keep("SELECT i, hash(i) AS h FROM range(5000000) AS t(i) ORDER BY h")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(b"query_id"))
    monkeypatch.setattr(Path, "open", raising(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(cm.EngineError, match=re.escape(expected)):
        unpack(tmp_path / "log.csv.gz", engine.folder / "log.csv")


def raising(error: Exception) -> Callable[..., None]:
    def call(*arguments: object) -> None:
        raise error

    return call
