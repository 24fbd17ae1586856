"""Judgments files: every format, any scale, bad rows and failed joins refused in one clear line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import clickmix as cm
from clickmix.counts.counts import Counts
from clickmix.counts.judgments import read_judgments
from clickmix.errors import InputError
from logs import write

GOOD: dict[str, list[Any]] = {"query_id": [1, 1, 2], "doc_id": ["a", "b", "x"], "grade": [0.5, -2, 3]}


@pytest.fixture(scope="module")
def counts() -> Counts:
    return cm.Counts.from_arrays([1, 1, 2], ["a", "b", "c"], [1, 2, 1], [5, 5, 5], [1, 0, 2])


@pytest.mark.parametrize("name", ["judged.csv", "judged.parquet", "judged.ndjson", "judged.csv.gz"])
def test_judgments_in_every_format(tmp_path: Path, counts: Counts, name: str) -> None:
    """Ids are numbers in the log and may be text in the file."""
    found = read_judgments(str(write(tmp_path / name, GOOD)), counts)
    rows = counts.engine.rows(f"SELECT q, d, grade, shown, known FROM {found.table} ORDER BY q, d")
    assert rows == [("1", "a", 0.5, True, True), ("1", "b", -2.0, True, True), ("2", "x", 3.0, None, True)]
    assert (found.documents, found.missing, found.strange_queries) == (3, 1, 0)
    assert found.sentences() == [
        "2 of 3 judged documents are in the log.",
        "Not in the log: 1, for instance query '2', document 'x'.",
    ]


def test_judgments_from_a_frame(counts: Counts) -> None:
    assert read_judgments(pa.table(GOOD), counts).documents == 3


def test_the_same_judgment_twice_is_one(counts: Counts) -> None:
    twice = {key: values * 2 for key, values in GOOD.items()}
    assert read_judgments(pa.table(twice), counts).documents == 3


BAD: list[tuple[dict[str, list[Any]], str]] = [
    (
        {"grade": ["0", "high", "1"]},
        "query '1', document 'b', grade 'high' is not a judgment (bad rows: 1). Expected one row per judged document: "
        "query_id, doc_id, grade. The grade is a number, on any scale.",
    ),
    ({"grade": ["0", "", "nan"]}, "is not a judgment (bad rows: 2)"),
    ({"doc_id": ["a", "", "x"]}, "query '1', document None, grade '-2' is not a judgment (bad rows: 1)"),
    (
        {"doc_id": ["a", "a", "x"]},
        "query '1', document 'a' has two grades, -2 and 0.5. Give each document one grade, for instance the mean of "
        "its judges.",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_rows_are_refused(tmp_path: Path, counts: Counts, change: dict[str, list[Any]], message: str) -> None:
    file = write(tmp_path / "judged.csv", GOOD | change)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_judgments(str(file), counts)
    assert str(caught.value).startswith(f"{file}: query ")


def test_a_missing_column_is_named(tmp_path: Path, counts: Counts) -> None:
    file = write(tmp_path / "judged.csv", {"query_id": [1], "doc_id": ["a"], "rating": [1]})
    with pytest.raises(
        InputError, match=r"judged.csv: no column 'grade'. Found query_id, doc_id, rating. Expected one"
    ):
        read_judgments(str(file), counts)


def test_judgments_of_another_log_are_a_failed_join(counts: Counts) -> None:
    other = pa.table({"query_id": ["q1", "q2"], "doc_id": ["a", "b"], "grade": [1, 2]})
    message = (
        "the frame: none of the 2 judged documents is in the log. For instance, query 'q1', document 'a' is judged; "
        "the log has query '1', document 'a'. Check that both use the same ids."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        read_judgments(other, counts)


def test_texts_are_no_grades(counts: Counts) -> None:
    with pytest.raises(InputError, match=r"the frame, column 'grade': found VARCHAR values, expected numbers\."):
        read_judgments(pa.table(GOOD | {"grade": ["1", "2", "3"]}), counts)
