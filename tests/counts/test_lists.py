"""Result lists counted apart: exact, mergeable byte for byte, refused where nobody can know them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clickmix as cm
from logs import part, write
from oracles_cascade import list_counts_slowly
from session_logs import session_log

NAMES = ["lists.parquet", "lists.csv", "lists.csv.gz", "lists.ndjson"]


LOG = session_log()
HALF = next(i for i in range(250, 300) if LOG["session_id"][i] != LOG["session_id"][i - 1])


def list_rows(counts: cm.Counts) -> list[tuple[Any, ...]]:
    """The cells by list, each list named by its contents, as the slow version has them."""
    rows = counts.engine.rows(counts.list_query())
    contents: dict[Any, set[tuple[int, Any]]] = {}
    for query, key, position, document, *_ in rows:
        contents.setdefault((query, key), set()).add((position, document))
    return sorted(
        (query, tuple(sorted(contents[query, key])), position, document, n, c)
        for query, key, position, document, n, c in rows
    )


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.ndjson"])
def test_lists_are_counted_as_by_hand(tmp_path: Path, name: str) -> None:
    assert list_rows(cm.count(write(tmp_path / name, LOG), lists=True)) == list_counts_slowly(LOG)


@pytest.mark.parametrize("name", NAMES)
def test_lists_of_two_days_merged_are_those_of_both_byte_for_byte(tmp_path: Path, name: str) -> None:
    cm.count(write(tmp_path / "both.parquet", LOG), lists=True).write(tmp_path / "expected.csv")
    for i, day in enumerate([part(LOG, 0, HALF), part(LOG, HALF)]):
        (tmp_path / str(i)).mkdir()
        cm.count(write(tmp_path / f"{i}.csv", day), lists=True).write(tmp_path / str(i) / name)
    merged = cm.count([tmp_path / "1" / name, tmp_path / "0" / name], lists=True)
    merged.write(tmp_path / "merged.csv")
    assert (tmp_path / "merged.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


def test_lists_and_raw_files_merge_whatever_the_order_of_rows(tmp_path: Path) -> None:
    cm.count(write(tmp_path / "monday.ndjson", part(LOG, 0, HALF)), lists=True).write(tmp_path / "monday.parquet")
    rows = list(zip(*part(LOG, HALF).values(), strict=True))
    random.Random(0).shuffle(rows)
    tuesday = write(tmp_path / "tuesday.csv", dict(zip(LOG, map(list, zip(*rows, strict=True)), strict=True)))
    merged = cm.count([tuesday, tmp_path / "monday.parquet"], lists=True)
    assert list_rows(merged) == list_counts_slowly(LOG)


def test_for_every_other_purpose_a_lists_file_is_a_log_like_any_other(tmp_path: Path) -> None:
    plain, listed = cm.count(write(tmp_path / "log.csv", LOG)), cm.count(tmp_path / "log.csv", lists=True)
    listed.write(tmp_path / "lists.csv")
    expected = plain.engine.rows(plain.query())
    assert listed.engine.rows(listed.query()) == expected
    again = cm.count(tmp_path / "lists.csv")
    assert again.engine.rows(again.query()) == expected
    assert cm.debias(listed).relevance.tolist() == cm.debias(plain).relevance.tolist()


rows = st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(1, 3), st.integers(0, 1), st.integers(0, 5))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=st.lists(rows, min_size=1, max_size=30))
def test_any_sessions_at_all(tmp_path: Path, log: list[tuple[Any, ...]]) -> None:
    """Also a document twice in one list, two at one position, a row that stands there twice."""
    names = ("query_id", "doc_id", "position", "clicked", "session_id")
    table = dict(zip(names, map(list, zip(*log, strict=True)), strict=True))
    assert list_rows(cm.count(write(tmp_path / "log.parquet", table), lists=True)) == list_counts_slowly(table)


def message(log: Any, **settings: Any) -> str:
    with pytest.raises(cm.ClickmixError) as caught:
        cm.count(log, lists=True, **settings)
    return str(caught.value)


def test_plain_counts_are_refused(tmp_path: Path) -> None:
    cm.count(write(tmp_path / "log.csv", LOG)).write(tmp_path / "counts.csv")
    assert message(tmp_path / "counts.csv") == (
        f"{tmp_path / 'counts.csv'}: these counts have no result lists, so it is unknown what was above a document. "
        "Count the raw log with clickmix counts --lists (in Python count(log, lists=True)); that needs its session_id."
    )


def test_a_log_without_sessions_is_refused(tmp_path: Path) -> None:
    table = {key: values for key, values in LOG.items() if key != "session_id"}
    file = write(tmp_path / "log.csv", table | {"session": LOG["session_id"]})
    assert message(file) == (
        f"{file}: missing 'session_id'. Found query_id, doc_id, position, clicked, session. `session` looks like "
        "session_id. If so, use --columns session_id=session (in Python columns={'session_id': 'session'})."
    )
    named = cm.count(file, lists=True, columns={"session_id": "session"})
    assert list_rows(named) == list_counts_slowly(LOG)


def test_lists_and_context_do_not_go_together(tmp_path: Path) -> None:
    file = write(tmp_path / "log.csv", LOG | {"device": ["m"] * len(LOG["doc_id"])})
    assert message(file, context=["device"]) == (
        "context 'device': result lists cannot have context columns. Leave one of them out."
    )


@pytest.mark.parametrize("missing", [None, ""])
@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.ndjson"])
def test_a_row_without_session_is_refused_or_left_out(tmp_path: Path, name: str, missing: Any) -> None:
    sessions: list[Any] = [missing if i == 3 else str(s) for i, s in enumerate(LOG["session_id"])]
    file = write(tmp_path / name, LOG | {"session_id": sessions})
    assert "row 4, column 'session_id': " in message(file)
    assert ": session_id is missing." in message(file)
    kept = cm.count(file, lists=True, bad_rows="skip")
    without = {key: values[:3] + values[4:] for key, values in LOG.items()}
    assert list_rows(kept) == list_counts_slowly(without)
    assert [(r.reason, r.rows) for r in kept.refused] == [("session_id is missing", 1)]


def test_a_bad_row_is_no_part_of_its_list(tmp_path: Path) -> None:
    positions = [0 if i == 3 else k for i, k in enumerate(LOG["position"])]
    kept = cm.count(write(tmp_path / "log.csv", LOG | {"position": positions}), lists=True, bad_rows="skip")
    without = {key: values[:3] + values[4:] for key, values in LOG.items()}
    assert list_rows(kept) == list_counts_slowly(without)


def test_counts_with_a_missing_list_are_refused(tmp_path: Path) -> None:
    table = {"query_id": ["q", "q"], "list": ["a", None], "doc_id": [1, 2], "position": [1, 2]}
    file = write(tmp_path / "lists.parquet", table | {"impressions": [3, 3], "clicks": [1, 0]})
    assert message(file) == (
        f"{file}, row 2, column 'list': nothing: list is missing. Fix the log, or skip bad rows with "
        "--bad-rows skip (in Python bad_rows='skip')."
    )
