"""The command: what it prints, what it writes, how it fails."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

import clickmix as cm
from commands import COMMAND, ENVIRONMENT, failure, run
from logs import small_log, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a log of two days."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "monday.csv", small_log(seed=1))
    write(tmp_path / "tuesday.csv", small_log(seed=2))
    return tmp_path


def test_debias_writes_labels_and_a_model_and_says_so(folder: Path) -> None:
    result = run("debias", "monday.csv", "tuesday.csv", "-o", "labels.parquet", "--model", "model.json")
    rows = duckdb.read_parquet("labels.parquet")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Read 800 impressions and {sum(row[4] for row in rows.fetchall())} clicks.\n")
    assert f"Wrote {len(rows)} labels to labels.parquet.\n" in result.stdout
    assert rows.columns == ["query_id", "doc_id", "relevance", "impressions", "clicks", "low", "high"]
    assert "position 1" in result.stdout
    assert "\nThis log needs " in result.stdout
    assert cm.MixtureFit.read("model.json").mixture == "auto"


def test_label_with_a_saved_model_gives_the_labels_of_debias(folder: Path) -> None:
    run("debias", "monday.csv", "tuesday.csv", "-o", "debias.parquet", "--model", "model.json", "--context", "device")
    run("fit", "monday.csv", "tuesday.csv", "-o", "fit.json", "--context", "device")
    run("counts", "monday.csv", "-o", "monday.parquet", "--context", "device")
    run("label", "monday.parquet", "tuesday.csv", "--model", "fit.json", "-o", "label.parquet")
    assert Path("label.parquet").read_bytes() == Path("debias.parquet").read_bytes()
    assert Path("fit.json").read_bytes() == Path("model.json").read_bytes()


def test_places_that_a_model_has_not_seen_are_told(folder: Path) -> None:
    run("fit", "monday.csv", "-o", "fit.json")
    Path("far.csv").write_text("query_id,doc_id,position,clicked\nq,d,98,1\nq,e,99,0\n")
    result = run("label", "far.csv", "--model", "fit.json", "-o", "label.csv")
    assert "Places not in the model: 2, for instance position 98. The nearest known places are used.\n" in result.stdout


def test_a_log_without_the_context_of_the_model_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("fit", "monday.csv", "-o", "fit.json", "--context", "device")
    Path("plain.csv").write_text("query_id,doc_id,position,clicked\nq,d,1,1\n")
    assert failure(capsys, monkeypatch, "label", "plain.csv", "--model", "fit.json", "-o", "x.csv") == (
        "clickmix: plain.csv: no context column 'device'. Found query_id, doc_id, position, clicked. fit.json was "
        "fitted with context device: rename the log's columns, or fit a model without them.\n"
    )


def write_contexts(path: Path, contexts: int) -> None:
    rows = (f"q,{i % 40},{1 + i % 2},{i % 3 // 2},s{i // 2}\n" for i in range(2 * contexts))
    path.write_text("query_id,doc_id,position,clicked,session_id\n" + "".join(rows))


@pytest.mark.parametrize("command", ["debias", "counts", "fit"])
def test_too_many_contexts_are_told_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    write_contexts(folder / "log.csv", 21)
    options = ["log.csv", "-o", "out.json" if command == "fit" else "out.csv", "--context", "session_id"]
    assert failure(capsys, monkeypatch, command, *options, "--max-contexts", "20") == (
        "clickmix: context: session_id has 21 values, more than 20. A context is something like device: each of its "
        "values is fitted separately. Leave it out, or allow this many with --max-contexts 21 (in Python "
        "max_contexts=21).\n"
    )
    assert not list(folder.glob("out.*"))
    assert run(command, *options, "--max-contexts", "21").exit_code == 0


def test_a_model_of_many_contexts_labels_with_the_same_bound(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_contexts(folder / "log.csv", 21)
    run("fit", "log.csv", "-o", "fit.json", "--context", "session_id")
    options = ["log.csv", "--model", "fit.json", "-o", "out.csv", "--max-contexts"]
    assert "session_id has 21 values, more than 20" in failure(capsys, monkeypatch, "label", *options, "20")
    assert run("label", *options, "21").exit_code == 0


def test_hundreds_of_contexts_are_told_and_the_table_of_places_ends(folder: Path) -> None:
    write_contexts(folder / "log.csv", 300)
    result = run("fit", "log.csv", "-o", "fit.json", "--context", "session_id")
    assert (
        "session_id has 300 values; a context is something like device. Few documents are left for each, so small "
        "contexts that are clicked alike are fitted together.\n"
    ) in result.stdout
    assert sum(line.startswith("position ") for line in result.stdout.splitlines()) == 100
    assert "100 of 600 places shown; the model file (--model) has all.\n" in result.stdout
    write_contexts(folder / "log.csv", 50)
    result = run("fit", "log.csv", "-o", "fit.json", "--context", "session_id")
    assert sum(line.startswith("position ") for line in result.stdout.splitlines()) == 100
    assert "session_id has" not in result.stdout
    assert "places shown" not in result.stdout


def test_settings_of_counting_are_not_for_counts() -> None:
    counts = cm.Counts.from_arrays(["q"] * 2, ["a", "b"], [1, 2], [100, 100], [60, 2])
    given: dict[str, Any]
    for given in (
        {"context": ["device"]},
        {"columns": {"query_id": "term"}},
        {"bad_rows": "skip"},
        {"memory": "1GB"},
        {"engine": "duckdb"},
    ):
        with pytest.raises(cm.SettingError, match=f"{next(iter(given))}: this log is already counted"):
            cm.debias(counts, **given)
    assert len(cm.debias(counts, correction="none", context=[], columns={}, bad_rows="fail").relevance) == 2


def test_no_correction(folder: Path) -> None:
    result = run("debias", "monday.csv", "-o", "labels.csv", "--correction", "none")
    assert result.exit_code == 0
    assert Path("labels.csv").read_text().startswith("query_id,doc_id,relevance,impressions,clicks\nquery 0,")


def test_python_runs_the_package() -> None:
    words = [sys.executable, "-m", "clickmix", "--version"]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout == f"clickmix {cm.__version__}\n"


def test_counts_say_how_many_cells(folder: Path) -> None:
    result = run("counts", "monday.csv", "-o", "counts.ndjson")
    assert (
        result.stdout.splitlines()[1]
        == f"Wrote {len(cm.count('monday.csv').cells()['clicks'])} cells (query, document, position) to counts.ndjson."
    )


def test_inspect_shows_what_the_fit_showed(folder: Path) -> None:
    fitted = run("fit", "monday.csv", "-o", "model.json").stdout.splitlines()
    assert run("inspect", "model.json").stdout.splitlines()[2:] == fitted[2:]


def test_the_verdict_comes_first_then_why_then_what_to_do(folder: Path) -> None:
    _, _, blank, verdict, why, *rest = run("fit", "monday.csv", "-o", "model.json").stdout.splitlines()
    assert (blank, verdict[:5], why[:14]) == ("", "Do no", "Expected label")
    begins = [line.split()[0] for line in rest if line]
    assert begins.index("Next:") < begins.index("place")


@pytest.mark.parametrize("width", [60, 80, 110, 200])
@pytest.mark.parametrize("context", ["", "device"])
def test_the_table_fits_the_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch, context: str, width: int) -> None:
    run("fit", "monday.csv", "tuesday.csv", "-o", "model.json", "--context", context)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("inspect", "model.json").stdout.splitlines()
    places = [line for line in lines if re.match(r"position \d", line)]
    assert len(places) == (8 if context else 4)
    head = lines[lines.index(places[0]) - 1]
    assert max(map(len, [head, *places])) <= width
    assert head.split()[0] == "place"
    assert head.endswith("verdict")
    assert not re.search(r"\de[-+]?\d|〃|…", "".join(places))
    dropped = [line for line in lines if line.startswith("A wider terminal shows ")]
    assert len(dropped) == (width < 130)


def test_skipped_rows_are_told(folder: Path) -> None:
    with Path("monday.csv").open("a") as log:
        log.write("q,1,0,1,mobile\nq,1\n")
    lines = run("counts", "monday.csv", "-o", "counts.csv", "--bad-rows", "skip").stdout.splitlines()
    assert lines[1:3] == [
        "Skipped bad rows (1): the line has fewer columns than the header. For instance monday.csv, row 402: 'q,1'.",
        "Skipped bad rows (1): position is not a positive whole number. "
        "For instance monday.csv, row 401, column 'position': '0'. If positions count from 0, add 1 to all of them.",
    ]


FAILURES = [
    (
        "debias no.csv -o x.csv",
        "no.csv: no such file. Check the path; folders and globs such as 'logs/*.parquet' work too.",
    ),
    (
        "debias monday.csv -o no/x.csv",
        "no/x.csv: the folder no does not exist. Create it first, or choose another path.",
    ),
    (
        "debias monday.csv -o x.xlsx",
        "x.xlsx: unknown kind of file. Expected a name ending in .parquet, .csv, .csv.gz, .ndjson, .ndjson.gz.",
    ),
    (
        "debias monday.csv -o monday.csv",
        "monday.csv: would replace an input. Choose another name for the output.",
    ),
    (
        "debias . -o ./monday.csv",
        "monday.csv: would replace an input. Choose another name for the output.",
    ),
    (
        "debias monday.csv -o x.csv --model x.csv",
        "x.csv: would replace another output. Choose another name for the output.",
    ),
    (
        "fit monday.csv -o monday.csv",
        "monday.csv: would replace an input. Choose another name for the output.",
    ),
    (
        "fit monday.csv -o /dev/null",
        "/dev/null: not an ordinary file, and it would be replaced. Name a file to write.",
    ),
    (
        "label monday.csv --model monday.csv -o x.csv",
        "monday.csv: damaged, or not a clickmix model: not a JSON document.",
    ),
    (
        "counts monday.csv -o x.csv --columns query",
        "--columns 'query': expected name=column, for instance query_id=search_term.",
    ),
    (
        "counts monday.csv -o x.csv --memory big",
        "memory 'big' is not an amount of memory. Write for instance 4GB or 800MB.",
    ),
    (
        "counts monday.csv -o x.csv --memory 99999999999999999999TB",
        "memory '99999999999999999999TB' is too large a number. Write for instance 4GB or 800MB.",
    ),
    (
        f"counts monday.csv -o {'x' * 234}.csv",
        f"{'x' * 234}.csv: the name is too long. Choose one of at most 237 bytes.",
    ),
    (
        "inspect model.json",
        "model.json: no such file. Expected a clickmix model.",
    ),
]


@pytest.mark.parametrize(("words", "expected"), FAILURES, ids=[case[0] for case in FAILURES])
def test_what_a_user_can_put_right_is_told_in_one_line(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    expected: str,
) -> None:
    before = {file: file.read_bytes() for file in folder.iterdir()}
    assert failure(capsys, monkeypatch, *words.split()) == f"clickmix: {expected}\n"
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(28, "No space left on device", "x.csv"), "x.csv: No space left on device. Nothing was written."),
        (MemoryError("all of it"), "out of memory: all of it. Allow more with --memory, or free some."),
    ],
)
def test_what_the_machine_refuses(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    expected: str,
) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise error

    monkeypatch.setattr("clickmix.counts.counts.Counts.write", refuse)
    assert failure(capsys, monkeypatch, "counts", "monday.csv", "-o", "x.csv") == f"clickmix: {expected}\n"


def test_a_disk_that_is_full_after_the_labels_is_told_as_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda size: "full")
    (folder / ".model.json.full.tmp").symlink_to("/dev/full")
    text = failure(capsys, monkeypatch, "debias", "monday.csv", "-o", "labels.csv", "--model", "model.json")
    assert text == "clickmix: model.json: No space left on device. Written before that: labels.csv.\n"
    assert {"labels.csv"} == {file.name for file in folder.iterdir()} - {"monday.csv", "tuesday.csv"}


def test_too_little_memory_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = failure(capsys, monkeypatch, "counts", "monday.csv", "-o", "x.csv", "--memory", "100KB")
    assert text.startswith("clickmix: out of memory: ")
    assert not Path("x.csv").exists()


PAINT = "\x1b[31m\x07red\x1b[0m\u202e"


def test_a_log_cannot_paint_the_screen(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        folder / "log.csv",
        {
            "query_id": ["q"] * 9,
            "doc_id": range(9),
            "position": [1] * 9,
            "clicked": [0, 1, 1] * 3,
            "layout": [PAINT] * 9,
        },
    )
    monkeypatch.setenv("COLUMNS", "200")  # room for the whole name of a place
    shown = run("debias", "log.csv", "-o", "labels.csv", "--context", "layout").stdout
    assert "layout \\x1b[31m\\x07red\\x1b[0m\\u202e" in " ".join(shown.split())
    assert [c for c in shown if not c.isprintable() and c != "\n"] == []
    write(folder / "bad.csv", {"query_id": ["q"], "doc_id": ["d"], "position": [PAINT], "clicked": [1]})
    error = failure(capsys, monkeypatch, "counts", "bad.csv", "-o", "x.csv")
    assert [c for c in error if not c.isprintable()] == ["\n"]


@pytest.mark.parametrize("command", ["debias", "counts", "fit", "label", "inspect"])
def test_every_command_has_help(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Usage: clickmix {command} " in result.stdout


def test_help_says_each_command_and_target_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in run("--help").stdout.split("Commands:")[1]
    assert [line for line in run("export", "--help").stdout.splitlines() if len(line) > 80] == []


def test_version() -> None:
    assert run("--version").stdout == f"clickmix {cm.__version__}\n"


def test_it_starts_where_the_system_has_no_limits() -> None:
    """As on Windows, which has no module `resource`."""
    program = "import sys; sys.modules['resource'] = None; import clickmix.cli; clickmix.cli.main()"
    done = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"clickmix {cm.__version__}\n"


def test_a_mistake_is_told_before_anything_heavy_is_loaded() -> None:
    program = (
        "import sys, clickmix.cli, clickmix.errors\n"
        "try: clickmix.cli.app(['debias', 'nowhere.parquet', '-o', 'labels.parquet'])\n"
        "except clickmix.errors.InputError as error: print(error, *sorted(sys.modules), sep='\\n')"
    )
    told, *loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "nowhere.parquet" in told
    assert {"scipy", "rich", "narwhals"} & set(loaded) == set()


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys, clickmix.cli\ntry: clickmix.cli.app(['--help'])\nexcept SystemExit: print(sorted(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'(\w+)'", shown.stdout))
    assert "Usage: " in shown.stdout
    assert "typer" in loaded
    assert loaded & {"numpy", "duckdb", "scipy", "narwhals", "pandas", "polars", "pyarrow"} == set()


def test_debias_loads_little_of_numpy_and_scipy(tmp_path: Path) -> None:
    """What nothing needs takes a tenth of the time on a small log."""
    run("simulate", "-o", str(tmp_path / "sim"), "--clicks", "3000", "--queries", "60")
    program = (
        "import sys, clickmix.cli\n"
        f"try: clickmix.cli.app(['debias', {str(tmp_path / 'sim' / 'log.parquet')!r}, '-o', 'labels.parquet'])\n"
        "except SystemExit: print('loaded:', *sys.modules, sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    evidence, loaded = done.stdout.split("loaded:")
    assert "Clicks in a quarter of" in evidence
    unneeded = {"scipy.optimize", "scipy.stats", "scipy.linalg", "numpy.f2py.crackfortran", "unittest"}
    assert set(loaded.split()) & unneeded == set()


def test_without_a_terminal_there_is_no_progress_and_a_poor_one_gets_codes(folder: Path) -> None:
    words = [*COMMAND, "debias", "monday.csv", "-o", "labels.csv"]
    environment = ENVIRONMENT | {"PYTHONIOENCODING": "ascii"}
    result = subprocess.run(words, env=environment, capture_output=True, check=True)
    assert result.stderr == b""
    assert b"Read 400 impressions" in result.stdout
    assert result.stdout.isascii()


def test_on_a_terminal_progress_is_drawn(folder: Path) -> None:
    ours, theirs = pty.openpty()
    words = [*COMMAND, "debias", "monday.csv", "-o", "labels.csv"]
    environment = ENVIRONMENT | {"TERM": "xterm"}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    drawn = b""
    try:
        while chunk := os.read(ours, 4096):
            drawn += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0
    assert all(word in drawn for word in (b"reading", b"fitting", b"labelling"))


# The command, whose engine takes hours for what it is asked to keep, or to write.
SLOW = """
import os, signal, sys, clickmix.cli
# Whoever runs the tests may ignore some: nohup, a shell's background.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
from clickmix.engines.duckdb import DuckDB
method = sys.argv.pop(1)
usual = getattr(DuckDB, method)
def slow(self, query, *arguments, **named):
    os.write(1, b"begun\\n")  # print would go to the bar
    query = "SELECT count(*) AS query_id FROM range(1000000000000) AS t(i) WHERE sqrt(i) < 0"
    return usual(self, query, *arguments, **named)
setattr(DuckDB, method, slow)
clickmix.cli.main()
"""


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("method", ["keep", "write"])
def test_a_command_that_is_stopped_leaves_quietly_and_nothing_behind(
    folder: Path, terminal: bool, number: int, code: int, method: str
) -> None:
    (folder / "temporary").mkdir()
    before = sorted(folder.rglob("*"))
    ours, theirs = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, method, "counts", "monday.csv", "-o", "counts.parquet"],
        env=ENVIRONMENT | {"TMPDIR": str(folder / "temporary"), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    assert process.stdout is not None
    try:
        while process.stdout.readline() != b"begun\n":
            assert process.poll() is None
        time.sleep(0.2)
        process.send_signal(number)
        assert process.wait(timeout=30) == code
    finally:
        process.kill()
        process.stdout.close()
    shown = b""
    with contextlib.suppress(OSError):  # the other end of a terminal is closed
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    assert shown.decode().splitlines()[-1].endswith("clickmix: stopped. Nothing was written.")
    assert "Traceback" not in shown.decode()
    assert sorted(folder.rglob("*")) == before
