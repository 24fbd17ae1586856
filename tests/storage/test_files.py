"""A file is as it was, or whole and new, whatever fails and whenever the process dies; files that lie are refused."""

from __future__ import annotations

import errno
import gc
import gzip
import json
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
from clickmix.storage.files import check_writable, document_text, read_document, unpack, write_atomically
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


# Writes each file in a process of its own, which kills itself at the given call.
KILLED = """
import os, signal, sys
from pathlib import Path
import test_files
folder, point = Path(sys.argv[1]), int(sys.argv[2])
def counted(original):
    def call(*arguments, **named):
        made.append(original)
        if len(made) == point:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)
    return call
for name in test_files.DOCUMENTS:
    made = []
    if os.fork() == 0:
        for call in test_files.CALLS:
            setattr(os, call.split(".")[1], counted(getattr(os, call.split(".")[1])))
        test_files.WRITERS[name](folder / name)
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("point", range(1, 8))
def test_a_process_killed_at_a_call_leaves_the_old_file_or_the_new_one(tmp_path: Path, point: int) -> None:
    """All writers go the same way (`replacing`); the engine's threads do not live on after a fork, so: the document."""
    file = tmp_path / "model.json"
    file.write_bytes(b"old")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(point)]
    subprocess.run(command, check=True, timeout=60, env=environment)
    # Up to the rename the old one, after it the new one.
    assert file.read_bytes() == (b"old" if point <= 4 else FIT.to_json().encode())


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
        ("missing/x.csv", "missing/x.csv: the folder missing does not exist. Make it first, or choose another path."),
        ("folder", "folder: this is a folder. Give the name of a file to write."),
        ("pipe", "pipe: this is no ordinary file and would be replaced. Give the name of a file to write."),
        ("locked/x.csv", "locked/x.csv: the folder locked cannot be written. Choose another path."),
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
    expected = f"{tmp_path}: the temporary folder is full. Free some of it, or choose another one with the environment "
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


def refused(tmp_path: Path, data: bytes) -> str:
    file = tmp_path / "model.json"
    file.write_bytes(data)
    with pytest.raises((cm.FormatError, cm.InputError)) as caught:
        cm.MixtureFit.read(file)
    return str(caught.value).removeprefix(f"{file}: ")


def accepted(file: Path, data: bytes) -> bool:
    file.unlink(missing_ok=True)  # a file that is emptied and filled again waits for the disk on ext4, 2 ms each time
    file.write_bytes(data)
    try:
        cm.MixtureFit.read(file)
    except (cm.FormatError, cm.InputError):
        return False
    return True


MODEL = FIT.to_json().encode()


def test_a_model_comes_back_as_it_was(tmp_path: Path) -> None:
    FIT.write(tmp_path / "model.json")
    assert cm.MixtureFit.read(tmp_path / "model.json") == FIT


def test_a_model_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    # The last byte is a newline after the document.
    assert [n for n in range(len(MODEL) - 1) if accepted(tmp_path / "model.json", MODEL[:n])] == []


def test_a_model_with_any_bit_flipped_is_refused_or_means_the_same(tmp_path: Path) -> None:
    meant = json.loads(MODEL)
    wrong = []
    for i in range(8 * len(MODEL)):
        flipped = bytearray(MODEL)
        flipped[i // 8] ^= 1 << i % 8
        if accepted(tmp_path / "model.json", bytes(flipped)) and json.loads(flipped) != meant:
            wrong.append(i)
    assert wrong == []


def changed(change: Callable[[dict[str, Any]], object], *, version: int = 2, kind: str = "clickmix model") -> bytes:
    """The model with a changed payload and a checksum that fits it."""
    payload = json.loads(MODEL)["payload"]
    change(payload)
    return document_text(kind=kind, version=version, payload=payload).encode()


def group(payload: dict[str, Any]) -> Any:
    return payload["groups"][0]


AGAIN = ". Make the model again."
CANNOT = "not a model this clickmix can use: "
# ruff: noqa: E501
LIES: list[tuple[str, bytes, str]] = [
    ("empty", b"", "damaged, or not a clickmix model: not a JSON document."),
    ("binary", b"\xff\x00", "damaged, or not a clickmix model: not UTF-8 text."),
    ("nested", b"[" * 1_000_000, "damaged, or not a clickmix model: not a JSON document."),
    ("list", b"[]", "damaged, or not a clickmix model: expected kind, version, payload and checksum."),
    ("NaN", MODEL.replace(b'"moving": 0.0', b'"moving": NaN'), "damaged, or not a clickmix model: not a JSON document."),
    ("key twice", b'{"kind": 1, "kind": 1}', "damaged, or not a clickmix model: not a JSON document."),
    ("a long number", b'{"kind": ' + b"9" * 5000 + b"}", "damaged, or not a clickmix model: not a JSON document."),
    ("other kind", changed(lambda p: None, kind="ranker"), "found a 'ranker', expected a 'clickmix model'."),
    (
        "other version",
        changed(lambda p: None, version=1),
        "format version 1, this clickmix reads version 2. Make the file again with this clickmix, or use the one that wrote it.",
    ),
    ("version true", changed(lambda p: None, version=True), "format version True, this clickmix reads version 2. Make the file again with this clickmix, or use the one that wrote it."),
    ("other checksum", MODEL.replace(b'"moving": 0.0', b'"moving": 1.0'), "damaged: the checksum does not fit the contents. Make the file again."),
    ("infinite", MODEL.replace(b'"moving": 0.0', b'"moving": 1e999'), "damaged, or not a clickmix model: not a JSON document."),
    ("payload a list", document_text(kind="clickmix model", version=2, payload=[]).encode(), "damaged: the checksum does not fit the contents. Make the file again."),  # type: ignore[arg-type]
    ("missing field", changed(lambda p: p.pop("moving")), CANNOT + "the fields of a model should be bics, checks, context, examination, fitted, groups, joint_error, log_likelihoods, mixture, moving, prior, shared, steps" + AGAIN),
    ("extra field", changed(lambda p: p.update(more=1)), CANNOT + "the fields of a model should be bics, checks, context, examination, fitted, groups, joint_error, log_likelihoods, mixture, moving, prior, shared, steps" + AGAIN),
    ("extra field in a group", changed(lambda p: group(p).update(more=1)), CANNOT + "the fields of a group should be mixture, places, prior" + AGAIN),
    ("no groups", changed(lambda p: p["groups"].clear()), CANNOT + "a model without groups" + AGAIN),
    ("groups a text", changed(lambda p: p.update(groups="x")), CANNOT + "groups, expected a list" + AGAIN),
    ("group a number", changed(lambda p: p.update(groups=[1])), CANNOT + "groups, expected a list of objects" + AGAIN),
    ("mixture unknown", changed(lambda p: p.update(mixture="magic")), CANNOT + "mixture 'magic', expected one of auto, binomial, graded, gaussian, nonparametric" + AGAIN),
    ("mixture a list", changed(lambda p: group(p).update(mixture=[])), CANNOT + "mixture, expected an object" + AGAIN),
    ("prior text", changed(lambda p: group(p).update(prior="x")), CANNOT + "prior, expected a list" + AGAIN),
    ("prior true", changed(lambda p: group(p).update(prior=[True, 0.5])), CANNOT + "prior True, expected a number from 0 to 1" + AGAIN),
    ("prior huge", changed(lambda p: group(p).update(prior=[10**400, 0.5])), CANNOT + "prior, a number too large" + AGAIN),
    ("prior one", changed(lambda p: group(p).update(prior=[0.0, 1.0])), CANNOT + "prior [0.0, 1.0], expected shares of grades, between 0 and 1, that add up to 1" + AGAIN),
    ("prior short", changed(lambda p: group(p).update(prior=[0.2, 0.2, 0.6])), CANNOT + "groups with different numbers of grades" + AGAIN),
    ("bics", changed(lambda p: p.update(bics={"two": 1})), CANNOT + "bics, expected numbers of grades with their BIC" + AGAIN),
    ("check unknown", changed(lambda p: p.update(checks=[{"violation": "x", "statistic": 1, "limit": 1, "evidence": ""}])), CANNOT + "violation 'x', expected one of rates rise down the page, more grades than were fitted, clicks depend on the documents above, documents clicked more, or less, than any grade, documents clicked at rates between the grades'" + AGAIN),
    ("check half", changed(lambda p: p.update(checks=[{"violation": "x"}])), CANNOT + "the fields of a check should be evidence, limit, statistic, violation" + AGAIN),
    ("evidence a number", changed(lambda p: p.update(checks=[{"violation": "more grades than were fitted", "statistic": 1, "limit": 1, "evidence": 1}])), CANNOT + "evidence, expected text" + AGAIN),
    ("joint error", changed(lambda p: p.update(joint_error=2)), CANNOT + "joint_error 2, expected a number from 0 to 1" + AGAIN),
    ("shared", changed(lambda p: p.update(shared="yes")), CANNOT + "shared 'yes', expected true or false" + AGAIN),
    ("position 0", changed(lambda p: group(p)["places"][0].update(position=0)), CANNOT + "position 0, expected a whole number from 1 on" + AGAIN),
    ("position real", changed(lambda p: group(p)["places"][0].update(position=1.0)), CANNOT + "position 1.0, expected a whole number from 1 on" + AGAIN),
    ("context too long", changed(lambda p: group(p)["places"][0].update(context=["x"])), CANNOT + "a place whose context does not fit the model's" + AGAIN),
    ("context a number", changed(lambda p: p.update(context=[1])), CANNOT + "context [1], expected texts" + AGAIN),
    ("no places", changed(lambda p: group(p)["places"].clear()), CANNOT + "a group without places" + AGAIN),
    ("no documents", changed(lambda p: group(p)["places"][0].update(documents=0)), CANNOT + "documents 0, expected a whole number from 1 on" + AGAIN),
    ("a place twice", changed(lambda p: p["groups"].append(p["groups"][0])), CANNOT + "a place in two groups" + AGAIN),
    ("rates beyond", changed(lambda p: group(p)["mixture"].update(rates=[5, 6], weights=[0.5, 0.5])), CANNOT + "rates 5, expected a number from -1 to 2" + AGAIN),
    ("weights", changed(lambda p: group(p)["mixture"].update(rates=[0.1, 0.2], weights=[0.5, 0.6])), CANNOT + "weights and rates that do not fit together" + AGAIN),
    ("verdict", changed(lambda p: group(p)["mixture"].update(verdict="fine")), CANNOT + "verdict 'fine', expected one of separated, overlapping, one rate, no clicks, all clicked, too few documents, not converged" + AGAIN),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
def test_models_that_lie(tmp_path: Path, data: bytes, expected: str) -> None:
    assert refused(tmp_path, data) == expected


def test_what_is_no_model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(cm.InputError, match=re.escape("missing.json: no such file. Expected a clickmix model.")):
        cm.MixtureFit.read(tmp_path / "missing.json")
    with pytest.raises(cm.InputError, match=re.escape("not a file. Expected a clickmix model.")):
        cm.MixtureFit.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(cm.InputError, match=re.escape("not a file. Expected a clickmix model.")):
        cm.MixtureFit.read(tmp_path / "pipe")
    monkeypatch.setattr("clickmix.storage.files.LARGEST_DOCUMENT", 100)
    FIT.write(tmp_path / "model.json")
    with pytest.raises(cm.FormatError, match=re.escape("larger than 0 MiB, so not a clickmix model.")):
        read_document(tmp_path / "model.json", kind="clickmix model", version=2)
