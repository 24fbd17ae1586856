"""Any layout of a log gives the same counts, and ids come back as they were."""

from __future__ import annotations

import datetime
import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import clickmix as cm
from clickmix.log.files import find_files
from logs import FILE_NAMES, cells, count_slowly, counted, part, small_log, write

LOG = small_log()
CELLS = count_slowly(LOG)


@pytest.mark.parametrize("name", FILE_NAMES)
def test_every_format_gives_the_same_cells(tmp_path: Path, name: str) -> None:
    assert cells(cm.count(write(tmp_path / name, LOG))) == CELLS


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_delimiter_is_found_in_the_header(tmp_path: Path, delimiter: str) -> None:
    file = tmp_path / "log.csv"
    file.write_text(
        f"query_id{delimiter}doc_id{delimiter}position{delimiter}clicked\na{delimiter}b{delimiter}1{delimiter}1\n"
    )
    assert cells(cm.count(file)) == [("a", "b", 1, 1, 1)]


def parts_in_many_formats(folder: Path) -> None:
    """The log in as many files as there are formats."""
    for i, name in enumerate(FILE_NAMES):
        write(folder / f"{i}-{name}", part(LOG, 33 * i, 33 * i + 33 if i + 1 < len(FILE_NAMES) else None))


def test_files_of_all_formats_add_up(tmp_path: Path) -> None:
    parts_in_many_formats(tmp_path)
    assert cells(cm.count(sorted(tmp_path.iterdir()))) == CELLS


def test_a_folder_is_a_log_and_what_tools_leave_there_is_not(tmp_path: Path) -> None:
    parts_in_many_formats(tmp_path / "log" / "deep")
    for leftover in ("_SUCCESS", ".part.parquet.crc", ".hidden.csv", "_temporary/x.csv", "notes.txt", ".git/y.csv"):
        file = tmp_path / "log" / leftover
        file.parent.mkdir(exist_ok=True)
        file.write_text("nothing of use")
    counts = cm.count(tmp_path / "log")
    assert cells(counts) == CELLS
    named = ", ".join(str(tmp_path / "log" / name) for name in (".git", ".hidden.csv", "_temporary", "notes.txt"))
    assert [str(note) for note in counts.notes] == [f"4 files or folders skipped: {named}."]


def test_many_files_that_are_no_log_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", LOG)
    for number in range(7):
        (tmp_path / f"log.csv.{number}.zst").write_text("x")
    (note,) = cm.count(tmp_path).notes
    assert note.times == 7
    assert str(note).endswith("log.csv.4.zst, and others.")


def test_linked_folders_and_files_of_a_folder_are_read(tmp_path: Path) -> None:
    write(tmp_path / "log" / "1.csv", part(LOG, 0, 100))
    write(tmp_path / "elsewhere" / "deep" / "2.csv", part(LOG, 100, 200))
    write(tmp_path / "3.csv", part(LOG, 200))
    (tmp_path / "log" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "log" / "3.csv").symlink_to(tmp_path / "3.csv")
    assert cells(cm.count(tmp_path / "log")) == CELLS


def test_a_folder_that_cannot_be_opened_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "1.csv", part(LOG, 0, 100))
    write(tmp_path / "locked" / "2.csv", part(LOG, 100))
    scandir = os.scandir

    def refusing(path: Any = ".") -> Any:
        if Path(path).name == "locked":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(cm.InputError) as caught:
        cm.count(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'locked'}: cannot be read: Permission denied. It may hold part of the log; make it readable, "
        "or name the files of the log."
    )


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Root may read everything."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    yield
    os.seteuid(user)


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.ndjson", "log.parquet"])
def test_a_file_that_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path(name), LOG).chmod(0)
    tmp_path.chmod(0o755)
    request.getfixturevalue("ordinary_user")
    with pytest.raises(cm.InputError) as caught:
        cm.count(name)
    assert str(caught.value) == f"{name}: cannot be read: Permission denied. Make it readable, or leave it out."


@pytest.mark.parametrize("pattern", ["*/*.csv", "*/2.csv", "**/*.csv", "lo*/**", "./*/day/*"])
def test_a_folder_that_a_glob_cannot_open_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, pattern: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("logs/1.csv"), part(LOG, 0, 100))
    write(Path("logs/day/1.csv"), part(LOG, 0, 100))
    write(Path("locked/2.csv"), part(LOG, 100))
    for folder, mode in ((".", 0o755), ("logs", 0o755), ("logs/day", 0o755), ("locked", 0)):
        Path(folder).chmod(mode)
    request.getfixturevalue("ordinary_user")
    with pytest.raises(cm.InputError) as caught:
        find_files(pattern)
    assert str(caught.value) == (
        "locked: cannot be read: Permission denied. It may hold part of the log; make it readable, or name the files "
        "of the log."
    )
    assert find_files("logs/*.csv") == [Path("logs/1.csv")]


@pytest.mark.parametrize("name", ["2.csv", "day2"])
@pytest.mark.parametrize("given", ["", "*"], ids=["folder", "glob"])
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, name: str, given: str) -> None:
    write(tmp_path / "1.csv", LOG)
    (tmp_path / name).symlink_to(tmp_path / "gone")
    with pytest.raises(cm.InputError) as caught:
        cm.count(str(tmp_path / given))
    assert str(caught.value) == (
        f"{tmp_path / name}: a broken link. It may have been part of the log; remove it, or restore "
        f"{tmp_path / 'gone'}."
    )


@pytest.mark.parametrize("name", ["a", "z"])
@pytest.mark.parametrize("target", [".", "day"], ids=["the folder itself", "a folder beside"])
def test_a_link_to_a_folder_that_is_read_anyway_is_an_error(tmp_path: Path, name: str, target: str) -> None:
    write(tmp_path / "day" / "1.csv", LOG)
    (tmp_path / name).symlink_to(tmp_path / target)
    first, second = (tmp_path, tmp_path / name) if target == "." else sorted([tmp_path / "day", tmp_path / name])
    with pytest.raises(cm.InputError) as caught:
        cm.count(tmp_path)
    assert str(caught.value) == (
        f"{second}: the same folder as {first}. Its clicks would be counted twice; remove the link."
    )


def test_hidden_links_and_folders_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", LOG)
    (tmp_path / ".lock").symlink_to("nowhere")
    (tmp_path / "_old").symlink_to(tmp_path)
    assert cells(cm.count(tmp_path)) == CELLS


def test_a_glob_is_a_log(tmp_path: Path) -> None:
    write(tmp_path / "a" / "1.csv", part(LOG, 0, 100))
    write(tmp_path / "b" / "2.csv", part(LOG, 100))
    write(tmp_path / "b" / "3.tsv", LOG)
    assert cells(cm.count(str(tmp_path / "**" / "*.csv"))) == CELLS


@pytest.mark.parametrize(
    "name", ["a*.csv", "a?.csv", "a[12].csv", "it's.csv", "a b.parquet", "ü.ndjson", "a[*].parquet"]
)
def test_a_file_whose_name_looks_like_a_glob_is_that_file(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a1.csv", LOG)
    write(tmp_path / "ab.csv", LOG)
    assert cells(cm.count(write(tmp_path / name, LOG))) == CELLS


@pytest.mark.parametrize(
    "name", ["log.parquet", "log.parquet.gz", "log.csv", "log.csv.gz", "log.ndjson", "log.ndjson.gz"]
)
def test_folders_named_column_value_carry_columns(tmp_path: Path, name: str) -> None:
    for device in ("mobile", "desktop"):
        rows = [i for i, d in enumerate(LOG["device"]) if d == device]
        table = {key: [values[i] for i in rows] for key, values in LOG.items() if key != "device"}
        write(tmp_path / "log" / f"device={device}" / name, table)
    assert cells(cm.count(tmp_path / "log", context=["device"])) == count_slowly(LOG, ["device"])


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.ndjson"])
def test_values_in_folder_names_are_text_and_may_be_a_position(tmp_path: Path, name: str) -> None:
    table = {"query_id": ["q"], "doc_id": ["d"], "clicked": [1]}
    write(tmp_path / "position=2" / "day=007" / name, table)
    assert cells(cm.count(tmp_path, context=["day"])) == [("q", "d", 2, "007", 1, 1)]


def test_raw_and_counted_files_add_up(tmp_path: Path) -> None:
    raw = write(tmp_path / "raw.csv", part(LOG, 0, 150))
    pre = write(tmp_path / "pre.parquet", counted(part(LOG, 150)))
    assert cells(cm.count([raw, pre])) == CELLS


def test_other_column_names(tmp_path: Path) -> None:
    names = {"query_id": "search term", "doc_id": 'the "sku"', "position": "rank", "clicked": "n"}
    file = write(tmp_path / "log.csv", {names.get(key, key): values for key, values in LOG.items()})
    assert cells(cm.count(file, columns=names)) == CELLS


def test_columns_that_are_not_needed_may_have_any_name(tmp_path: Path) -> None:
    others = ["n", "c", "k0", "kind", "row", "file", "text", "total", "filename", "refused", "skips", "v0", "place"]
    file = write(tmp_path / "log.parquet", LOG | {name: list(range(400)) for name in others})
    assert cells(cm.count(file)) == CELLS
    bad = write(tmp_path / "bad.parquet", LOG | {name: list(range(400)) for name in others} | {"position": [0] * 400})
    with pytest.raises(cm.InputError, match="row 1, column 'position': '0': position is not a positive whole number"):
        cm.count(bad)


@pytest.mark.parametrize(
    "name", ["n", "c", "k0", "all_rows", "skips", "kind", "row", "prior", "on_click", "cells", "log_odds", "a b"]
)
@pytest.mark.parametrize("form", ["raw", "counted"])
def test_a_context_column_may_have_any_name(tmp_path: Path, name: str, form: str) -> None:
    table = {"query_id": ["q", "q"], "doc_id": ["d", "e"], "position": [1, 1], name: ["x", "y"]}
    clicks = {"clicked": [1, 0]} if form == "raw" else {"impressions": [1, 1], "clicks": [1, 0]}
    counts = cm.count(write(tmp_path / "log.csv", table | clicks), context=[name])
    assert cells(counts) == [("q", "d", 1, "x", 1, 1), ("q", "e", 1, "y", 1, 0)]
    assert len(cm.debias(counts)) == 2


CLICKED: list[tuple[str, Any, Any]] = [
    ("integer", 0, 1),
    ("boolean", False, True),
    ("text", "false", "true"),
    ("capitals", "False", "True"),
    ("digits as text", "0", "1"),
    ("real", 0.0, 1.0),
]


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.ndjson"])
@pytest.mark.parametrize(("no", "yes"), [pair[1:] for pair in CLICKED], ids=[pair[0] for pair in CLICKED])
def test_clicked_in_every_writing(tmp_path: Path, name: str, no: Any, yes: Any) -> None:
    table = LOG | {"clicked": [yes if clicked else no for clicked in LOG["clicked"]]}
    assert cells(cm.count(write(tmp_path / name, table))) == CELLS


def test_whole_numbers_may_be_written_as_reals(tmp_path: Path) -> None:
    table = {key: [float(v) for v in values] if key == "position" else values for key, values in LOG.items()}
    assert cells(cm.count(write(tmp_path / "log.csv", table))) == CELLS
    assert cells(cm.count(write(tmp_path / "log.parquet", table))) == CELLS


IDS: list[tuple[str, Any, list[Any], str]] = [
    ("int32", pa.int32(), [1, 2], "INTEGER"),
    ("int64", pa.int64(), [1, 2**62], "BIGINT"),
    ("uint32", pa.uint32(), [1, 2**32 - 1], "UINTEGER"),
    ("uint64", pa.uint64(), [1, 2**64 - 1], "UBIGINT"),
    ("negative", pa.int64(), [-5, 0], "BIGINT"),
    ("decimal of a warehouse", pa.decimal128(38, 0), [1, 2], "BIGINT"),
    ("negative decimal", pa.decimal128(18, 0), [-1, 2], "BIGINT"),
    ("text", pa.string(), ["a", "b"], "VARCHAR"),
    ("digits as text", pa.string(), ["5", "7"], "VARCHAR"),
    ("empty text", pa.string(), ["", " "], "VARCHAR"),
    ("binary", pa.binary(), ["a", "b"], "VARCHAR"),
    ("dictionary", pa.dictionary(pa.int32(), pa.string()), ["a", "b"], "VARCHAR"),
]


@pytest.mark.parametrize(("type", "ids", "sql"), [case[1:] for case in IDS], ids=[case[0] for case in IDS])
def test_ids_of_parquet_keep_their_type(tmp_path: Path, type: Any, ids: list[Any], sql: str) -> None:
    column = pa.array(ids, type=type)
    log = {"query_id": column, "doc_id": column, "position": [1, 1], "clicked": [0, 1]}
    counts = cm.count(write(tmp_path / "log.parquet", log))
    out = tmp_path / "labels.parquet"
    cm.debias(counts, correction="none").write(out)
    read = duckdb.read_parquet(str(out))
    assert [str(type) for type in read.types[:2]] == [sql, sql]
    assert [row[:2] for row in read.fetchall()] == [(id, id) for id in ids]


TEXT_IDS: list[tuple[str, str, list[Any]]] = [
    ("log.csv", "1,2", [1, 2]),
    ("log.csv", "-3,0", [-3, 0]),
    ("log.csv", "007,8", ["007", "8"]),
    ("log.csv", "+7,8", ["+7", "8"]),
    ("log.csv", "1.0,2", ["1.0", "2"]),
    ("log.csv", "-0,2", ["-0", "2"]),
    ("log.csv", "1234567890123456789,2", ["1234567890123456789", "2"]),
    ("log.csv", "1e3,2", ["1e3", "2"]),
    ("log.csv", "NULL,nan", ["NULL", "nan"]),
    ("log.csv", '"","a"', ["", "a"]),
    ("log.ndjson", "1,2", [1, 2]),
    ("log.ndjson", "-3,2", [-3, 2]),
    ("log.ndjson", '"1","2"', ["1", "2"]),
    ("log.ndjson", '1,"2"', ["1", "2"]),
    ("log.ndjson", '"2024-01-01","2024-01-02"', ["2024-01-01", "2024-01-02"]),
    ("log.ndjson", '"12:00:00","13:00:00"', ["12:00:00", "13:00:00"]),
    ("log.ndjson", '"123e4567-e89b-12d3-a456-426614174000","x"', ["123e4567-e89b-12d3-a456-426614174000", "x"]),
]


@pytest.mark.parametrize(("name", "written", "ids"), TEXT_IDS, ids=[f"{case[0]} {case[1]}" for case in TEXT_IDS])
def test_ids_of_text_files_stay_as_they_are_written(tmp_path: Path, name: str, written: str, ids: list[Any]) -> None:
    both = written.split(",")
    file = tmp_path / name
    if name == "log.csv":
        file.write_text("query_id,doc_id,position,clicked\n" + "".join(f"{id},x,1,0\n" for id in both))
    else:
        file.write_text("".join(f'{{"query_id":{id},"doc_id":"x","position":1,"clicked":0}}\n' for id in both))
    assert sorted(row[0] for row in cells(cm.count(file))) == sorted(ids)


def test_ids_of_integer_and_text_files_are_text_together(tmp_path: Path) -> None:
    table: dict[str, list[Any]] = {"query_id": [7], "doc_id": [1], "position": [1], "clicked": [1]}
    numbers = write(tmp_path / "a.parquet", table)
    texts = write(tmp_path / "b.parquet", table | {"query_id": ["7"]})
    assert cells(cm.count([numbers, texts])) == [("7", 1, 1, 2, 2)]
    assert cells(cm.count([numbers, write(tmp_path / "c.csv", table)])) == [(7, 1, 1, 2, 2)]


@pytest.mark.parametrize(
    ("large", "kept"), [(7, [3, 7]), (2**64 - 1, ["18446744073709551615", "3"]), (2**53 + 1, [3, 2**53 + 1])]
)
@pytest.mark.parametrize("signed", [pa.int64(), pa.int32(), pa.decimal128(38, 0)])
def test_ids_of_unsigned_and_signed_files_are_kept_to_the_last_digit(
    tmp_path: Path, large: int, kept: list[Any], signed: Any
) -> None:
    rest = {"doc_id": ["d"], "position": [1], "clicked": [1]}
    unsigned = write(tmp_path / "a.parquet", {"query_id": pa.array([large], pa.uint64()), **rest})
    counts = cm.count([unsigned, write(tmp_path / "b.parquet", {"query_id": pa.array([3], signed), **rest})])
    assert sorted(row[0] for row in cells(counts)) == kept
    assert cm.debias(counts, correction="none").query_id.tolist() == kept
    counts.write(tmp_path / "counts.parquet")
    assert sorted(row[0] for row in cells(cm.count(tmp_path / "counts.parquet"))) == kept


def test_ids_of_unsigned_files_stay_unsigned(tmp_path: Path) -> None:
    rest = {"doc_id": ["d"], "position": [1], "clicked": [1]}
    ids = [pa.array([2**64 - 1], pa.uint64()), pa.array([5], pa.uint32())]
    files = [write(tmp_path / f"{i}.parquet", {"query_id": id, **rest}) for i, id in enumerate(ids)]
    assert sorted(row[0] for row in cells(cm.count(files))) == [5, 2**64 - 1]


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.ndjson"])
def test_a_missing_context_is_a_value_of_its_own(tmp_path: Path, name: str) -> None:
    table = LOG | {"device": [None if i % 5 == 0 else d for i, d in enumerate(LOG["device"])]}
    assert cells(cm.count(write(tmp_path / name, table), context=["device"])) == count_slowly(table, ["device"])


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_time_as_context_has_the_same_name_in_every_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """Or else a model that was fitted on one machine would not know the contexts of another."""
    monkeypatch.setenv("TZ", zone)
    noon = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    file = write(tmp_path / "log.parquet", {key: LOG[key][:50] for key in LOG} | {"hour": [noon] * 50})
    fit = cm.MixtureCorrection().fit(cm.count(file, context=["hour"]))
    assert {seen.place.context for group in fit.groups for seen in group.places} == {("2026-01-02 12:00:00+00",)}


def test_an_empty_context_is_a_missing_one(tmp_path: Path) -> None:
    table = {"query_id": ["q"] * 3, "doc_id": ["d"] * 3, "position": [1] * 3, "clicked": [1] * 3}
    file = write(tmp_path / "log.parquet", table | {"device": ["", None, "m"]})
    assert cells(cm.count(file, context=["device"])) == [("q", "d", 1, "", 2, 2), ("q", "d", 1, "m", 1, 1)]


def test_an_index_column_without_a_name_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    pd.DataFrame(LOG).to_csv(file)
    assert cells(cm.count(file)) == CELLS


FRAMES: dict[str, Any] = {
    "pandas": lambda: pd.DataFrame(LOG),
    "pandas with an index": lambda: pd.DataFrame(LOG, index=np.arange(400) * 3),
    "polars": lambda: pl.DataFrame(LOG),
    "polars, lazy": lambda: pl.LazyFrame(LOG),
    "arrow": lambda: pa.table(LOG),
    "duckdb": lambda: duckdb.connect().from_arrow(pa.table(LOG)),
}
KINDS = {
    "pandas": pd.DataFrame,
    "pandas with an index": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "arrow": pa.Table,
    "duckdb": duckdb.DuckDBPyRelation,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_the_callers_kind_of_frame_comes_back_with_the_same_labels(tmp_path: Path, kind: str) -> None:
    expected = cm.debias(write(tmp_path / "log.parquet", LOG), correction="none")
    frame = cm.debias(FRAMES[kind](), correction="none")
    assert isinstance(frame, KINDS[kind])
    rows = as_rows(frame)
    assert rows == list(zip(*(expected.columns[key].tolist() for key in expected.columns), strict=True))
    assert len(rows) == len(expected) > 100


def as_rows(frame: Any) -> list[tuple[Any, ...]]:
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return list(frame.fetchall())
    if isinstance(frame, pd.DataFrame):
        return list(frame.itertuples(index=False, name=None))
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    return list(frame.rows()) if isinstance(frame, pl.DataFrame) else [tuple(row.values()) for row in frame.to_pylist()]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_bad_row_of_a_frame_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOG, "clicked", [*LOG["clicked"][:6], 2, *LOG["clicked"][7:]])
    with pytest.raises(cm.InputError) as caught:
        cm.debias(FRAMES[kind]())
    assert str(caught.value) == (
        "the frame, row 7, column 'clicked': '2': clicked is neither 0 nor 1. Fix the log, or skip bad rows with "
        "--bad-rows skip (in Python bad_rows='skip')."
    )


@pytest.mark.parametrize("given", [5, None, {"query_id": []}, [1, 2], ["log.csv", 2], b"not a path"])
def test_what_is_no_log_is_refused(given: Any) -> None:
    with pytest.raises(cm.InputError, match="is not a click log"):
        cm.count(given)


@pytest.mark.parametrize("given", [[], ()])
def test_an_empty_list_of_files_is_called_that(given: Any) -> None:
    with pytest.raises(cm.InputError, match=r"^the list of files is empty\. Name at least one file; check the folder"):
        cm.debias(given)


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
@pytest.mark.parametrize("use", [cm.debias, cm.count, cm.compare, partial(cm.explain, query="q")])
def test_columns_of_a_frame_with_the_same_name(use: Callable[..., object], kind: str) -> None:
    names = ["query_id", "doc_id", "position", "clicked", "clicked"]
    frame = pd.DataFrame([["q", "d", 1, 1, 0]], columns=names)
    arrow = pa.Table.from_arrays([pa.array(frame.iloc[:, i]) for i in range(5)], names=names)
    with pytest.raises(cm.InputError) as caught:
        use(frame if kind == "pandas" else arrow)
    assert str(caught.value) == "the frame: two columns are called 'clicked'. Rename one of them."


def test_labels_go_to_every_kind_of_frame(tmp_path: Path) -> None:
    labels = cm.debias(write(tmp_path / "log.parquet", LOG), correction="none")
    assert isinstance(labels.to_pandas(), pd.DataFrame)
    assert isinstance(labels.to_polars(), pl.DataFrame)
    assert isinstance(labels.to_arrow(), pa.Table)
    assert labels.to_arrow().column_names == ["query_id", "doc_id", "relevance", "impressions", "clicks"]


def test_tables_of_the_caller_are_neither_read_nor_changed() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE labels AS SELECT 42 AS query_id, 1 AS doc_id, 2 AS relevance, 3 AS impressions, 4 AS clicks"
    )
    connection.execute("CREATE TABLE log AS SELECT 'q' AS query_id, 'd' AS doc_id, 1 AS position, 1 AS clicked")
    labels = cm.debias(connection.table("log"), correction="none")
    assert labels.fetchall() == [("q", "d", 1.0, 1, 1)]
    assert connection.execute("SHOW TABLES").fetchall() == [("labels",), ("log",)]
    assert connection.table("labels").fetchall() == [(42, 1, 2, 3, 4)]


@pytest.mark.parametrize(("ids", "kept"), [([5, 7], [5, 7]), ([2**70, 7], [str(2**70), "7"])])
@pytest.mark.parametrize("type", ["HUGEINT", "UHUGEINT", "DECIMAL(38,0)"])
def test_integers_wider_than_numpys_are_kept_or_become_text(ids: list[int], kept: list[Any], type: str) -> None:
    values = ", ".join(f"({id}::{type}, 'd', 1, 1)" for id in ids)
    relation = duckdb.connect().sql(f"SELECT * FROM (VALUES {values}) AS t(query_id, doc_id, position, clicked)")
    assert sorted(row[0] for row in cells(cm.count(relation))) == sorted(kept)
