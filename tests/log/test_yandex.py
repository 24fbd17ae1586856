"""The Yandex challenge's lines become impressions; clicks find their page."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import clickmix as cm
from logs import cells, write

# Session 7 sees 20, 21, 22, clicks 21 twice and 99, which nobody showed; then asks again and clicks 21 on the new page.
LINES = (
    "7\t0\tQ\t5\t1\t20\t21\t22\n"
    "7\t3\tC\t21\n"
    "7\t4\tC\t21\n"
    "7\t5\tC\t99\n"
    "8\t0\tQ\t5\t1\t22\t20\t21\n"
    "7\t9\tQ\t5\t2\t21\t20\t23\n"
    "7\t9\tC\t21\n"
)
ROWS = {
    "session_id": [1, 1, 1, 2, 2, 2, 3, 3, 3],
    "query_id": ["5_1"] * 6 + ["5_2"] * 3,
    "doc_id": [20, 21, 22, 22, 20, 21, 21, 20, 23],
    "position": [1, 2, 3] * 3,
    "clicked": [0, 1, 0, 0, 0, 0, 1, 0, 0],
}


@pytest.mark.parametrize("name", ["relpred.tsv", "relpred.txt", "relpred.tsv.gz"])
def test_labels_and_lists_are_those_of_the_same_log_in_rows(tmp_path: Path, name: str) -> None:
    data = LINES.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    rows = write(tmp_path / "rows.parquet", ROWS)
    counts = cm.count(tmp_path / name, format="yandex")
    assert cells(counts) == cells(cm.count(rows))
    assert [str(note) for note in counts.notes] == [
        "1 click repeating a click on the same page: counted once.",
        "1 click on a url that no earlier page of the session shows: left out.",
    ]
    cm.debias(tmp_path / name, format="yandex").write(tmp_path / "yandex.csv")
    cm.debias(rows).write(tmp_path / "rows.csv")
    assert (tmp_path / "yandex.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()
    cm.count(tmp_path / name, format="yandex", lists=True).write(tmp_path / "yandex.csv")
    cm.count(rows, lists=True).write(tmp_path / "rows.csv")
    assert (tmp_path / "yandex.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()


def test_the_first_line_tells(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("7\t0\tQ\t5\t1\t20\t21\t22\n7\t3\tC\t21\n")
    assert cells(cm.count(tmp_path / "log.tsv")) == [("5_1", 20, 1, 1, 0), ("5_1", 21, 2, 1, 1), ("5_1", 22, 3, 1, 0)]


def test_the_first_line_tells_though_its_numbers_repeat(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("0\t0\tQ\t1\t1\t20\t20\n0\t3\tC\t20\n")
    assert cells(cm.count(tmp_path / "log.tsv")) == [("1_1", 20, 1, 1, 1), ("1_1", 20, 2, 1, 0)]


def test_a_line_that_is_neither(tmp_path: Path) -> None:
    log = tmp_path / "log.tsv"
    log.write_text(LINES + "7\t9\tX\t21\n\n")
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, format="yandex")
    assert str(caught.value) == (
        f"{log}, row 8, column 'line': '7\\t9\\tX\\t21': the line is neither a page (session, time, Q, query, region, "
        "urls) nor a click (session, time, C, url). Fix the log, or skip bad rows with --bad-rows skip (in Python "
        "bad_rows='skip')."
    )
    counts = cm.count(log, format="yandex", bad_rows="skip")
    assert (counts.totals(), [r.rows for r in counts.refused]) == ((9, 2), [1])


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize("after", [b"", b"2\t0\tQ\t5\t1\t11\n"], ids=["at the end", "in the middle"])
@pytest.mark.parametrize("megabytes", [3, 40])
def test_a_very_long_line_is_reported(tmp_path: Path, megabytes: int, after: bytes, packed: bool) -> None:
    """A power failure can leave zeros. DuckDB loses a line that does not fit in its buffer."""
    log = tmp_path / ("log.tsv.gz" if packed else "log.tsv")
    with gzip.open(log, "wb", compresslevel=1) if packed else log.open("wb") as file:
        file.write(b"1\t0\tQ\t5\t1\t11\t12\n" + bytes(megabytes << 20) + (b"\n" + after if after else b""))
    with pytest.raises(cm.InputError, match=f"{log.name}, row 2.* neither a page"):
        cm.count(log, format="yandex")
    counts = cm.count(log, format="yandex", bad_rows="skip")
    assert counts.totals() == (3 if after else 2, 0)
    assert [refused.rows for refused in counts.refused] == [1]


def test_a_file_that_is_something_else(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("hello\n")
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, format="yandex")
    assert str(caught.value) == (f"{log}: no line is a page (session, time, Q, query, region, urls). Check the format.")
