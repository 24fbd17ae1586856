"""UBI: events and queries become impressions; what is odd is decided, counted and told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clickmix as cm
from commands import run
from logs import cells, write


def event(action: str, id: str | None, doc: str, ordinal: Any = None, **more: Any) -> dict[str, Any]:
    position = {} if ordinal is None else {"position": {"ordinal": ordinal}}
    attributes = {"object": {"object_id": doc, "object_id_field": "sku"}, **position}
    row = {"action_name": action, "query_id": id, "timestamp": "2026-11-01T10:00:00Z", "event_attributes": attributes}
    return row | more


def query(id: str, text: str | None, hits: list[str] | None = None, **more: Any) -> dict[str, Any]:
    row = {
        "query_id": id,
        "user_query": text,
        "timestamp": "2026-11-01T10:00:00Z",
        "query_response_hit_ids": hits or [],
    }
    return row | more


def ndjson(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def notes(counts: cm.Counts) -> list[str]:
    return [str(note) for note in counts.notes]


# Two lists of "shoes" and one of "hats". Of the first, the result list is known, and it says that b is third.
EVENTS = [
    event("impression", "1", "a", 1),
    event("impression", "1", "b", 2),
    event("Click", "1", "b", 2),
    event("impression", "2", "a", 0),
    event("impression", "2", "c", 1),
    event("impression", "3", "h", 1),
    event("click", "3", "h", 1),
    event("search", "3", "h"),
]
QUERIES = [query("1", "shoes", ["a", "x", "b"]), query("2", "shoes"), query("3", "hats")]
CELLS = [("hats", "h", 1, 1, 1), ("shoes", "a", 1, 2, 0), ("shoes", "b", 3, 1, 1), ("shoes", "c", 2, 1, 0)]
ROWS = {
    "session_id": ["1", "1", "2", "2", "3"],
    "query_id": ["shoes", "shoes", "shoes", "shoes", "hats"],
    "doc_id": ["a", "b", "a", "c", "h"],
    "position": [1, 3, 1, 2, 1],
    "clicked": [0, 1, 0, 0, 1],
}


@pytest.fixture
def log(tmp_path: Path) -> list[Path]:
    return [ndjson(tmp_path / "ubi_events.ndjson", EVENTS), ndjson(tmp_path / "ubi_queries.ndjson", QUERIES)]


@pytest.mark.parametrize("format", ["auto", "ubi"])
def test_events_and_queries_become_impressions(log: list[Path], format: str) -> None:
    counts = cm.count(log, format=format)
    assert cells(counts) == CELLS
    assert notes(counts) == [
        "1 event with an action that is not used: search (1).",
        "5 impressions with 2 clicks in 3 lists found.",
        "1 list beginning at ordinal 0 and 2 at 1: each counts from there.",
        "1 list with some ordinals from 0 and others from 1, by the result list.",
        "1 ordinal other than the place in the result list: the place is used.",
    ]


def test_the_order_of_files_and_lines_changes_nothing(tmp_path: Path) -> None:
    everything = ndjson(tmp_path / "all.ndjson", [*reversed(EVENTS), *reversed(QUERIES)])
    assert cells(cm.count(everything)) == CELLS


def test_labels_and_lists_are_those_of_the_same_log_in_rows(tmp_path: Path, log: list[Path]) -> None:
    rows = write(tmp_path / "rows.csv", ROWS)
    for name, given in (("ubi", log), ("rows", rows)):
        cm.debias(given).write(tmp_path / f"{name}.labels.csv")
        cm.count(given, lists=True).write(tmp_path / f"{name}.lists.csv")
    assert (tmp_path / "ubi.labels.csv").read_bytes() == (tmp_path / "rows.labels.csv").read_bytes()
    assert (tmp_path / "ubi.lists.csv").read_bytes() == (tmp_path / "rows.lists.csv").read_bytes()


def test_bulk_files_with_action_lines(tmp_path: Path) -> None:
    lines = [line for row in (*EVENTS, *QUERIES) for line in ({"index": {"_index": "ubi"}}, row)]
    assert cells(cm.count(ndjson(tmp_path / "bulk.ndjson", lines))) == CELLS


def test_documents_wrapped_by_a_dump(tmp_path: Path) -> None:
    lines = [{"_index": "ubi", "_id": str(i), "_source": row} for i, row in enumerate([*EVENTS, *QUERIES])]
    assert cells(cm.count(ndjson(tmp_path / "dump.ndjson", lines), format="ubi")) == CELLS


def test_parquet(tmp_path: Path) -> None:
    files = []
    for name, rows in (("events", EVENTS), ("queries", QUERIES)):
        files.append(tmp_path / f"{name}.parquet")
        pq.write_table(pa.Table.from_pylist(rows), files[-1])
    assert cells(cm.count(files)) == CELLS


def test_ordinals_of_the_old_schema(tmp_path: Path) -> None:
    events = [event("impression", "1", "a", {"index": 3}), event("click", "1", "a", {"index": 3})]
    counts = cm.count(ndjson(tmp_path / "e.ndjson", [*events, query("1", "q")]), position_base="1", format="ubi")
    assert cells(counts) == [("q", "a", 3, 1, 1)]
    assert "2 ordinals written as ordinal.index." in notes(counts)


@pytest.mark.parametrize(("base", "position"), [("0", 4), ("1", 3)])
def test_the_base_of_ordinals_may_be_given(tmp_path: Path, base: str, position: int) -> None:
    log = ndjson(tmp_path / "e.ndjson", [event("impression", "1", "a", 3, user_query="q")])
    assert cells(cm.count(log, format="ubi", position_base=base)) == [("q", "a", position, 1, 0)]


ODD = [
    (
        "repeated clicks and impressions",
        [*[event("impression", "1", "a", 1)] * 3, *[event("click", "1", "a", 1)] * 4, query("1", "q")],
        [("q", "a", 1, 1, 1)],
        "1 document clicked again in a list (3 times): counted once.",
    ),
    (
        "impressions at two ordinals",
        [event("impression", "1", "a", 2), event("impression", "1", "a", 1), query("1", "q")],
        [("q", "a", 1, 1, 0)],
        "1 impression sent again with another ordinal: the smallest counts.",
    ),
    (
        "a click without an impression",
        [event("impression", "1", "a", 1), event("click", "1", "b", 2), query("1", "q")],
        [("q", "a", 1, 1, 0), ("q", "b", 2, 1, 1)],
        "1 click without an impression: counted as shown.",
    ),
    (
        "two documents on one position",
        [event("impression", "1", "a", 1), event("impression", "1", "b", 1), query("1", "q")],
        [("q", "a", 1, 1, 0), ("q", "b", 1, 1, 0)],
        "1 document sharing a position with another document of the list: kept.",
    ),
    (
        "searches for facets under the same id",
        [event("impression", "1", "b", 9), query("1", "q"), query("1", "q", ["a", "b"]), query("1", "q")],
        [("q", "b", 2, 1, 0)],
        "1 query id with several query rows (2 more): the result list that fits the events best is used.",
    ),
    (
        "two user queries, one of which showed the document",
        [event("impression", "1", "b", 1), query("1", "red case", ["a", "b"]), query("1", "red mcase", ["x", "y"])],
        [("red case", "b", 2, 1, 0)],
        "1 query id with several user queries (1 with several result lists): the one whose results were shown is used.",
    ),
    (
        "two user queries that showed as much, one of which was clicked",
        [
            *[event("impression", "1", doc, 1) for doc in ("a", "b", "x", "y")],
            event("click", "1", "x", 1),
            query("1", "earbudsrucksack", ["a", "b", "c"]),
            query("1", "rucksack", ["x", "y"]),
        ],
        [("rucksack", doc, at, 1, int(doc == "x")) for doc, at in (("a", 1), ("b", 1), ("x", 1), ("y", 2))],
        "1 query id with several user queries (1 with several result lists): the one whose results were shown is used.",
    ),
    (
        "two user queries whose lists fit alike",
        [
            *[event("impression", "1", "b", 1), query("1", "r", ["a", "b", "c"]), query("1", "s", ["b"])],
            *[event("impression", "2", "b", 1), query("2", "q")],
        ],
        [("q", "b", 1, 1, 0)],
        "1 query id with several user queries, and no result list shows which is right: skipped.",
    ),
    (
        "two user queries that nothing tells apart",
        [
            *[event("impression", "1", "b", 1, user_query="r"), query("1", "r", ["z"]), query("1", "s", ["y"])],
            *[event("impression", "2", "b", 1), query("2", "q")],
        ],
        [("q", "b", 1, 1, 0)],
        "1 query id with several user queries, and no result list shows which is right: skipped.",
    ),
    (
        "another text in the event",
        [event("impression", "1", "a", 1, user_query="shoo"), query("1", "shoes")],
        [("shoes", "a", 1, 1, 0)],
        "1 impression or click with another user_query than the query row: the query row's is used.",
    ),
    (
        "no query row",
        [event("impression", "1", "a", 1, user_query="shoes")],
        [("shoes", "a", 1, 1, 0)],
        "1 impression with a query_id without a query row: the event's user_query is used, if any.",
    ),
    (
        "clicks without a query row",
        [event("impression", "1", "a", 1, user_query="shoes"), *[event("click", "1", "a", 1)] * 2],
        [("shoes", "a", 1, 1, 1)],
        "1 impression and 2 clicks with a query_id without a query row: the event's user_query is used, if any.",
    ),
    (
        "hit ids that are Lucene's document numbers beside impressions",
        [event("impression", "1", "a", 1), query("1", "shoes", ["12", "7"])],
        [("shoes", "a", 1, 1, 0)],
        "1 result list of Lucene's document numbers (12, 7), which no event names: ignored. Set "
        "ext.ubi.object_id_field in the search request.",
    ),
    (
        "many actions",
        [event("impression", "1", "a", 1, user_query="q"), *(event(f"do_{i}", "1", "a") for i in range(14))],
        [("q", "a", 1, 1, 0)],
        f"14 events with an action that is not used: {', '.join(sorted(f'do_{i} (1)' for i in range(14)))}.",
    ),
    (
        "no text anywhere",
        [event("impression", "1", "a", 1), event("impression", "2", "a", 1), query("2", "q"), query("1", "")],
        [("q", "a", 1, 1, 0)],
        "1 impression without query text: skipped.",
    ),
    (
        "no position anywhere",
        [event("impression", "1", "a"), event("impression", "1", "b", 1), query("1", "q")],
        [("q", "b", 1, 1, 0)],
        "1 impression without a valid position: skipped.",
    ),
    (
        "no query id",
        [event("impression", None, "a", 1), event("impression", "1", "b", 1), query("1", "q")],
        [("q", "b", 1, 1, 0)],
        "1 impression or click without query_id or object_id: skipped.",
    ),
    (
        "times as numbers",
        [event("impression", "1", "a", 1, timestamp=1717527762025), query("1", "q")],
        [("q", "a", 1, 1, 0)],
        "1 event with the time in milliseconds.",
    ),
]


@pytest.mark.parametrize(("rows", "expected", "note"), [case[1:] for case in ODD], ids=[case[0] for case in ODD])
def test_odd_logs_are_decided_and_told(tmp_path: Path, rows: list[Any], expected: list[Any], note: str) -> None:
    counts = cm.count(ndjson(tmp_path / "log.ndjson", rows), format="ubi")
    assert cells(counts) == expected
    assert note in notes(counts)


def test_without_impression_events_result_lists_were_shown(tmp_path: Path) -> None:
    rows = [query("1", "q", ["a", "b", "c"]), event("click", "1", "b", 2), query("2", "r", ["a"])]
    log = ndjson(tmp_path / "log.ndjson", rows)
    assert cells(cm.count(log)) == [("q", "a", 1, 1, 0), ("q", "b", 2, 1, 1), ("q", "c", 3, 1, 0), ("r", "a", 1, 1, 0)]
    cut = cm.count(log, format="ubi", page_size=2)
    assert cells(cut) == [("q", "a", 1, 1, 0), ("q", "b", 2, 1, 1), ("r", "a", 1, 1, 0)]
    assert "2 result lists and no impression events: whole result lists count as shown." in notes(cut)


def test_lucenes_document_numbers_are_refused_by_name(tmp_path: Path) -> None:
    log = ndjson(tmp_path / "log.ndjson", [query("1", "q", ["12", "7"]), event("click", "1", "B07CVR21VN", 1)])
    with pytest.raises(cm.InputError) as caught:
        cm.count(log)
    assert str(caught.value) == (
        f"{log}: query_response_hit_ids are Lucene's document numbers (12, 7), which no click names. Set "
        "ext.ubi.object_id_field in the search request, and log again; or log impression events."
    )


def test_neither_impressions_nor_result_lists(tmp_path: Path) -> None:
    log = ndjson(tmp_path / "log.ndjson", [query("1", "q"), event("click", "1", "a", 1)])
    with pytest.raises(cm.InputError) as caught:
        cm.count(log)
    assert str(caught.value) == (
        f"{log}: neither impression events nor query_response_hit_ids, so it is unknown what was shown. Pass the files "
        "of ubi_events and ubi_queries together."
    )


def test_filters_by_application_time_and_action(tmp_path: Path) -> None:
    rows = [
        event("impression", "1", "a", 1, user_query="q", application="shop"),
        event("item_click", "1", "a", 1, application="shop"),
        event("impression", "1", "b", 2, application="typeahead"),
        event("impression", "2", "c", 3, user_query="q", application="shop", timestamp="2026-12-01T00:00:00Z"),
    ]
    log = ndjson(tmp_path / "log.ndjson", rows)
    options = ["--application", "shop", "--end", "2026-12-01", "--click-actions", "click,item_click"]
    done = run("counts", str(log), "-o", str(tmp_path / "c.csv"), "--format", "ubi", *options)
    assert done.output.startswith("Read 1 impression and 1 click.\n")


WITHOUT_RESULT = [
    (
        {"start": "2030-01-01"},
        "no list began in the time of --start 2030-01-01. Lists began from 2026-11-01 10:00:00 to 2026-11-01 10:00:00 "
        "(UTC).",
    ),
    ({"application": "foo"}, "nothing is of the application 'foo' (--application). Found shop (2), web (1)."),
    (
        {"application": "web"},
        "neither impression events nor query_response_hit_ids are left by --application web, so it is unknown what was "
        "shown. Pass the files of ubi_events and ubi_queries together.",
    ),
]


@pytest.mark.parametrize(("options", "message"), WITHOUT_RESULT)
def test_a_filter_that_leaves_nothing_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    rows = [
        event("impression", "1", "a", 1, application="shop"),
        event("click", "1", "a", 1, application="shop"),
        event("search", "1", "a", application="web"),
        query("1", "q"),
    ]
    log = ndjson(tmp_path / "log.ndjson", rows)
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, **options)
    assert str(caught.value) == f"{log}: {message}"


def test_an_application_without_events_does_not_get_the_result_lists_of_others(tmp_path: Path) -> None:
    """Query rows of old schemas name no application."""
    rows = [event("click", "1", "a", 1, application="shop"), query("1", "q", ["a", "b"])]
    log = ndjson(tmp_path / "log.ndjson", rows)
    assert cm.count(log, application="shop").totals() == (2, 1)
    with pytest.raises(cm.InputError, match="nothing is of the application 'foo'"):
        cm.count(log, application="foo")


@pytest.mark.parametrize(
    ("options", "named"),
    [({"page_size": 10}, "--page-size 10"), ({"format": "ubi"}, "--format ubi")],
)
def test_another_log_says_which_option_is_for_ubi(tmp_path: Path, options: dict[str, Any], named: str) -> None:
    log = write(tmp_path / "rows.csv", ROWS)
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, **options)
    assert str(caught.value) == (
        f"{log}: not a UBI log: no row has action_name or user_query. Leave out what is for UBI only ({named}), or "
        "pass the files of ubi_events and ubi_queries."
    )


TIMES = {
    "text": "2026-11-02T23:59:59.999Z",
    "offset": "2026-11-03T00:30:00+02:00",
    "blank": "2026-11-02 12:00:00",
    "milliseconds": 1793620800000,
    "seconds": 1793620800,
    "milliseconds as text": "1793620800000",
}


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
def test_times_are_read_in_every_writing(tmp_path: Path, time: Any) -> None:
    log = ndjson(tmp_path / "log.ndjson", [event("impression", "1", "a", 1, user_query="q", timestamp=time)])
    assert cells(cm.count(log, start="2026-11-02", end="2026-11-03")) == [("q", "a", 1, 1, 0)]
    with pytest.raises(cm.InputError):
        cm.count(log, end="2026-11-02")
    with pytest.raises(cm.InputError):
        cm.count(log, start="2026-11-03")
    assert cells(cm.count(log, start="2026-11-02T14:00:00+02:00")) == [("q", "a", 1, 1, 0)]


def test_a_list_belongs_to_the_time_it_began(tmp_path: Path) -> None:
    rows = [
        query("1", "q", ["a", "b"], timestamp="2026-11-01T23:59:58Z"),
        event("impression", "1", "a", 1, timestamp="2026-11-01T23:59:59Z"),
        event("impression", "1", "b", 2, timestamp="2026-11-02T00:00:01Z"),
        event("click", "1", "b", 2, timestamp="2026-11-02T00:00:09Z"),
        event("impression", "2", "a", 1, user_query="r", timestamp="2026-11-02T00:00:01Z"),
        event("impression", "3", "a", 1, user_query="s", timestamp="soon"),
    ]
    log = ndjson(tmp_path / "log.ndjson", rows)
    first, second = cm.count(log, end="2026-11-02"), cm.count(log, start="2026-11-02")
    assert cells(first) == [("q", "a", 1, 1, 0), ("q", "b", 2, 1, 1)]
    assert cells(second) == [("r", "a", 1, 1, 0)]
    assert "1 list without a readable time: left out." in notes(second)


def test_query_rows_of_no_application_serve_every_application(tmp_path: Path) -> None:
    rows = [event("impression", "1", "a", 1, application="shop"), query("1", "q")]
    assert cells(cm.count(ndjson(tmp_path / "log.ndjson", rows), application="shop")) == [("q", "a", 1, 1, 0)]


def test_options_of_ubi_need_its_format(tmp_path: Path) -> None:
    with pytest.raises(cm.SettingError) as caught:
        cm.count(tmp_path, position_base="0")
    assert str(caught.value) == (
        "position_base is for ga4, ubi, and the format is auto. Say which with --format ga4 or ubi."
    )


def test_context_is_a_field_of_events_or_queries(tmp_path: Path) -> None:
    rows = [event("impression", "1", "a", 1, application="shop"), query("1", "q")]
    assert cells(cm.count(ndjson(tmp_path / "e.ndjson", rows), context="application")) == [("q", "a", 1, "shop", 1, 0)]


@pytest.mark.parametrize("lists", [False, True])
def test_lines_that_are_cut_off_are_bad_rows(tmp_path: Path, lists: bool) -> None:
    log = ndjson(tmp_path / "log.ndjson", [*EVENTS, *QUERIES])
    with log.open("a") as file:
        file.write('{"action_name": "impre\n[1]\n')
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, lists=lists)
    assert str(caught.value) == (
        f"{log}, row 12: the line is not a JSON object. In all, 2 rows are bad. Fix the log, or skip bad rows with "
        "--bad-rows skip (in Python bad_rows='skip')."
    )
    counts = cm.count(log, lists=lists, bad_rows="skip")
    assert cells(counts) == CELLS
    assert [(refused.reason, refused.rows) for refused in counts.refused] == [("the line is not a JSON object", 2)]


def test_a_context_that_cannot_be_a_path_is_no_stack_trace(tmp_path: Path, log: list[Path]) -> None:
    with pytest.raises(cm.InputError, match="cannot be read"):
        cm.count(log, context='a"[')


def test_an_option_of_one_layout_names_it(tmp_path: Path) -> None:
    from clickmix.log.open import choose_layout

    assert choose_layout("auto", page_size=10) == choose_layout("ubi", page_size=10)
    assert choose_layout("auto", list_name="search") == choose_layout("ga4", list_name="search")
