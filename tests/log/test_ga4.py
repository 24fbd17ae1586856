"""GA4: events of the BigQuery export become impressions; clicks find their view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clickmix as cm
from commands import run
from logs import cells, write


def item(
    id: str | None, index: int | None = None, list: str | None = "search", name: str | None = None
) -> dict[str, Any]:
    index_text = None if index is None else str(index)
    return {"item_id": id, "item_list_id": list, "item_list_name": name, "item_list_index": index_text}


def param(key: str, value: str | float) -> dict[str, Any]:
    """A parameter as the export writes it: in the field of its own type."""
    own = {str: "string_value", int: "int_value", float: "double_value"}[type(value)]
    return {"key": key, "value": {"string_value": None, "int_value": None, "double_value": None} | {own: value}}


def event(
    name: str,
    ts: int,
    items: list[Any],
    *,
    term: str | float | None = None,
    user: str | None = "u",
    page: str = "https://shop/s",
    batch: int = 0,
) -> dict[str, Any]:
    params = [param("ga_session_id", 1), param("page_location", page)]
    return {
        "event_name": name,
        "event_timestamp": ts,
        "user_pseudo_id": user,
        "event_params": [*params, *([param("search_term", term)] if term else [])],
        "items": items,
        "device": {"category": "mobile"},
        "batch_event_index": batch,
    }


# A search for shoes; its list; a click on b; then a lazy part; the same list again, and a click on a.
EVENTS = [
    event("view_search_results", 1, [], term="shoes"),
    event("view_item_list", 2, [item("a", 0), item("b", 1)]),
    event("select_item", 3, [item("b", 1)]),
    event("view_item_list", 4, [item("c", 2)]),
    event("view_item_list", 5, [item("a", 0), item("b", 1)], term="shoes"),
    event("select_item", 6, [item("a", 0)]),
    event("select_item", 7, [item("a", 0)]),
    event("page_view", 8, []),
]
ROWS = {
    "session_id": [1, 1, 2, 3, 3],
    "query_id": ["shoes"] * 5,
    "doc_id": ["a", "b", "c", "a", "b"],
    "position": [1, 2, 3, 1, 2],
    "clicked": [0, 1, 0, 1, 0],
}


def ndjson(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def parquet(path: Path, rows: list[Any]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("write_events", [ndjson, parquet])
def test_labels_and_lists_are_those_of_the_same_log_in_rows(tmp_path: Path, write_events: Any) -> None:
    log = write_events(tmp_path / ("e.ndjson" if write_events is ndjson else "e.parquet"), EVENTS)
    rows = write(tmp_path / "rows.csv", ROWS)
    counts = cm.count(log)
    assert cells(counts) == cells(cm.count(rows))
    assert [str(note) for note in counts.notes] == ["1 click repeating a click on the same view: counted once."]
    for name, given in (("ga4", log), ("rows", rows)):
        cm.debias(given).write(tmp_path / f"{name}.labels.csv")
        cm.count(given, lists=True).write(tmp_path / f"{name}.lists.csv")
    assert (tmp_path / "ga4.labels.csv").read_bytes() == (tmp_path / "rows.labels.csv").read_bytes()
    assert (tmp_path / "ga4.lists.csv").read_bytes() == (tmp_path / "rows.lists.csv").read_bytes()


SEARCH = event("search", 1, [], term="q")
ODD = [
    (
        "no index",
        [SEARCH, event("view_item_list", 2, [item("a"), item("b")])],
        [("q", "a", 1, 1, 0), ("q", "b", 2, 1, 0)],
        "2 items shown without index: the place in the event is used.",
    ),
    (
        "a lazy list without index",
        [SEARCH, event("view_item_list", 2, [item("a")]), event("view_item_list", 3, [item("b")])],
        [("q", "a", 1, 1, 0)],
        "1 item without index, after another event of the same list and page: skipped.",
    ),
    (
        "(not set)",
        [SEARCH, event("view_item_list", 2, [item("(not set)", 0), item("b", 1, "(not set)")])],
        [("q", "b", 2, 1, 0)],
        "1 item without item_id: skipped.",
    ),
    (
        "no consent",
        [SEARCH, event("view_item_list", 2, [item("a", 0)]), event("view_item_list", 2, [item("z", 0)], user=None)],
        [("q", "a", 1, 1, 0)],
        "1 item without user_pseudo_id or ga_session_id: skipped.",
    ),
    (
        "no search",
        [event("view_item_list", 1, [item("z", 0)]), event("view_item_list", 2, [item("a", 0)], term="q")],
        [("q", "a", 1, 1, 0)],
        "1 item shown without search term: skipped.",
    ),
    (
        "a click in another list",
        [SEARCH, event("view_item_list", 2, [item("a", 0)]), event("select_item", 3, [item("a", 0, "slider")])],
        [("q", "a", 1, 1, 0)],
        "1 click without an earlier view of the item in that list and session: left out.",
    ),
    (
        "a term in the address alone",
        [
            event("view_item_list", 2, [item("a", 0)], page="https://shop/s?page=1&q=Red+shoes%C3%A9%21#top"),
            event("view_item_list", 3, [item("a", 0)], page="https://shop/s?faq=1"),
        ],
        [("Red shoesé!", "a", 1, 1, 0)],
        "1 item shown without search term: skipped.",
    ),
    (
        "a term that is a number",
        [
            event("view_item_list", 2, [item("a", 0)], term=501),
            event("view_item_list", 3, [item("a", 0)], term=1.5),
            event("view_item_list", 4, [item("a", 0)], page="none"),
        ],
        [("1.5", "a", 1, 1, 0), ("501", "a", 1, 1, 0)],
        "1 item shown without search term: skipped.",
    ),
    (
        "events of one batch share their time",
        [
            event("select_item", 2, [item("b", 1)], batch=10),
            event("view_item_list", 2, [item("a", 0), item("b", 1)], term="q", batch=9),
            event("select_item", 2, [item("a", 0)], batch=2),
        ],
        [("q", "a", 1, 1, 0), ("q", "b", 2, 1, 1)],
        "1 click without an earlier view of the item in that list and session: left out.",
    ),
    (
        "a click at the time of its view, and no batches",
        [
            event("view_item_list", 2, [item("b", 0)], term="q"),
            event("select_item", 2, [item("b", 0)]),
            event("select_item", 1, [item("b", 0)]),
        ],
        [("q", "b", 1, 1, 1)],
        "1 click without an earlier view of the item in that list and session: left out.",
    ),
    (
        "a click that names no list, by name, or another one",
        [
            event("view_item_list", 2, [item("a", 0, "s", "Search"), item("b", 1, "s", "Search")], term="q"),
            event("view_item_list", 3, [item("c", 2, "s", "Search"), item("d", 3, "s", "Search")], term="q"),
            event("select_item", 4, [item("a", None, None, "Search")]),
            event("select_item", 4, [item("b", None, None)]),
            event("select_item", 4, [item("c", None, None, "Slider")]),
        ],
        [("q", "a", 1, 1, 1), ("q", "b", 2, 1, 1), ("q", "c", 3, 1, 0), ("q", "d", 4, 1, 0)],
        "1 click without an earlier view of the item in that list and session: left out.",
    ),
    (
        "an item twice in a list",
        [
            event("view_item_list", 2, [item("a", 0), item("a", 1)], term="q"),
            *[event("select_item", ts, [item("a")]) for ts in (3, 4)],
        ],
        [("q", "a", 1, 1, 1), ("q", "a", 2, 1, 0)],
        "1 click repeating a click on the same view: counted once.",
    ),
    (
        "an index from 1",
        [event("view_item_list", 2, [item("a", 1), item("b", 2), item("c")], term="q")],
        [("q", "a", 1, 1, 0), ("q", "b", 2, 1, 0), ("q", "c", 3, 1, 0)],
        "1 item shown without index: the place in the event is used.",
    ),
]


@pytest.mark.parametrize(("events", "expected", "note"), [case[1:] for case in ODD], ids=[case[0] for case in ODD])
def test_odd_events_are_decided_and_told(tmp_path: Path, events: list[Any], expected: list[Any], note: str) -> None:
    counts = cm.count(ndjson(tmp_path / "e.ndjson", events))
    assert cells(counts) == expected
    assert note in [str(note) for note in counts.notes]


@pytest.mark.parametrize(("base", "position"), [("auto", 1), ("0", 2), ("1", 1)])
def test_the_first_index_may_be_1(tmp_path: Path, base: str, position: int) -> None:
    log = ndjson(tmp_path / "e.ndjson", [SEARCH, event("view_item_list", 2, [item("a", 1)])])
    assert cells(cm.count(log, format="ga4", position_base=base)) == [("q", "a", position, 1, 0)]


def test_one_list_of_a_page_and_a_context(tmp_path: Path) -> None:
    log = ndjson(tmp_path / "e.ndjson", [SEARCH, event("view_item_list", 2, [item("a", 0), item("s", 0, "slider")])])
    counts = cm.count(log, format="ga4", list_name="search", context="device.category")
    assert cells(counts) == [("q", "a", 1, "mobile", 1, 0)]


@pytest.mark.parametrize("list_name", ["s", "Search"])
def test_a_list_is_chosen_by_its_id_or_name(tmp_path: Path, list_name: str) -> None:
    views = [item("a", 0, "s", "Search"), item("b", 0, "r", "Slider")]
    events = [
        *[event("view_item_list", 2, views, term="q"), event("view_item_list", 3, views[1:], term="q")],
        *[event("select_item", 4, [item("a", None, None)]), event("select_item", 4, [item("b", None, "r")])],
    ]
    counts = cm.count(ndjson(tmp_path / "e.ndjson", events), list_name=list_name)
    assert cells(counts) == [("q", "a", 1, 1, 1)]
    assert not counts.notes


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    views = [item("a", 0, "s", "Search"), item("b", 0, "r", "Slider")]
    log = ndjson(tmp_path / "e.ndjson", [event("view_item_list", 2, views, term="q")])
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, list_name="find")
    assert str(caught.value) == f"{log}: no item list has the id or name 'find'. Found r, s."


def test_a_log_of_which_nothing_is_left_says_why(tmp_path: Path) -> None:
    log = ndjson(tmp_path / "e.ndjson", [event("view_item_list", 2, [item("a", 0), item("b", 1)])])
    with pytest.raises(cm.InputError) as caught:
        cm.count(log)
    assert str(caught.value) == (
        f"{log}: the log is empty. 2 items shown without search term: skipped. Expected one row per impression."
    )


def test_events_without_views(tmp_path: Path) -> None:
    log = ndjson(tmp_path / "e.ndjson", [SEARCH])
    with pytest.raises(cm.InputError) as caught:
        cm.count(log)
    assert str(caught.value) == f"{log}: no view_item_list event with items, so it is unknown what was shown."


def test_options_that_the_statement_has_no_use_for() -> None:
    with pytest.raises(cm.SettingError) as caught:
        run("sql", "ga4", "--dialect", "bigquery", "--columns", "query_id=term")
    assert str(caught.value) == (
        "ga4 knows the columns of Google Analytics' events. Leave --columns and --context out."
    )


def test_the_statement_for_bigquery_is_bigquerys_sql() -> None:
    import sqlglot

    done = run("sql", "ga4", "--dialect", "bigquery", "--table", "p.analytics_9.events_*")
    tree = sqlglot.parse_one(done.output, dialect="bigquery")
    assert [column.alias_or_name for column in tree.selects] == [
        *["query_id", "doc_id", "position", "clicked", "session_id"],
    ]
    assert "`p.analytics_9.events_*`" in done.output


def in_bigquery(events: list[Any]) -> list[tuple[Any, ...]]:
    """The impressions that the statement for BigQuery finds, run by DuckDB; the query, document, position, clicked."""
    import duckdb
    import sqlglot

    from clickmix.export.statements import ga4_statement

    statement = ga4_statement("bigquery", table="events")
    assert " AS it WITH OFFSET AS o" in statement
    # BigQuery's offset is from 0, the ordinality that sqlglot makes of it is from 1.
    translated = sqlglot.transpile(statement, read="bigquery", write="duckdb")[0].replace(
        "o AS place", "o - 1 AS place"
    )
    texts = pa.struct([(f"item_{each}", pa.string()) for each in ("id", "list_id", "list_name", "list_index")])
    given = pa.Table.from_pylist(events)
    table = given.set_column(given.column_names.index("items"), "items", given["items"].cast(pa.list_(texts)))
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO safe_convert_bytes_to_string(bytes) AS decode(bytes)")
        connection.register("events", table)
        return connection.execute(f"SELECT query_id, doc_id, position, clicked FROM ({translated})").fetchall()


@pytest.mark.parametrize("events", [EVENTS, *(case[1] for case in ODD)], ids=["usual", *(case[0] for case in ODD)])
def test_the_statement_for_bigquery_finds_what_the_layout_finds(tmp_path: Path, events: list[Any]) -> None:
    found: dict[tuple[Any, ...], list[int]] = {}
    for *key, clicked in in_bigquery(events):
        found.setdefault(tuple(key), []).append(clicked)
    counted = [(*key, len(clicked), sum(clicked)) for key, clicked in sorted(found.items())]
    assert counted == cells(cm.count(ndjson(tmp_path / "e.ndjson", events)))


@pytest.mark.parametrize("lists", [False, True])
def test_lines_that_are_cut_off_are_bad_rows(tmp_path: Path, lists: bool) -> None:
    log = ndjson(tmp_path / "log.ndjson", EVENTS)
    with log.open("a") as file:
        file.write('{"action_name": "impre\n[1]\n')
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, lists=lists)
    assert str(caught.value) == (
        f"{log}, row 9: the line is not a JSON object. In all, 2 rows are bad. Fix the log, or skip bad rows with "
        "--bad-rows skip (in Python bad_rows='skip')."
    )
    counts = cm.count(log, lists=lists, bad_rows="skip")
    assert cells(counts) == cells(cm.count(ndjson(tmp_path / "whole.ndjson", EVENTS)))
    assert [(refused.reason, refused.rows) for refused in counts.refused] == [("the line is not a JSON object", 2)]
