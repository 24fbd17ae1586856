"""Counts are exact integers: they merge, and nothing but the log's contents changes a byte of them or their labels."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clickmix as cm
import clickmix.engines.duckdb
from clickmix.counts.count import count_opened
from clickmix.engines.duckdb import DuckDB
from clickmix.log.open import open_log
from logs import cells, count_slowly, counted, part, small_log, write, write_lying, write_lying_about_missing

LOG = small_log(rows=900)
DAYS = [part(LOG, 0, 300), part(LOG, 300, 500), part(LOG, 500)]


def outputs(log: Any, folder: Path, **settings: Any) -> tuple[bytes, bytes]:
    """The bytes of the counts file (of CSV, which has no record of what was counted) and of the labels file."""
    folder.mkdir(exist_ok=True)
    counts = cm.count(log, **settings)
    counts.write(folder / "all.csv")
    cm.debias(counts).write(folder / "labels.parquet")
    return (folder / "all.csv").read_bytes(), (folder / "labels.parquet").read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Of all days read together from one file."""
    folder = tmp_path_factory.mktemp("expected")
    return outputs(write(folder / "log.parquet", LOG), folder)


@pytest.mark.parametrize("name", ["counts.parquet", "counts.csv", "counts.csv.gz", "counts.ndjson", "counts.ndjson.gz"])
def test_counts_of_days_merged_are_those_of_the_days_together(
    tmp_path: Path, expected: tuple[bytes, bytes], name: str
) -> None:
    days = []
    for i, day in enumerate(DAYS):
        (tmp_path / str(i)).mkdir()
        cm.count(write(tmp_path / f"{i}.csv", day)).write(tmp_path / str(i) / name)
        days.append(tmp_path / str(i) / name)
    assert outputs(days, tmp_path / "out") == expected
    assert outputs(days[::-1], tmp_path / "out") == expected


def test_counts_and_raw_files_merge(tmp_path: Path, expected: tuple[bytes, bytes]) -> None:
    cm.count(write(tmp_path / "0.parquet", DAYS[0])).write(tmp_path / "counts.parquet")
    days = [tmp_path / "counts.parquet", write(tmp_path / "1.ndjson", DAYS[1]), write(tmp_path / "2.csv", DAYS[2])]
    assert outputs(days, tmp_path / "out") == expected


def test_merging_is_associative(tmp_path: Path, expected: tuple[bytes, bytes]) -> None:
    files = [write(tmp_path / f"{i}.parquet", day) for i, day in enumerate(DAYS)]
    cm.count(files[:2]).write(tmp_path / "left.parquet")
    cm.count(files[1:]).write(tmp_path / "right.parquet")
    assert outputs([tmp_path / "left.parquet", files[2]], tmp_path / "out") == expected
    assert outputs([files[0], tmp_path / "right.parquet"], tmp_path / "out") == expected


@pytest.mark.parametrize("seed", [1, 2])
def test_row_order_changes_no_byte(tmp_path: Path, expected: tuple[bytes, bytes], seed: int) -> None:
    rows = list(zip(*LOG.values(), strict=True))
    random.Random(seed).shuffle(rows)
    shuffled = dict(zip(LOG, map(list, zip(*rows, strict=True)), strict=True))
    assert outputs(write(tmp_path / "log.parquet", shuffled), tmp_path) == expected


@pytest.mark.parametrize("size", [1, 7, 250])
def test_how_the_log_is_cut_into_files_changes_no_byte(
    tmp_path: Path, expected: tuple[bytes, bytes], size: int
) -> None:
    rows = range(0, 900, size)
    chunks = [part(LOG, start, start + size) for start in rows][: 60 if size == 1 else None]
    done = size * len(chunks)
    for i, chunk in enumerate([*chunks, part(LOG, done)]):
        if chunk["doc_id"]:
            write(tmp_path / "log" / f"{i}.parquet", chunk)
    assert outputs(tmp_path / "log", tmp_path) == expected


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_and_memory_change_no_byte(
    tmp_path: Path, expected: tuple[bytes, bytes], monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(clickmix.engines.duckdb, "DuckDB", functools.partial(DuckDB, threads=threads))
    assert outputs(write(tmp_path / "log.parquet", LOG), tmp_path, memory="200MB") == expected


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.csv.gz", "out.ndjson"])
def test_threads_change_no_byte_of_files_with_several_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    written = []
    for threads in (1, 4):
        monkeypatch.setattr(clickmix.engines.duckdb, "DuckDB", functools.partial(DuckDB, threads=threads))
        counts = cm.Counts.from_arrays(range(300_000), range(300_000), [1] * 300_000, [2] * 300_000, [1] * 300_000)
        counts.write(tmp_path / name)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("impressions", [2**31 - 1, 2**31, 2**53 + 1, 2**62 + 1, 2**63 - 2])
@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.ndjson"])
def test_large_counts_are_exact(tmp_path: Path, impressions: int, name: str) -> None:
    table = {"query_id": ["q"] * 2, "doc_id": ["d"] * 2, "position": [1] * 2}
    file = write(tmp_path / name, table | {"impressions": [impressions, 1], "clicks": [impressions - 1, 1]})
    counts = cm.count(file)
    assert cells(counts) == [("q", "d", 1, impressions + 1, impressions)]
    assert counts.totals() == (impressions + 1, impressions)
    labels = cm.debias(counts)
    assert (labels.impressions.tolist(), labels.clicks.tolist()) == ([impressions + 1], [impressions])
    counts.write(tmp_path / "counts.csv")
    assert cells(cm.count(tmp_path / "counts.csv")) == cells(counts)


@pytest.mark.parametrize("documents", [["d", "d"], ["d", "e"]])
@pytest.mark.parametrize("bad_rows", ["fail", "skip"])
def test_more_impressions_than_can_be_counted_are_refused(tmp_path: Path, documents: list[str], bad_rows: Any) -> None:
    table = {"query_id": ["q"] * 2, "doc_id": documents, "position": [1] * 2}
    file = write(tmp_path / "log.csv", table | {"impressions": [2**62, 2**62], "clicks": [1, 1]})
    with pytest.raises(cm.InputError) as caught:
        cm.count(file, bad_rows=bad_rows)
    assert str(caught.value) == (
        f"{file}: the impressions add up to 9223372036854775808, more than 9223372036854775807. "
        "Check the impressions column, or use a part of the log."
    )


def test_rows_without_impressions_are_no_cells(tmp_path: Path) -> None:
    table = {"query_id": ["q"] * 2, "doc_id": ["d", "e"], "position": [1] * 2}
    file = write(tmp_path / "log.csv", table | {"impressions": [0, 3], "clicks": [0, 1]})
    counts = cm.count(file)
    assert (cells(counts), counts.refused) == ([("q", "e", 1, 3, 1)], ())


def test_counts_from_columns_at_hand() -> None:
    counts = cm.Counts.from_arrays(["q", "q"], [1, 2], [1, 2], [5, 6], [0, 6], device=["m", "m"])
    assert cells(counts) == [("q", 1, 1, "m", 5, 0), ("q", 2, 2, "m", 6, 6)]
    assert counts.cells()["clicks"].tolist() == [0, 6]
    with pytest.raises(cm.InputError, match="row 2, column 'clicks': '7': clicks are more than impressions"):
        cm.Counts.from_arrays(["q", "q"], [1, 2], [1, 2], [5, 6], [0, 7])


def test_columns_at_hand_of_different_lengths_are_refused() -> None:
    with pytest.raises(cm.InputError) as caught:
        cm.Counts.from_arrays(["q", "q"], [1, 2], [1], [5, 6], [0, 6], device=["m", "m"])
    assert str(caught.value) == (
        "Counts.from_arrays: query_id has 2, doc_id has 2, position has 1, impressions has 2, clicks has 2, device has "
        "2. Expected one value of each for every cell."
    )


@pytest.mark.parametrize("name", ["Position", "query_ID", "relevance", "list"])
def test_a_context_of_columns_at_hand_that_means_something_else_is_refused(name: str) -> None:
    with pytest.raises(cm.SettingError) as caught:
        cm.Counts.from_arrays(["q"], [1], [1], [5], [0], **{name: [7]})
    assert str(caught.value) == (f"context {name!r}: given twice, or means something else in a log. Use another name.")


@pytest.mark.parametrize("statistics", [True, False], ids=["with statistics", "without"])
@pytest.mark.parametrize(("kind", "bad"), [(int, None), (int, 2), (int, -1), (bool, None)])
def test_one_bad_row_is_found_whatever_the_statistics_of_a_file_tell(
    tmp_path: Path, kind: type, bad: int | None, statistics: bool
) -> None:
    clicked: list[Any] = [kind(c) for c in LOG["clicked"]]
    file = tmp_path / "log.parquet"
    options = {"row_group_size": 100, "write_statistics": statistics}
    pq.write_table(pa.table(LOG | {"clicked": clicked}), file, **options)
    assert cells(cm.count(file)) == count_slowly(LOG)
    clicked[450] = bad
    pq.write_table(pa.table(LOG | {"clicked": clicked}), file, **options)
    with pytest.raises(cm.InputError, match="row 451, column 'clicked'"):
        cm.count(file)
    counts = cm.count(file, bad_rows="skip")
    assert cells(counts) == count_slowly({key: values[:450] + values[451:] for key, values in LOG.items()})
    assert [(refused.rows, refused.examples[0].row) for refused in counts.refused] == [(1, 451)]


@pytest.mark.parametrize(("bad", "scans"), [(None, 1), ("clicked", 2), ("position", 1)])
def test_a_log_is_scanned_again_only_if_rows_were_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str | None, scans: int
) -> None:
    """A row without position becomes a cell of its own; one that is neither clicked nor not is left out."""
    log = dict(LOG)
    if bad:
        log[bad] = [*log[bad][:7], None, *log[bad][8:]]
    file = write(tmp_path / "log.parquet", log)
    keep, made = DuckDB.keep, []

    def recorded(self: DuckDB, query: str, **options: Any) -> str:
        made.append(query)
        return keep(self, query, **options)

    monkeypatch.setattr(DuckDB, "keep", recorded)
    counts = cm.count(file, bad_rows="skip")
    assert sum("log.parquet" in query for query in made) == scans
    assert sum(refused.rows for refused in counts.refused) == (bad is not None)


def log_of_contexts(number: int) -> dict[str, list[Any]]:
    """A log in which every session is one row, and every other one is on a phone."""
    return {
        "query_id": ["q"] * number,
        "doc_id": list(range(number)),
        "position": [1] * number,
        "clicked": [0] * number,
        "session_id": [f"s{i}" for i in range(number)],
        "device": ["phone" if i % 2 else "desk" for i in range(number)],
    }


def test_too_many_contexts_are_refused_by_name(tmp_path: Path) -> None:
    file = write(tmp_path / "log.parquet", log_of_contexts(1_200))
    with pytest.raises(cm.InputError) as caught:
        cm.debias(file, context=["session_id"])
    assert str(caught.value) == (
        "context: session_id has 1,200 values, more than 1,000. A context is something like device: each of its values "
        "is fitted separately. Leave it out, or allow this many with --max-contexts 1200 (in Python max_contexts=1200)."
    )
    with pytest.raises(cm.InputError) as caught:
        cm.count(file, context=["device", "session_id"], max_contexts=1_100)
    assert str(caught.value) == (
        "context: device,session_id has 1,200 combinations, more than 1,100; device has 2 values, session_id has 1,200 "
        "values. A context is something like device: each of its values is fitted separately. Leave it out, or allow "
        "this many with --max-contexts 1200 (in Python max_contexts=1200)."
    )
    assert cm.count(file, context=["session_id"], max_contexts=1_200).contexts == 1_200
    assert cm.count(file, context=["device"]).contexts == 2
    assert cm.count(file).contexts == 1


def test_contexts_of_bad_rows_do_not_count(tmp_path: Path) -> None:
    table = log_of_contexts(4) | {"position": [1, 1, 0, 0]}
    file = write(tmp_path / "log.parquet", table)
    assert cm.count(file, context=["session_id"], bad_rows="skip", max_contexts=2).contexts == 2


def test_a_bound_of_contexts_below_1_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "log.parquet", LOG)
    with pytest.raises(cm.SettingError) as caught:
        cm.count(file, context=["device"], max_contexts=0)
    assert str(caught.value) == "max_contexts=0: expected a whole number from 1."


RAW_ROWS = {**{key: LOG[key] for key in ("query_id", "doc_id", "position")}, "clicked": LOG["clicked"]}
COUNTED_ROWS = counted(LOG)
COUNTED_ROWS["impressions"] = [impressions + 100 for impressions in COUNTED_ROWS["impressions"]]
LIES = [
    ("clicked", 2, RAW_ROWS, "'2': clicked is neither 0 nor 1"),
    ("clicked", -1, RAW_ROWS, "'-1': clicked is neither 0 nor 1"),
    ("position", 0, RAW_ROWS, "'0': position is not a positive whole number"),
    ("position", -7, COUNTED_ROWS, "'-7': position is not a positive whole number"),
    ("impressions", -5, COUNTED_ROWS, "'-5': impressions is not a whole number of 0 or more"),
    ("clicks", 2**40, COUNTED_ROWS, "'1099511627776': clicks are more than impressions"),
]


@pytest.mark.parametrize(
    ("column", "value", "table", "found"), LIES, ids=[f"{column} {value}" for column, value, _, _ in LIES]
)
def test_a_bad_value_that_the_statistics_do_not_know_is_found(
    tmp_path: Path, column: str, value: int, table: dict[str, list[Any]], found: str
) -> None:
    file = write_lying(tmp_path / "log.parquet", table, column, 20, value)
    with pytest.raises(cm.InputError) as caught:
        cm.debias(file)
    assert f"log.parquet, row 21, column {column!r}: {found}." in str(caught.value)
    counts = cm.count(file, bad_rows="skip")
    honest = write(tmp_path / "honest.parquet", {key: [*v[:20], *v[21:]] for key, v in table.items()})
    assert cells(counts) == cells(cm.count(honest))
    assert [(refused.rows, refused.examples[0].row) for refused in counts.refused] == [(1, 21)]


def test_statistics_are_still_not_believed_after_an_engine_wrote_a_file(tmp_path: Path) -> None:
    """While it copies its own tables, the engine believes statistics."""
    counts = cm.count(write(tmp_path / "honest.parquet", RAW_ROWS))
    counts.write(tmp_path / "counts.parquet")
    column, value, table, found = LIES[0]
    file = write_lying(tmp_path / "log.parquet", table, column, 20, value)
    with pytest.raises(cm.InputError, match=found):
        count_opened(open_log(file, engine=counts.engine), counts.engine)


@pytest.mark.parametrize("type", [pa.int8(), pa.int16(), pa.int32(), pa.bool_()], ids=str)
def test_clicks_that_are_missing_unknown_to_the_statistics_are_found(tmp_path: Path, type: pa.DataType) -> None:
    table = part(RAW_ROWS, 0, 50)
    clicked = pa.array(table["clicked"]).cast(type)
    file = write_lying_about_missing(tmp_path / "log.parquet", table | {"clicked": clicked}, "clicked")
    with pytest.raises(
        cm.InputError, match=r"row 1, column 'clicked': nothing: clicked is neither 0 nor 1\. In all, 50"
    ):
        cm.count(file)


@pytest.mark.parametrize("position", [300, 40_000, 2**40])
def test_a_good_value_that_the_statistics_do_not_know_is_read_as_it_is(tmp_path: Path, position: int) -> None:
    file = write_lying(tmp_path / "log.parquet", RAW_ROWS, "position", 20, position)
    expected = {**RAW_ROWS, "position": [*LOG["position"][:20], position, *LOG["position"][21:]]}
    assert cells(cm.count(file)) == count_slowly(expected)


def test_a_query_that_the_statistics_do_not_know_is_no_other_query(tmp_path: Path) -> None:
    """DuckDB would keep only the bits of a key that the statistics need, and give the row to query 5."""
    log = {"query_id": [*range(100)] * 50, "doc_id": [*range(5000)], "position": [1] * 5000, "clicked": [0] * 5000}
    file = write_lying(tmp_path / "log.parquet", log, "query_id", 20, 5 + 2**32)
    expected = log | {"query_id": [*log["query_id"][:20], 5 + 2**32, *log["query_id"][21:]]}
    assert cells(cm.count(file)) == count_slowly(expected)


rows = st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(1, 3), st.integers(0, 1))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=st.lists(rows, min_size=2, max_size=25), cut=st.integers(1, 24))
def test_any_log_in_two_parts(tmp_path: Path, log: list[tuple[Any, ...]], cut: int) -> None:
    names = ("query_id", "doc_id", "position", "clicked")
    table = dict(zip(names, map(list, zip(*log, strict=True)), strict=True))
    first, second = part(table, 0, min(cut, len(log) - 1)), part(table, min(cut, len(log) - 1))
    cm.count(write(tmp_path / "first.parquet", first)).write(tmp_path / "counts.parquet")
    merged = cm.count([tmp_path / "counts.parquet", write(tmp_path / "second.csv", second)])
    assert cells(merged) == count_slowly(table)
