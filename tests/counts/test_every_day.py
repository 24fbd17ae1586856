"""Counting day by day: merged counts, a window of days, files that were counted before, how labels moved."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import clickmix as cm
from clickmix import cli
from clickmix.counts.counts import fingerprint
from clickmix.engines.duckdb import DuckDB
from clickmix.judging.changes import Moved, labels_moved, open_labels
from clickmix.storage import locks
from commands import failure
from logs import cells, small_log, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the logs of three days."""
    monkeypatch.chdir(tmp_path)
    for day in (1, 2, 3):
        log = small_log(rows=6_000, seed=day)
        write(tmp_path / f"{day}.parquet", log | {"session_id": [f"{day}-{row // 2}" for row in range(6_000)]})
    return tmp_path


def run(*words: str) -> str:
    result = CliRunner().invoke(cli.app, words, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_merging_day_by_day_is_counting_all_days(folder: Path) -> None:
    run("counts", "1.parquet", "-o", "counts.parquet")
    run("counts", "--merge", "counts.parquet", "2.parquet")
    told = run("counts", "--merge", "counts.parquet", "3.parquet").splitlines()
    (_, new), (_, all) = cm.count("3.parquet").totals(), cm.count("counts.parquet").totals()
    assert told[:2] == [
        f"Read 6,000 impressions and {new:,} clicks.",
        f"Including earlier counts: 18,000 impressions and {all:,} clicks.",
    ]
    assert cells(cm.count("counts.parquet")) == cells(cm.count(["1.parquet", "2.parquet", "3.parquet"]))


def test_the_first_day_makes_the_file_that_others_are_merged_into(folder: Path) -> None:
    run("counts", "1.parquet", "-o", "made.parquet")
    told = run("counts", "--merge", "counts.parquet", "1.parquet").splitlines()
    assert told[0] == f"Read 6,000 impressions and {cm.count('1.parquet').totals()[1]:,} clicks."
    assert len(told) == 2
    assert Path("counts.parquet").read_bytes() == Path("made.parquet").read_bytes()


def test_a_window_is_the_counts_of_its_days(folder: Path) -> None:
    for day in (1, 2, 3):
        run("counts", f"{day}.parquet", "-o", f"counts-{day}.parquet")
    run("debias", "counts-2.parquet", "counts-3.parquet", "-o", "window.parquet")
    run("debias", "2.parquet", "3.parquet", "-o", "together.parquet")
    assert Path("window.parquet").read_bytes() == Path("together.parquet").read_bytes()


@pytest.mark.parametrize("first_day", [False, True])
def test_two_runs_that_add_to_one_file(folder: Path, monkeypatch: pytest.MonkeyPatch, first_day: bool) -> None:
    """The second comes while the first has read the file and not yet written it: it is refused, and no day is lost.

    On the first day there is no file yet.
    """
    days = [] if first_day else ["1.parquet"]
    for day in days:
        run("counts", day, "-o", "counts.parquet")
    before = sorted(Path().iterdir())
    told: list[BaseException | None] = []
    write_alone = cm.Counts.write

    def write_in_company(counts: cm.Counts, path: str) -> int:
        monkeypatch.setattr(cm.Counts, "write", write_alone)
        told.append(CliRunner().invoke(cli.app, ["counts", "--merge", "counts.parquet", "3.parquet"]).exception)
        return counts.write(path)

    monkeypatch.setattr(cm.Counts, "write", write_in_company)
    run("counts", "--merge", "counts.parquet", "2.parquet")
    assert list(map(str, told)) == [
        "counts.parquet: another clickmix is adding to it. Wait for it, and run this again."
    ]
    assert cells(cm.count("counts.parquet")) == cells(cm.count([*days, "2.parquet"]))
    run("counts", "--merge", "counts.parquet", "3.parquet")
    assert cells(cm.count("counts.parquet")) == cells(cm.count([*days, "2.parquet", "3.parquet"]))
    assert set(Path().iterdir()) == {*before, Path("counts.parquet")}


@pytest.mark.parametrize("other_is_done", [False, True])
def test_a_file_that_somebody_else_made_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch, other_is_done: bool
) -> None:
    """The other run ends between our look and our lock: its hidden file is gone, or its counts are there."""
    lock = locks.lock

    def lock_too_late(*words: Any, **settings: Any) -> None:
        Path(".new.parquet.lock").unlink()
        if other_is_done:
            shutil.copy("1.parquet", "new.parquet")
        lock(*words, **settings)

    monkeypatch.setattr(locks, "lock", lock_too_late)
    with pytest.raises(cm.InputError) as caught, locks.making("new.parquet"):
        pass
    assert str(caught.value) == "new.parquet: another clickmix is adding to it. Wait for it, and run this again."


def test_a_lock_that_a_killed_run_left_is_no_obstacle(folder: Path) -> None:
    Path(".counts.parquet.lock").write_bytes(b"")
    run("counts", "--merge", "counts.parquet", "1.parquet")
    assert not Path(".counts.parquet.lock").exists()


def test_a_file_that_was_replaced_before_it_was_locked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = locks.lock

    def lock_too_late(*words: Any, **settings: Any) -> None:
        shutil.copy("2.parquet", "new.parquet")
        Path("new.parquet").replace("1.parquet")
        lock(*words, **settings)

    monkeypatch.setattr(locks, "lock", lock_too_late)
    with pytest.raises(cm.InputError) as caught, locks.holding("1.parquet"):
        pass
    assert str(caught.value) == "1.parquet: another clickmix is adding to it. Wait for it, and run this again."


KEPT = [
    (["--context", "device"], [], "with --context device", "without --context and --lists"),
    (["--lists"], [], "with --lists", "without --context and --lists"),
    ([], ["--context", "device"], "without --context and --lists", "with --context device"),
    (["--context", "device"], ["--lists"], "with --context device", "with --lists"),
]


@pytest.mark.parametrize(("first", "then", "counted", "merged"), KEPT)
def test_what_is_kept_apart_stays_so(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    first: list[str],
    then: list[str],
    counted: str,
    merged: str,
) -> None:
    run("counts", "1.parquet", *first, "-o", "counts.parquet")
    before = Path("counts.parquet").read_bytes()
    assert failure(capsys, monkeypatch, "counts", "--merge", "counts.parquet", "2.parquet", *then) == (
        f"clickmix: --merge counts.parquet: was counted {counted}, but would now be merged {merged}. Run it {counted}, "
        "or write the counts to a new file with -o.\n"
    )
    assert Path("counts.parquet").read_bytes() == before
    run("counts", "--merge", "counts.parquet", "2.parquet", *first)
    run("counts", "1.parquet", "2.parquet", *first, "-o", "together.parquet")
    assert Path("counts.parquet").read_bytes() == Path("together.parquet").read_bytes()


def test_a_counts_file_in_a_folder_that_carries_a_column(folder: Path) -> None:
    Path("month=11").mkdir()
    run("counts", "1.parquet", "-o", "month=11/counts.parquet")
    run("counts", "--merge", "month=11/counts.parquet", "2.parquet")
    assert cells(cm.count("month=11/counts.parquet")) == cells(cm.count(["1.parquet", "2.parquet"]))


OTHER_NAMES = {"query_id": "term", "position": "query_id", "clicked": "position", "doc_id": "doc_id"}


def test_a_counts_file_has_names_of_its_own(folder: Path) -> None:
    """The log's columns have other names, some of them those of other columns in a counts file."""
    for day in (1, 2):
        log = small_log(rows=6_000, seed=day)
        write(Path(f"named-{day}.parquet"), {OTHER_NAMES.get(key, key): values for key, values in log.items()})
    columns = ",".join(f"{role}={column}" for role, column in OTHER_NAMES.items())
    run("counts", "named-1.parquet", "--columns", columns, "-o", "counts.parquet")
    run("counts", "--merge", "counts.parquet", "named-2.parquet", "--columns", columns)
    assert cells(cm.count("counts.parquet")) == cells(cm.count(["1.parquet", "2.parquet"]))


def test_a_context_column_named_as_another_column_of_the_log(folder: Path) -> None:
    cm.count("1.parquet", context=["device"]).write("counts.parquet")
    with pytest.raises(cm.InputError) as caught:
        cm.count("counts.parquet", columns={"query_id": "device"})
    assert str(caught.value) == (
        "counts.parquet: the columns query_id and 'device' would both be called 'device'. Count the raw log again, or "
        "leave one of the two out."
    )


def test_a_copy_is_no_further_log(folder: Path) -> None:
    shutil.copy("1.parquet", "copy.parquet")
    with pytest.raises(cm.InputError) as caught:
        cm.debias(["1.parquet", "copy.parquet"])
    assert str(caught.value) == (
        "copy.parquet: 'copy.parquet' was already counted, in 1.parquet. Its clicks would be counted twice; leave it "
        "out."
    )


@pytest.mark.parametrize("again", ["2.parquet", "copy/renamed.parquet", "counts-2.parquet"])
def test_a_file_is_not_counted_twice(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    run("counts", "1.parquet", "2.parquet", "-o", "counts.parquet")
    run("counts", "2.parquet", "-o", "counts-2.parquet")
    Path("copy").mkdir()
    shutil.copy("2.parquet", "copy/renamed.parquet")
    before = Path("counts.parquet").read_bytes()
    known = Path(again).name if again != "counts-2.parquet" else "2.parquet"
    assert failure(capsys, monkeypatch, "counts", "--merge", "counts.parquet", "3.parquet", again) == (
        f"clickmix: {again}: {known!r} was already counted, in counts.parquet. Its clicks would be counted twice; "
        "leave it out.\n"
    )
    assert Path("counts.parquet").read_bytes() == before


def test_overlapping_counts_are_no_log(folder: Path) -> None:
    cm.count(["1.parquet", "2.parquet"]).write("a.parquet")
    cm.count(["2.parquet", "3.parquet"]).write("b.parquet")
    with pytest.raises(cm.InputError, match=r"^b\.parquet: '2\.parquet' was already counted, in a\.parquet\."):
        cm.debias(["a.parquet", "b.parquet"])


def test_a_record_that_cannot_be_read(folder: Path) -> None:
    duckdb.sql(
        "COPY (SELECT 'q' AS query_id, 'd' AS doc_id, 1 AS position, 5 AS impressions, 2 AS clicks) "
        "TO 'counts.parquet' (FORMAT parquet, KV_METADATA {clickmix: 'x'})"
    )
    with pytest.raises(cm.FormatError) as caught:
        cm.count("counts.parquet")
    assert str(caught.value) == "counts.parquet: the record of counted files cannot be read. Count the log again."


def test_small_files_may_be_equal_by_chance(folder: Path) -> None:
    for name in ("a.csv", "b.csv"):
        Path(name).write_text("query_id,doc_id,position,clicked\nq,d,1,1\n")
    cm.count(["a.csv", "b.csv"]).write("counts.parquet")
    assert cells(cm.count("counts.parquet")) == [("q", "d", 1, 2, 2)]


@pytest.mark.parametrize("changed", [0, 20_000, 39_999])
def test_fingerprints_tell_files_apart(tmp_path: Path, changed: int) -> None:
    data = bytearray(40_000)
    (tmp_path / "a").write_bytes(data)
    data[changed] = 1
    (tmp_path / "b").write_bytes(data)
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b")


SETTINGS = [
    (["counts", "1.parquet"], "counts: name an output, either -o counts.parquet or --merge counts.parquet."),
    (
        ["counts", "1.parquet", "-o", "a.parquet", "--merge", "b.parquet"],
        "counts: name an output, either -o counts.parquet or --merge counts.parquet.",
    ),
    (
        ["counts", "1.parquet", "--merge", "b.csv"],
        "--merge b.csv: only a Parquet file can record which files were counted.",
    ),
    (
        ["counts", "1.parquet", "--merge", "[23].parquet"],
        "--merge [23].parquet: no such file. Name one counts file.",
    ),
    (
        ["counts", "1.parquet", "--merge", "2.parquet"],
        "--merge 2.parquet: is not a counts file, and would be lost. Found the columns query_id, doc_id, position, "
        "clicked, device, session_id, expected query_id, doc_id, position, impressions, clicks. Write the counts to a "
        "new file with -o.",
    ),
]


@pytest.mark.parametrize(("words", "message"), SETTINGS)
def test_merge_settings(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    assert failure(capsys, monkeypatch, *words) == f"clickmix: {message}\n"


def test_merging_in_an_engine_is_refused_before_it_is_started(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clickmix.engines.engine.choose_engine", None)  # not to be called
    assert failure(capsys, monkeypatch, "counts", "clicks", "--merge", "b.parquet", "--engine", "spark") == (
        "clickmix: --merge: works on counts files, with DuckDB only. In another engine, write one table per day.\n"
    )


def test_how_labels_moved(folder: Path) -> None:
    counts = cm.Counts.from_arrays(["q"] * 4, ["a", "b", "c", "d"], [1] * 4, [100] * 4, [90, 50, 10, 5])
    Path("before.csv").write_text(
        "query_id,doc_id,relevance,impressions,clicks\nq,a,0.4,1,1\nq,b,0.5,1,1\nq,c,0.09,1,1\nq,z,0.9,1,1\n"
    )
    moved = labels_moved(cm.debias(counts, correction="none"), open_labels("before.csv", counts.engine))
    assert (moved.both, moved.new, moved.gone, moved.far) == (3, 1, 1, 1)
    assert moved.mean_move == pytest.approx((0.5 + 0.0 + 0.01) / 3)
    assert moved.furthest == (("q", "a", 0.4, 0.9), ("q", "c", 0.09, 0.1))
    assert moved.sentences() == [
        "Compared with the previous labels: 3 documents in both, 1 new, 1 gone. Labels in both changed by 0.170 on "
        "average, 1 of them by more than 0.1.",
        "Largest change: query 'q', document 'a' from 0.400 to 0.900.",
        "Largest change: query 'q', document 'c' from 0.090 to 0.100.",
    ]


def test_labels_tell_how_they_moved_even_from_the_file_they_replace(folder: Path) -> None:
    run("debias", "1.parquet", "-o", "labels.parquet", "--correction", "none")
    same = run("debias", "1.parquet", "-o", "labels.parquet", "--correction", "none", "--since", "labels.parquet")
    other = run("debias", "2.parquet", "-o", "labels.parquet", "--correction", "none", "--since", "labels.parquet")
    assert "0 new, 0 gone. No label changed.\n" in same
    assert "Largest change" not in same
    assert "Largest change: query 'query " in other


BEFORE = [
    (
        "query_id,doc_id,relevance\nq,a,0.5\nq,b,abc\n",
        "query 'q', document 'b', relevance 'abc' is not a label (bad rows: 1). Expected a query, a document and a "
        "relevance from 0 to 1. Use labels as clickmix wrote them.",
    ),
    (
        "query_id,doc_id,relevance\nq,a,nan\nq,b,inf\n",
        "query 'q', document 'a', relevance 'nan' is not a label (bad rows: 2). Expected a query, a document and a "
        "relevance from 0 to 1. Use labels as clickmix wrote them.",
    ),
    (
        "query_id,doc_id,relevance\nq,a,0.5\nq,b,1.5\nq,c,-1\n",
        "query 'q', document 'b', relevance '1.5' is not a label (bad rows: 2). Expected a query, a document and a "
        "relevance from 0 to 1. Use labels as clickmix wrote them.",
    ),
    (
        "query_id,doc_id,relevance\nq,,0.5\n",
        "query 'q', document None, relevance '0.5' is not a label (bad rows: 1). Expected a query, a document and a "
        "relevance from 0 to 1. Use labels as clickmix wrote them.",
    ),
    (
        "query_id,doc_id,relevance\nq,a,0.5\nq,b,0.5\nq,a,0.6\n",
        "query 'q', document 'a' appears 2 times. Expected every document once. Use labels as clickmix wrote them.",
    ),
    (
        "query_id,doc_id,relevance\nq,a\n",
        "cannot be read: CSV Error on Line: 2. The file may be damaged or cut off; write it again.",
    ),
    (
        "query_id,doc_id,position,clicked\nq,a,1,1\n",
        "these are not labels. Expected one file or table with query_id, doc_id and relevance.",
    ),
]


@pytest.mark.parametrize(("text", "message"), BEFORE)
def test_labels_before_that_are_none(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    """Reported before the log is read."""
    monkeypatch.setattr("clickmix.cli.labels.count_log", lambda *_, **__: pytest.fail("counted first"))
    Path("before.csv").write_text(text)
    found = failure(capsys, monkeypatch, "debias", "1.parquet", "-o", "labels.csv", "--since", "before.csv")
    assert found == f"clickmix: before.csv: {message}\n"


@pytest.mark.parametrize("command", [["debias"], ["label", "--model", "model.json"]])
def test_labels_before_that_are_not_there(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    run("fit", "1.parquet", "-o", "model.json")
    monkeypatch.setattr("clickmix.cli.labels.count_log", lambda *_, **__: pytest.fail("counted first"))
    found = failure(capsys, monkeypatch, *command, "1.parquet", "-o", "labels.csv", "--since", "before.csv")
    assert found == (
        "clickmix: before.csv: no such file. Check the path; folders and globs such as 'logs/*.parquet' work too.\n"
    )


def test_labels_before_of_another_type(folder: Path) -> None:
    duckdb.sql("COPY (SELECT 'q' AS query_id, 'd' AS doc_id, true AS relevance) TO 'before.parquet'")
    with pytest.raises(cm.InputError) as caught:
        open_labels("before.parquet", DuckDB())
    assert str(caught.value) == "before.parquet, column 'relevance': found BOOLEAN values, expected numbers."


@pytest.mark.parametrize("name", ["before.csv.gz", "before.ndjson", "before.parquet"])
def test_labels_before_in_every_format(folder: Path, name: str) -> None:
    run("debias", "1.parquet", "-o", name, "--correction", "none")
    told = run("debias", "1.parquet", "-o", "labels.csv", "--correction", "none", "--since", name)
    assert "0 new, 0 gone. No label changed.\n" in told


def test_nothing_to_compare() -> None:
    assert Moved(0, 2, 3, 0.0, 0, ()).sentences() == [
        "Compared with the previous labels: no document is in both, 2 are new, 3 are gone. Check that both are labels "
        "of the same log."
    ]


def test_sums_in_another_order_change_no_label(folder: Path) -> None:
    counts = cm.Counts.from_arrays(["q"] * 2, ["a", "b"], [1, 2], [100] * 2, [90, 53])
    Path("before.csv").write_text("query_id,doc_id,relevance\nq,a,0.9000000000000001\nq,b,0.53\n")
    moved = labels_moved(cm.debias(counts, correction="none"), open_labels("before.csv", counts.engine))
    assert moved.furthest == ()
    assert moved.sentences() == [
        "Compared with the previous labels: 2 documents in both, 0 new, 0 gone. No label changed."
    ]


def test_changes_that_three_digits_do_not_show_are_not_listed() -> None:
    moved = Moved(1, 0, 0, 0.0002, 0, (("q", "a", 0.5291, 0.5293),))
    (sentence,) = moved.sentences()
    assert "Labels in both changed by less than 0.001 on average" in sentence
