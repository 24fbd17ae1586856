"""Damaged files, odd names, closed streams: one clear line, or the work is done all the same; never a stack trace."""

from __future__ import annotations

import _thread
import errno
import gzip
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import clickmix as cm
from clickmix.counts.counts import parse_record
from clickmix.engines.duckdb import DuckDB
from commands import COMMAND, ENVIRONMENT, failure
from logs import small_log, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the logs of two days, and the counts of the first."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "monday.parquet", small_log(seed=1))
    write(tmp_path / "tuesday.parquet", small_log(seed=2))
    cm.count("monday.parquet").write("counts.parquet")
    return tmp_path


def shell(line: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of shell; `clickmix` in it is the command."""
    command = line.replace("clickmix", f"{sys.executable} -m clickmix")
    return subprocess.run(["bash", "-c", command], env=ENVIRONMENT, capture_output=True, check=False)


def damaged(data: bytes, seed: int) -> bytes:
    """A file's bytes with a few of them changed at random, or cut off."""
    rng = random.Random(seed)
    start, length = rng.randrange(len(data)), rng.randrange(1, 12)
    return data[:start] + (rng.randbytes(length) + data[start + length :] if seed % 4 else b"")


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_counts_file_is_merged_or_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    Path("counts.parquet").write_bytes(damaged(Path("counts.parquet").read_bytes(), seed))
    monkeypatch.setattr(sys, "argv", ["clickmix", "counts", "--merge", "counts.parquet", "tuesday.parquet"])
    from clickmix import cli

    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code in (0, 2)
    assert capsys.readouterr().err.count("\n") == (1 if caught.value.code else 0)


def test_a_counts_file_with_broken_pages_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray(Path("counts.parquet").read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:footer] = bytes(footer - 4)
    Path("counts.parquet").write_bytes(data)
    told = failure(capsys, monkeypatch, "counts", "--merge", "counts.parquet", "tuesday.parquet")
    assert told.startswith("clickmix: counts.parquet: cannot be read: ")
    assert told.endswith(". The file may be damaged or cut off; write it again.\n")


def test_labels_that_were_damaged_while_the_log_was_read_are_named(folder: Path) -> None:
    from clickmix.judging.changes import labels_moved, open_labels

    labels = cm.NoCorrection().label(cm.count("monday.parquet"))
    labels.write("labels.parquet")
    before = open_labels("labels.parquet", labels.counts.engine)
    Path("labels.parquet").write_bytes(b"PAR1")
    with pytest.raises(cm.InputError, match=r"^labels\.parquet: cannot be read: .*write it again\.$"):
        labels_moved(labels, before)


def test_notes_of_other_tools_may_be_any_bytes(folder: Path) -> None:
    duckdb.sql("COPY (SELECT 1) TO 'other.parquet' (FORMAT parquet, KV_METADATA {clickmix: 'x', another: 'y'})")
    Path("other.parquet").write_bytes(Path("other.parquet").read_bytes().replace(b"another", b"\xff" * 7))
    assert DuckDB().notes("['other.parquet']") == [("other.parquet", "x")]


def test_a_record_that_is_not_utf_8_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = r"(FORMAT parquet, KV_METADATA {clickmix: '\xFF'::BLOB})"
    duckdb.sql(f"COPY (SELECT * FROM 'counts.parquet') TO 'other.parquet' {noted}")
    told = failure(capsys, monkeypatch, "counts", "--merge", "other.parquet", "tuesday.parquet")
    assert told == ("clickmix: other.parquet: the record of counted files cannot be read. Count the log again.\n")


def test_a_record_of_many_brackets_is_refused() -> None:
    with pytest.raises(cm.FormatError) as caught:
        parse_record("[" * 100_000, "counts.parquet")
    assert str(caught.value) == ("counts.parquet: the record of counted files cannot be read. Count the log again.")


@pytest.mark.parametrize(
    "words",
    [
        [b"counts", b"log\xff.parquet", b"-o", b"counts.csv"],
        [b"counts", b"folder\xff", b"-o", b"counts.csv"],
        [b"counts", b"monday.parquet", b"-o", b"counts\xff.csv"],
        [b"counts", b"nowhere\xff.parquet", b"-o", b"counts.csv"],
        [b"counts", b"--merge", b"log\xff.parquet", b"tuesday.parquet"],
        [b"counts", b"monday.parquet", b"-o", b"counts.csv", b"--columns", b"query_id=\xff"],
    ],
)
def test_a_name_that_is_not_utf_8_is_told_in_one_line(folder: Path, words: list[bytes]) -> None:
    os.mkdir(b"folder\xff")
    for name in (b"log\xff.parquet", b"folder\xff/log.parquet"):
        Path(os.fsdecode(name)).write_bytes(Path("counts.parquet").read_bytes())
    done = subprocess.run([*COMMAND, *map(os.fsdecode, words)], env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"\\udcff" in done.stderr


def test_a_model_and_a_folder_may_have_names_that_are_not_utf_8(folder: Path) -> None:
    os.mkdir(b"here\xff")
    words = [*COMMAND, "fit", "../monday.parquet", "-o", os.fsdecode(b"model\xff.json")]
    done = subprocess.run(words, env=ENVIRONMENT, cwd=b"here\xff", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Wrote the model to model\\udcff.json." in done.stdout


def test_small_files_are_known_in_a_folder_whose_name_is_not_utf_8(folder: Path) -> None:
    os.mkdir(b"here\xff")
    Path(os.fsdecode(b"here\xff/log.csv")).write_text("query_id,doc_id,position,clicked\nq,d,1,1\n")
    words = [*COMMAND, "counts", "log.csv", "-o", "counts.parquet"]
    done = subprocess.run(words, env=ENVIRONMENT, cwd=b"here\xff", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_do_not_matter(folder: Path, closed: str) -> None:
    done = shell(f"clickmix debias monday.parquet -o labels.parquet --model model.json {closed}")
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert cm.MixtureFit.read("model.json").groups
    assert duckdb.read_parquet("labels.parquet").fetchall()


def test_an_error_without_a_stream_to_tell_it_is_an_exit_code(folder: Path) -> None:
    assert shell("clickmix debias nowhere.parquet -o labels.parquet 2>&-").returncode == 2


@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_reader_who_leaves_does_not_stop_the_work(folder: Path, reader: str) -> None:
    words = "-o labels.parquet --model model.json --report report.html"
    done = shell(f"clickmix debias monday.parquet {words} 2>&1 | {reader}; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == 0
    assert done.stderr == b""
    assert {"labels.parquet", "model.json", "report.html"} <= set(os.listdir())


def test_an_error_after_the_reader_left_is_an_exit_code(folder: Path) -> None:
    done = shell("clickmix debias monday.parquet -o nowhere/labels.parquet | true; exit ${PIPESTATUS[0]}")
    assert done.returncode == 2
    assert done.stderr.startswith(b"clickmix: nowhere/labels.parquet: the folder nowhere does not exist.")


def test_a_header_of_very_many_columns_is_read_at_once(folder: Path) -> None:
    columns = [*(f"c{i}" for i in range(130_000)), "C0"]
    Path("wide.csv").write_text(",".join(columns) + "\n")
    words = [*COMMAND, "counts", "wide.csv", "-o", "counts.csv"]
    # A second; a comparison of every column with every other takes minutes.
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, check=False, timeout=60)
    assert done.stderr == b"clickmix: wide.csv: the header has the column 'C0' twice. Rename one of them.\n"


def test_a_symbolic_link_stays_one_and_its_target_is_replaced(folder: Path) -> None:
    Path("store").mkdir()
    Path("store/labels.csv").write_text("old\n")
    Path("labels.csv").symlink_to("store/labels.csv")
    cm.NoCorrection().label(cm.count("monday.parquet")).write("labels.csv")
    assert Path("labels.csv").is_symlink()
    assert Path("store/labels.csv").read_text().startswith("query_id,doc_id,relevance")
    assert os.listdir("store") == ["labels.csv"]


def test_a_link_into_a_folder_that_is_not_there_is_refused(folder: Path) -> None:
    Path("labels.csv").symlink_to("nowhere/labels.csv")
    with pytest.raises(cm.InputError, match="nowhere does not exist"):
        cm.count("monday.parquet").write("labels.csv")


def test_a_temporary_folder_that_is_not_there_is_told(folder: Path) -> None:
    done = shell("TMPDIR=nowhere clickmix counts monday.parquet -o new.parquet")
    assert done.returncode == 2
    assert done.stderr == (
        b"clickmix: TMPDIR=nowhere: not a folder that can be written to. Create it, or choose another one.\n"
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder here that nobody can write")
def test_a_temporary_folder_that_takes_no_files_is_told(folder: Path) -> None:
    """Not even from root, who may write everywhere else."""
    done = shell("TMPDIR=/proc clickmix counts monday.parquet -o new.parquet")
    assert done.stderr == (
        b"clickmix: TMPDIR=/proc: not a folder that can be written to. Create it, or choose another one.\n"
    )


@pytest.mark.parametrize("megabytes", [100, 700])
def test_too_few_addresses_are_told(folder: Path, megabytes: int) -> None:
    """Libraries crashed the process where they found no room for their threads."""
    done = shell(f"ulimit -v {megabytes * 1024}; clickmix debias monday.parquet -o new.parquet")
    assert done.returncode == 2
    assert done.stderr.startswith(
        b"clickmix: out of memory: the system allows this process %d MB (see ulimit -v), " % megabytes
    )
    assert done.stderr.count(b"\n") == 1


def test_an_engine_reaches_nothing_outside_this_machine(folder: Path) -> None:
    for outside in ("read_csv('http://localhost:1/x.csv')", "read_parquet('s3://bucket/x.parquet')"):
        with pytest.raises(duckdb.PermissionException):
            DuckDB().rows(f"SELECT * FROM {outside}")
    with pytest.raises(duckdb.PermissionException):
        DuckDB().run("LOAD httpfs")


def test_nothing_is_fetched_from_anywhere() -> None:
    settings = DuckDB().rows(
        "SELECT value FROM duckdb_settings() WHERE name LIKE 'auto%_known_extensions' ORDER BY name"
    )
    assert settings == [("false",), ("false",)]


def test_a_line_nested_very_deep_is_told(folder: Path) -> None:
    deep = "[" * 5_000 + "]" * 5_000
    Path("deep.ndjson").write_text(f'{{"query_id": "q", "doc_id": "d", "position": 1, "clicked": 1, "x": {deep}}}\n')
    with pytest.raises(cm.InputError) as caught:
        cm.count("deep.ndjson")
    assert str(caught.value) == (
        "deep.ndjson: cannot be read: a line of JSON is nested more than 128 levels deep. The file may be damaged or "
        "cut off; write it again."
    )


def test_a_line_of_json_longer_than_the_reader_can_hold_is_told(folder: Path) -> None:
    line = '{"query_id": "%s", "doc_id": "d", "position": 1, "clicked": 1}\n'
    Path("long.ndjson").write_text(line % "q" + line % ("q" * 40_000_000))
    with pytest.raises(cm.InputError) as caught:
        cm.count("long.ndjson", bad_rows="skip")
    assert str(caught.value) == (
        "long.ndjson: cannot be read: a line of JSON is longer than 16,777,216 bytes. The file may be damaged or cut "
        "off; write it again."
    )


def test_a_gzipped_file_that_is_not_parquet_is_named_as_it_was_given(folder: Path) -> None:
    Path("log.parquet.gz").write_bytes(gzip.compress(bytes(100)))
    with pytest.raises(cm.InputError) as caught:
        cm.count("log.parquet.gz")
    assert str(caught.value) == (
        "log.parquet.gz: cannot be read: No magic bytes found at end of file 'log.parquet.gz'. The file may be damaged "
        "or cut off; write it again."
    )


def test_too_many_open_files_are_told_as_that(folder: Path) -> None:
    Path("log").mkdir()
    for number in range(100):
        Path(f"log/{number}.parquet").write_bytes(Path("monday.parquet").read_bytes())
    done = shell("ulimit -n 24; clickmix debias log -o labels.csv")
    assert done.returncode == 2
    assert done.stderr == (
        b"clickmix: log/0.parquet and 99 more: cannot be read: too many files are open. Allow more with ulimit -n, or "
        b"count some of the files at a time and add the others with counts --merge.\n"
    )


def test_an_engine_without_room_for_a_thread_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(work: Callable[[], None], arguments: tuple[()]) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", full)
    with pytest.raises(MemoryError, match=r"^no room for another thread$"):
        DuckDB().rows("SELECT 1")


def test_a_system_that_gives_no_memory_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*modules: str) -> None:
        raise ImportError("lib.so: failed to map segment from shared object")

    monkeypatch.setattr("clickmix.cli.labels.loading", full)
    assert failure(capsys, monkeypatch, "debias", "monday.parquet", "-o", "labels.csv") == (
        "clickmix: out of memory: the system allows this process no more (see ulimit -v). Nothing was written.\n"
    )


KILLED = """
import os, signal, sys
from pathlib import Path
from clickmix.storage import atomic
from clickmix.storage.atomic import write_atomically
point, made, usual = int(sys.argv[1]), 0, os.replace
def replace(*names):
    global made
    made += 1
    if made == point:
        os.kill(os.getpid(), signal.SIGKILL)
    usual(*names)
os.replace = replace
with atomic.replacing_together(Path("."), last="log") as together:
    for name in ("features", "truth", "log"):
        write_atomically(together / name, b"new")
"""


@pytest.mark.parametrize("point", range(1, 8))
def test_files_that_belong_together_are_all_old_all_new_or_lack_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: int
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["features", "truth", "log"]
    for name in names:
        Path(name).write_text("old")
    subprocess.run([sys.executable, "-c", KILLED, str(point)], env=ENVIRONMENT, check=False)
    found = [Path(name).read_text() if Path(name).exists() else "none" for name in names]
    assert found in (["old"] * 3, ["new"] * 3) or found[2] == "none"


def test_a_simulation_that_fails_leaves_the_one_before(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clickmix.lab import simulate

    monkeypatch.setattr("clickmix.lab.collections.production.TREES", 2)
    settings = simulate.Simulation(clicks=500)
    collection = simulate.open_collection(None, queries=20, seed=0)
    simulate.write_simulation(collection, Path("sim"), settings)
    before = {file.name: file.read_bytes() for file in Path("sim").iterdir()}

    def full(*arguments: object, **named: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(arguments[1]))

    monkeypatch.setattr(simulate, "write_sessions", full)
    other = simulate.open_collection(None, queries=20, seed=1)
    with pytest.raises(OSError, match="No space left") as caught:
        simulate.write_simulation(other, Path("sim"), settings)
    assert caught.value.filename == "sim/log.parquet"
    assert {file.name: file.read_bytes() for file in Path("sim").iterdir()} == before


def test_a_folder_that_was_made_before_a_failure_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **named: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "demo/truth.parquet")

    monkeypatch.setattr("clickmix.lab.demo.write_columns", full)
    assert failure(capsys, monkeypatch, "demo") == (
        "clickmix: demo/truth.parquet: No space left on device. Written before that: demo.\n"
    )


CIRCLES = [
    "debias monday.parquet -o circle.csv",
    "debias monday.parquet -o new.csv --model circle.csv",
    "counts tuesday.parquet --merge circle.csv",
    "export labels.csv --to qrels -o circle.csv",
    "score --ranker ranker --features monday.parquet -o circle.csv",
]


@pytest.mark.parametrize("words", CIRCLES)
def test_an_output_that_is_a_link_in_a_circle_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    Path("circle.csv").symlink_to("back.csv")
    Path("back.csv").symlink_to("circle.csv")
    cm.NoCorrection().label(cm.count("monday.parquet")).write("labels.csv")
    told = failure(capsys, monkeypatch, *words.split())
    assert told == "clickmix: circle.csv: this link leads back to itself. Remove it, or choose another path.\n"
    assert Path("circle.csv").readlink() == Path("back.csv")


@pytest.mark.parametrize("words", ["evaluate --ranker circle.csv --features x.csv", "inspect circle.csv"])
def test_an_input_that_is_a_link_in_a_circle_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    Path("circle.csv").symlink_to("circle.csv")
    assert failure(capsys, monkeypatch, *words.split()).startswith("clickmix: circle.csv")


@pytest.mark.parametrize("words", ["debias pipe.csv -o labels.csv", "counts pipe.csv -o new.csv", "inspect pipe.csv"])
def test_a_log_that_can_be_read_only_once_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    os.mkfifo("pipe.csv")
    told = failure(capsys, monkeypatch, *words.split())
    assert told == (
        "clickmix: pipe.csv: a pipe, a socket or a device. A log is read several times; write it to a file first.\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        "compare monday.parquet --corrections none --seed -1",
        "debias monday.parquet -o labels.csv --correction regression-em --features monday.parquet --seed -1",
    ],
)
def test_a_seed_below_0_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    told = failure(capsys, monkeypatch, *words.split())
    assert told == "clickmix: seed=-1: expected a whole number from 0.\n"
