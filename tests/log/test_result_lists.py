"""Result lists: one row per list gives the counts and labels of one row per impression."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import clickmix as cm
from logs import Table, cells, write

# Four lists: q1 twice, one of them without a click; q2 with a hole at 2; a list of one.
LISTS: Table = {
    "query_id": ["q1", "q1", "q2", "q3"],
    "doc_ids": [["a", "b", "c"], ["b", "a", "c"], ["d", None, "e"], ["f"]],
    "clicked": [[1, 0, 1], [0, 0, 0], [0, 0, 1], [1]],
    "clicked_ids": [["a", "c"], [], ["e"], ["f"]],
    "clicked_positions": [[1, 3], [], [3], [1]],
    "device": ["m", "d", "m", "m"],
}
CELLS = [
    ("q1", "a", 1, 1, 1),
    ("q1", "a", 2, 1, 0),
    ("q1", "b", 1, 1, 0),
    ("q1", "b", 2, 1, 0),
    ("q1", "c", 3, 2, 1),
    ("q2", "d", 1, 1, 0),
    ("q2", "e", 3, 1, 1),
    ("q3", "f", 1, 1, 1),
]
FORMS = ["clicked", "clicked_ids", "clicked_positions"]
NAMES = ["log.parquet", "log.ndjson", "log.csv"]


def lists(form: str) -> Table:
    return {key: values for key, values in LISTS.items() if key not in FORMS or key == form}


def written(path: Path, table: Table) -> Path:
    """In CSV, a list is JSON text."""
    if path.suffix != ".csv":
        return write(path, table)
    return write(path, {k: [json.dumps(v) if isinstance(v, list) else v for v in vs] for k, vs in table.items()})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_lists_are_recognised_and_counted(tmp_path: Path, name: str, form: str) -> None:
    counts = cm.count(written(tmp_path / name, lists(form)))
    assert (cells(counts), counts.refused) == (CELLS, ())


@pytest.mark.parametrize("form", FORMS)
def test_frames_with_list_columns(form: str) -> None:
    assert cells(cm.count(pl.DataFrame(lists(form)))) == CELLS
    assert cells(cm.count(pa.table(lists(form)))) == CELLS


def as_rows(table: Table) -> Table:
    """The same log with a row per impression."""
    rows = [
        (i, query, document, k + 1, clicked[k])
        for i, (query, documents, clicked) in enumerate(
            zip(table["query_id"], table["doc_ids"], table["clicked"], strict=True)
        )
        for k, document in enumerate(documents)
        if document is not None
    ]
    names = ("session_id", "query_id", "doc_id", "position", "clicked")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_those_of_the_same_log_in_rows_byte_for_byte(tmp_path: Path, name: str) -> None:
    cm.debias(written(tmp_path / name, lists("clicked"))).write(tmp_path / "lists.labels.csv")
    cm.debias(write(tmp_path / "rows.csv", as_rows(LISTS))).write(tmp_path / "rows.labels.csv")
    assert (tmp_path / "lists.labels.csv").read_bytes() == (tmp_path / "rows.labels.csv").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_lists_kept_apart_are_those_of_the_same_log_in_rows(tmp_path: Path, name: str) -> None:
    cm.count(written(tmp_path / name, lists("clicked")), lists=True).write(tmp_path / "lists.counts.csv")
    cm.count(write(tmp_path / "rows.csv", as_rows(LISTS)), lists=True).write(tmp_path / "rows.counts.csv")
    assert (tmp_path / "lists.counts.csv").read_bytes() == (tmp_path / "rows.counts.csv").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_context_columns_of_lists(tmp_path: Path, name: str) -> None:
    counts = cm.count(written(tmp_path / name, lists("clicked")), context="device")
    assert cells(counts)[:2] == [("q1", "a", 1, "m", 1, 1), ("q1", "a", 2, "d", 1, 0)]


@pytest.mark.parametrize("name", ["log.parquet", "log.ndjson"])
def test_documents_that_are_integers_stay_integers(tmp_path: Path, name: str) -> None:
    table: Table = {"query_id": [7], "doc_ids": [[30, 4]], "clicked": [[0, 1]]}
    assert cells(cm.count(write(tmp_path / name, table))) == [(7, 4, 2, 1, 1), (7, 30, 1, 1, 0)]


def test_positions_of_their_own(tmp_path: Path) -> None:
    table: Table = {"query_id": ["q"], "doc_ids": [["a", "b"]], "positions": [[3, 11]], "clicked_positions": [[11]]}
    assert cells(cm.count(write(tmp_path / "log.parquet", table))) == [("q", "a", 3, 1, 0), ("q", "b", 11, 1, 1)]


def test_a_document_twice_is_shown_twice(tmp_path: Path) -> None:
    table: Table = {"query_id": ["q"], "doc_ids": [["a", "a"]], "clicked": [[0, 1]]}
    assert cells(cm.count(write(tmp_path / "log.parquet", table))) == [("q", "a", 1, 1, 0), ("q", "a", 2, 1, 1)]


NESTED = [
    {"query": "q", "results": [{"sku": "a", "seen": 1, "hit": True}, {"sku": "b", "seen": 2, "hit": False}]},
    {"query": "r", "results": [{"sku": "c", "seen": 1, "hit": False}]},
]
COLUMNS = {"query_id": "query", "doc_ids": "results[].sku", "clicked": "results[].hit"}


@pytest.mark.parametrize("name", NAMES)
def test_nested_objects_by_path(tmp_path: Path, name: str) -> None:
    table = {key: [row[key] for row in NESTED] for key in ("query", "results")}
    counts = cm.count(written(tmp_path / name, table), columns=COLUMNS)
    assert cells(counts) == [("q", "a", 1, 1, 1), ("q", "b", 2, 1, 0), ("r", "c", 1, 1, 0)]


@pytest.mark.parametrize("name", ["log.parquet", "log.ndjson"])
def test_lists_deep_inside_objects_by_path(tmp_path: Path, name: str) -> None:
    table = {"q": ["x"], "search": [{"items": [{"document": {"id": "a"}}, {"document": {"id": "b"}}]}], "hit": [["b"]]}
    columns = {"query_id": "q", "doc_ids": "search.items[].document.id", "clicked_ids": "hit"}
    assert cells(cm.count(write(tmp_path / name, table), columns=columns)) == [("x", "a", 1, 1, 0), ("x", "b", 2, 1, 1)]


BAD = [
    ("clicked", {"clicked": [1]}, "clicked and doc_ids have different lengths", "clicked", "[1]"),
    ("clicked", {"clicked": [1, 2]}, "clicked has a value that is neither 0 nor 1", "clicked", "[1, 2]"),
    ("clicked", {"clicked": None}, "clicked and doc_ids have different lengths", "clicked", None),
    ("clicked", {"doc_ids": None}, "doc_ids is not a list; in CSV it is a list in JSON", "doc_ids", None),
    (
        "clicked_positions",
        {"clicked_positions": [3]},
        "clicked_positions has a value that is not in the list's positions",
        "clicked_positions",
        "[3]",
    ),
    ("clicked", {"doc_ids": [None, "b"]}, "a place without a document was clicked", "clicked", "[1, 0]"),
    (
        "clicked_positions",
        {"doc_ids": [None, "b"]},
        "a place without a document was clicked",
        "clicked_positions",
        "[1]",
    ),
    ("clicked", {"query_id": None}, "query_id is missing", "query_id", None),
]


@pytest.mark.parametrize(("form", "change", "reason", "column", "text"), BAD)
def test_a_list_that_contradicts_itself(
    tmp_path: Path, form: str, change: dict[str, Any], reason: str, column: str, text: str | None
) -> None:
    row: dict[str, Any] = {"query_id": "q", "doc_ids": ["a", "b"], "clicked": [1, 0], "clicked_ids": ["a"]}
    row |= {"clicked_positions": [1]}
    kept = {key: row[key] for key in ("query_id", "doc_ids", form)}
    table = {key: [value, (kept | change)[key]] for key, value in kept.items()}
    file = write(tmp_path / "log.parquet", table)
    with pytest.raises(cm.InputError) as caught:
        cm.count(file)
    found = repr(text) if text else "nothing"
    assert str(caught.value) == (
        f"{file}, row 2, column {column!r}: {found}: {reason}. Fix the log, or skip bad rows with --bad-rows skip (in "
        "Python bad_rows='skip')."
    )
    counts = cm.count(file, bad_rows="skip")
    assert cells(counts) == [("q", "a", 1, 1, 1), ("q", "b", 2, 1, 0)]
    assert [(r.reason, r.rows) for r in counts.refused] == [(reason, 1)]


DECIDED = [
    (
        ["a", "b"],
        ["z", "b"],
        [("q", "a", 1, 1, 0), ("q", "b", 2, 1, 1)],
        "clicks on documents that are not in the list",
    ),
    (["a", "b", "a"], ["a"], [("q", "a", 1, 1, 1), ("q", "a", 3, 1, 0), ("q", "b", 2, 1, 0)], "a clicked document"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("documents", "clicked", "expected", "words"), DECIDED)
def test_odd_clicks_are_decided_and_counted(
    tmp_path: Path, name: str, documents: list[str], clicked: list[str], expected: list[Any], words: str
) -> None:
    table: Table = {"query_id": ["q", "r"], "doc_ids": [documents, ["c"]], "clicked_ids": [clicked, ["c"]]}
    counts = cm.count(written(tmp_path / name, table))
    assert cells(counts) == [*expected, ("r", "c", 1, 1, 1)]
    assert counts.refused == ()
    (note,) = counts.notes
    assert str(note).startswith(f"1 row with {words}")
    assert cells(cm.count(written(tmp_path / name, table), lists=True)) == cells(counts)


@pytest.mark.parametrize("clicked", [[1], [0.5], [{"a": 1}], [[["a"]]], [["x"]]])
def test_clicks_of_other_types_are_refused(tmp_path: Path, clicked: list[Any]) -> None:
    file = write(tmp_path / "log.parquet", {"query_id": ["q"], "doc_ids": [["a"]], "clicked": clicked})
    with pytest.raises(cm.InputError, match="column 'clicked'"):
        cm.count(file)


@pytest.mark.parametrize("documents", [[[0.5]], [[True]], [[["a"]]], [[{"a": 1}]]])
def test_documents_of_other_types_are_refused(tmp_path: Path, documents: list[Any]) -> None:
    file = write(tmp_path / "log.parquet", {"query_id": ["q"], "doc_ids": documents, "clicked": [[1]]})
    with pytest.raises(cm.InputError, match="column 'doc_ids'"):
        cm.count(file)


@pytest.mark.parametrize("text", ["a|b", "['a', 'b']", "a", '{"a": 1}', '["a", {"b": 1}]', '["a"'])
def test_lists_of_csv_are_json(tmp_path: Path, text: str) -> None:
    file = write(tmp_path / "log.csv", {"query_id": ["q"], "doc_ids": [text], "clicked": ["[1, 0]"]})
    with pytest.raises(cm.InputError, match="row 1, column 'doc_ids'"):
        cm.count(file)


def test_missing_columns_of_lists_are_told_together(tmp_path: Path) -> None:
    file = write(tmp_path / "log.parquet", {"term": ["q"], "results": [["a"]], "click": [[1]]})
    with pytest.raises(cm.InputError) as caught:
        cm.count(file)
    assert str(caught.value) == (
        f"{file}: missing 'query_id', 'doc_ids' and 'clicked' (or 'clicked_ids', or 'clicked_positions'). Found term, "
        "results, click. `term` looks like query_id, `results` looks like doc_ids, `click` looks like clicked. If so, "
        "use --columns query_id=term,doc_ids=results,clicked=click (in Python columns={'query_id': 'term', 'doc_ids': "
        "'results', 'clicked': 'click'})."
    )


@pytest.mark.parametrize(
    "change", [{"positions": [[0, 1]], "clicked": [[1, 0]]}, {"clicked_positions": [[0]]}], ids=["positions", "clicked"]
)
def test_positions_from_0_get_a_hint(tmp_path: Path, change: Table) -> None:
    file = write(tmp_path / "log.parquet", {"query_id": ["q"], "doc_ids": [["a", "b"]], **change})
    with pytest.raises(cm.InputError, match="If positions count from 0, add 1 to all of them"):
        cm.count(file)


def test_a_query_that_is_an_object_is_a_bad_row(tmp_path: Path) -> None:
    log = tmp_path / "log.ndjson"
    good = '{"query_id": "q", "doc_ids": ["b"], "clicked": [0]}\n'
    log.write_text('{"query_id": {"a": 1}, "doc_ids": ["a"], "clicked": [1]}\n' + good)
    counts = cm.count(log, bad_rows="skip")
    assert cells(counts) == [("q", "b", 1, 1, 0)]
    assert [(refused.reason, refused.rows) for refused in counts.refused] == [
        ("query_id is neither text nor a whole number", 1)
    ]


def test_a_shops_export_with_a_column_clicks_is_a_log_of_lists(tmp_path: Path) -> None:
    """`clicks` is also a column of counts, and lists in CSV are text: neither may hide the lists."""
    (tmp_path / "shop.csv").write_text(
        'search_term;results;clicks\nshoes;"[""a"",""b""]";"[""b""]"\nshoes;"[""b"",""a""]";[]\n'
    )
    with pytest.raises(cm.InputError) as caught:
        cm.count(tmp_path / "shop.csv")
    assert "`results` looks like doc_ids, `clicks` looks like clicked_ids" in str(caught.value)
    columns = {"query_id": "search_term", "doc_ids": "results", "clicked_ids": "clicks"}
    assert str(columns) in str(caught.value)
    counts = cm.count(tmp_path / "shop.csv", columns=columns)
    assert cells(counts) == [
        ("shoes", "a", 1, 1, 0),
        ("shoes", "a", 2, 1, 0),
        ("shoes", "b", 1, 1, 0),
        ("shoes", "b", 2, 1, 1),
    ]


def test_objects_without_a_field_get_a_hint(tmp_path: Path) -> None:
    (tmp_path / "log.ndjson").write_text('{"query_id": "q", "results": [{"sku": "a"}], "clicked": [1]}\n')
    with pytest.raises(cm.InputError) as caught:
        cm.count(tmp_path / "log.ndjson", columns={"doc_ids": "results"})
    assert "name the field of the document: --columns 'doc_ids=results[].sku'." in str(caught.value)
    assert cm.count(tmp_path / "log.ndjson", columns={"doc_ids": "results[].sku"}).totals() == (1, 1)


def test_a_list_inside_an_object_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "log.ndjson").write_text('{"term": "q", "search": {"results": [{"sku": "a", "hit": 1}]}}\n')
    with pytest.raises(cm.InputError) as caught:
        cm.count(tmp_path / "log.ndjson")
    assert str(caught.value).endswith(
        " Fields inside objects have paths: doc_ids=results[].id, doc_ids=search.results[].id."
    )


def test_arrays_of_text_in_a_frame_are_told_of() -> None:
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame({"query_id": ["q"], "doc_ids": [np.array(["a", "b"])], "clicked": [[1, 0]]})
    with pytest.raises(cm.InputError) as caught:
        cm.count(frame)
    assert str(caught.value) == (
        "the frame: cannot be read: Data type '<U1' not recognized. Use columns of numbers or text, or of lists of "
        "them; turn arrays of text into lists."
    )
