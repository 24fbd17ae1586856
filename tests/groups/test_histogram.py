"""Histograms downloaded from a warehouse: names of columns in any case, files that are none, names of contexts."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

import clickmix as cm
from clickmix.groups.places import Place, histogram_query, places_of, read_downloaded
from commands import failure, run
from logs import Table, cells, csv_text, small_log, write

HEADER = "position,impressions,clicks,documents,moving,again"
EXPECTED = (
    "Expected whole numbers: position, impressions and documents of at least 1, clicks up to impressions, moving and "
    "again together up to documents."
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_columns_in_capitals(folder: Path) -> None:
    """As Snowflake writes them."""
    table: Table = {
        "POSITION": [1, 1, 2],
        "DEVICE": ["mobile", "desktop", "mobile"],
        "IMPRESSIONS": [5, 5, 7],
        "CLICKS": [2, 0, 1],
        "DOCUMENTS": [3, 4, 5],
        "MOVING": [0, 2, 1],
        "AGAIN": [0, 0, 3],
    }
    write(folder / "capitals.csv", table)
    write(folder / "plain.csv", {key.lower(): values for key, values in table.items()})
    found, moving = read_downloaded("capitals.csv", context=["device"])
    assert found.places == (Place(1, ("desktop",)), Place(1, ("mobile",)), Place(2, ("mobile",)))
    assert [found.total(column).tolist() for column in (found.impressions, found.clicks)] == [[20, 15, 35], [0, 6, 5]]
    assert moving == 3 / 9
    run("fit", "plain.csv", "-o", "plain.json", "--context", "device")
    assert run("fit", "capitals.csv", "-o", "capitals.json", "--context", "device").exit_code == 0
    assert (folder / "capitals.json").read_bytes() == (folder / "plain.json").read_bytes()


def test_a_log_in_capitals(folder: Path) -> None:
    log = small_log()
    write(folder / "plain.csv", log)
    write(folder / "capitals.csv", {key.upper(): values for key, values in log.items()})
    assert cells(cm.count("capitals.csv")) == cells(cm.count("plain.csv"))
    cm.count("plain.csv").write("counts.csv")
    header, rest = (folder / "counts.csv").read_text().split("\n", 1)
    (folder / "counts.csv").write_text(f"{header.upper()}\n{rest}")
    assert cells(cm.count("counts.csv")) == cells(cm.count("plain.csv"))


def test_counts_with_another_column_called_clicked_stay_counts(folder: Path) -> None:
    (folder / "counts.csv").write_text("query_id,doc_id,position,impressions,clicks,Clicked\nq,d,1,9,4,1\n")
    assert cells(cm.count("counts.csv")) == [("q", "d", 1, 9, 4)]


def test_columns_that_differ_from_file_to_file_are_told(folder: Path) -> None:
    (folder / "a.csv").write_text("query_id,doc_id,position,clicked\nq,d,1,1\n")
    (folder / "b.csv").write_text("QUERY_ID,doc_id,position,clicked\nq,d,1,1\n")
    with pytest.raises(cm.InputError) as caught:
        cm.count(["a.csv", "b.csv"])
    assert str(caught.value) == (
        "b.csv: missing 'query_id'. Found QUERY_ID, doc_id, position, clicked. `QUERY_ID` looks like "
        "query_id. If so, use --columns query_id=QUERY_ID (in Python columns={'query_id': 'QUERY_ID'})."
    )


HISTOGRAMS = [
    (
        "position,impressions,clicks,documents\n1,5,2,10\n",
        "no column 'moving'. Found position, impressions, clicks, documents. Expected the result of the "
        "statement that `clickmix sql histogram` prints.",
    ),
    (f"{HEADER}\n1,5,6,10,0,0\n1,5,2,10,0,0\n", f"1 of 2 rows do not belong in a histogram. {EXPECTED}"),
    (f"{HEADER}\n", f"0 of 0 rows do not belong in a histogram. {EXPECTED}"),
    (f"{HEADER}\n1,5,2,0,0,0\n", f"1 of 1 rows do not belong in a histogram. {EXPECTED}"),
    (f"{HEADER}\n1,5.5,2,10,0,0\n", f"1 of 1 rows do not belong in a histogram. {EXPECTED}"),
    (f"{HEADER}\n1,5,2,99999999999999999999,0,0\n", f"1 of 1 rows do not belong in a histogram. {EXPECTED}"),
    (
        f"{HEADER}\n1,5,2\n",
        "cannot be read: CSV Error on Line: 2. The file may be damaged or cut off; write it again.",
    ),
    (
        f"{HEADER}\n1,1,0,9223372036854775807,0,0\n1,1,0,1,0,0\n",
        "the impressions of all documents add up to more than 9223372036854775807. Check the columns impressions and "
        "documents, or use a part of the log.",
    ),
    (
        f"{HEADER}\n1,9223372036854775807,0,9223372036854775807,0,0\n",
        "the impressions of all documents add up to more than 9223372036854775807. Check the columns impressions and "
        "documents, or use a part of the log.",
    ),
]


@pytest.mark.parametrize(("text", "message"), HISTOGRAMS)
def test_a_histogram_that_is_none(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    (folder / "histogram.csv").write_text(text)
    found = failure(capsys, monkeypatch, "fit", "histogram.csv", "-o", "model.json")
    assert found == f"clickmix: histogram.csv: {message}\n"


def test_a_histogram_of_other_types(folder: Path) -> None:
    duckdb.sql(
        "COPY (SELECT 1 AS position, 5 AS impressions, DATE '2026-01-01' AS clicks, 3 AS documents, "
        "0 AS moving, 0 AS again) TO 'histogram.parquet'"
    )
    with pytest.raises(cm.InputError) as caught:
        read_downloaded("histogram.parquet")
    assert str(caught.value) == "histogram.parquet, column 'clicks': found DATE values, expected whole numbers."


@pytest.mark.parametrize("column", ["documents", "document", "cells", "moving", "n", "c", "below", "k0", "k2"])
def test_a_context_may_have_any_name(folder: Path, column: str) -> None:
    """Of a raw log and of counts, with documents that move and fits of all kinds of statements."""
    log = small_log(rows=4_000)
    named = {column if key == "device" else key: values for key, values in log.items()}
    expected = cm.debias(write(folder / "device.parquet", log), context=["device"])
    found = cm.debias(write(folder / "named.parquet", named), context=[column])
    assert found.relevance.tolist() == expected.relevance.tolist()
    run("counts", "named.parquet", "-o", "counts.csv", "--context", column)
    assert cm.debias("counts.csv", context=[column]).relevance.tolist() == expected.relevance.tolist()


@pytest.mark.parametrize("column", ["document", "cells", "n", "c", "k0", "k2"])
def test_histograms_of_a_context_of_any_name(folder: Path, column: str) -> None:
    (folder / "counts.csv").write_text(
        f"query_id,doc_id,position,{column},impressions,clicks\nq,a,1,x,5,2\nq,a,2,x,5,2\nq,b,1,x,5,2\nq,c,1,y,3,0\n"
    )
    made = duckdb.execute(histogram_query("'counts.csv'", [column]))
    names, rows = [str(described[0]) for described in made.description], made.fetchall()
    assert names == ["position", column, "impressions", "clicks", "documents", "moving", "again"]
    assert rows == [(1, "x", 5, 2, 2, 1, 0), (1, "y", 3, 0, 1, 0, 0), (2, "x", 5, 2, 1, 0, 1)]
    (folder / "histogram.csv").write_text(csv_text(dict(zip(names, zip(*rows, strict=True), strict=True))))
    found, moving = read_downloaded("histogram.csv", context=[column])
    assert (found.places, moving) == ((Place(1, ("x",)), Place(1, ("y",)), Place(2, ("x",))), 1 / 3)


@pytest.mark.parametrize("column", ["documents", "Moving"])
def test_a_context_that_a_histogram_has_already(column: str) -> None:
    with pytest.raises(cm.SettingError) as caught:
        histogram_query("counts", [column])
    assert str(caught.value) == (
        f"context {column!r}: a histogram already has a column of that name. Make a view of the counts that gives it "
        "another name."
    )


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ((), "the log has 50,001 places (50,001 positions), more than 50,000. Check the position column, or use"),
        (("dev",), "the log has 50,001 places (1 positions in dev), more than 50,000. Leave the context out, or use"),
    ],
)
def test_more_places_than_memory_is_meant_for(context: tuple[str, ...], message: str) -> None:
    many, one = np.arange(1, 50_002), np.ones(50_001, dtype=np.int64)
    columns = {"k0": one, "k1": many.astype(str)} if context else {"k0": many}
    with pytest.raises(cm.InputError, match=f"^{re.escape(message)}"):
        places_of(columns, context)
