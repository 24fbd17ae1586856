"""Features files: what is written is read, and what is not a features file is refused."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickmix.errors import InputError
from clickmix.features import open_features
from clickmix.features.files import read_features, write_features
from clickmix.features.split import Split, binarized, graded, offsets_of, row_of_scattered_query


def small_split(**changed: object) -> Split:
    columns = {
        "query_id": np.array([7, 3]),
        "offsets": np.array([0, 2, 5]),
        "doc_id": np.array(["a", "b", "a", "", "né\n'"]),
        "grade": np.array([0, 4, 1, 2, 0], np.int8),
        "features": np.arange(5 * 20, dtype=np.float32).reshape(5, 20) / 7,
    }
    return Split(**{**columns, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"doc_id": np.arange(5) + 2**60},
        {"query_id": np.array([7, 2**63 + 5], np.uint64)},
        {"query_id": np.array(["häuser", "x;y"])},
        {"features": np.zeros((5, 1), np.float32)},
    ],
)
def test_what_is_written_is_read(tmp_path: Path, changed: dict[str, object]) -> None:
    split = small_split(**changed)
    write_features(split, tmp_path / "train.parquet")
    again = read_features(tmp_path / "train.parquet")
    names = ("query_id", "offsets", "doc_id", "grade", "features")
    assert [getattr(again, name).tolist() for name in names] == [getattr(split, name).tolist() for name in names]
    assert [getattr(again, name).dtype for name in names] == [getattr(split, name).dtype for name in names]


@pytest.mark.parametrize("type", ["UBIGINT", "DECIMAL(38, 0)"])
def test_ids_of_wide_types_are_whole_numbers_where_they_fit(tmp_path: Path, type: str) -> None:
    path = tmp_path / "train.parquet"
    columns = f"unnest([2, {2**63 + 2}])::{type} AS doc_id, 0 AS grade, 1 AS feature_1"
    duckdb.execute(f"COPY (SELECT 7::{type} AS query_id, {columns}) TO '{path}' (FORMAT parquet)")
    split = read_features(path)
    assert (split.query_id.tolist(), split.query_id.dtype.kind) == ([7], "i")
    assert (split.doc_id.tolist(), split.doc_id.dtype.kind) == ([2, 2**63 + 2], "u")


def test_the_columns_are_those_of_the_contract(tmp_path: Path) -> None:
    write_features(small_split(), tmp_path / "train.parquet")
    rows = duckdb.execute("DESCRIBE FROM read_parquet($path)", {"path": str(tmp_path / "train.parquet")}).fetchall()
    expected = [("query_id", "BIGINT"), ("doc_id", "VARCHAR"), ("grade", "TINYINT")]
    assert [row[:2] for row in rows] == expected + [(f"feature_{i}", "FLOAT") for i in range(1, 21)]


def test_the_same_split_gives_the_same_bytes(tmp_path: Path) -> None:
    rows = 300_000  # more than one row group
    numbers = np.random.default_rng(0).integers(9, size=(rows, 3)).astype(np.float32)
    split = Split(np.array([1]), np.array([0, rows]), np.arange(rows), np.zeros(rows, np.int8), numbers)
    write_features(split, tmp_path / "one.parquet")
    write_features(split, tmp_path / "two.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    np.testing.assert_array_equal(read_features(tmp_path / "one.parquet").features, numbers)


def test_an_error_while_writing_leaves_the_former_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(old: Path, new: Path) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "train.parquet").write_bytes(b"former")
    monkeypatch.setattr("clickmix.storage.atomic.os.replace", refuse)
    with pytest.raises(OSError, match="No space left on device"):
        write_features(small_split(), tmp_path / "train.parquet")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("train.parquet", b"former")]


WRONG_FILES = [
    ("SELECT 1 AS query_id, 2 AS doc_id, 1.5 AS feature_1",
     ": no column 'grade'; found query_id, doc_id, feature_1. "
     "Expected query_id, doc_id, grade and one column per feature."),
    ("SELECT 1 AS query_id, 2 AS doc_id, 0 AS grade",
     ": no features; found query_id, doc_id, grade. "
     "Expected query_id, doc_id, grade and one column per feature."),
    ("SELECT 1 AS query_id, 2 AS doc_id, 0 AS grade, 1 AS feature_1, 1 AS feature_3",
     ": no column 'feature_2'; found query_id, doc_id, grade, feature_1, feature_3. "
     "Expected query_id, doc_id, grade and one column per feature."),
    ("SELECT 1 AS query_id, unnest([2, NULL]) AS doc_id, 0 AS grade, 1 AS feature_1",
     ", row 2: doc_id is missing. Every row needs one."),
    ("SELECT 1 AS query_id, unnest([2, 3]) AS doc_id, unnest([2, NULL]) AS grade, 1 AS feature_1",
     ", row 2, column 'grade': expected a whole number from 0 to 127."),
    ("SELECT 1 AS query_id, 2 AS doc_id, 0 AS grade, 'nan'::FLOAT AS feature_1",
     ", row 1, column 'feature_1': missing, and here every value is needed."),
    ("SELECT unnest([1, 2, 1]) AS query_id, unnest([1, 2, 3]) AS doc_id, 0 AS grade, 1 AS feature_1",
     ", row 3: query 1 already ended above. Sort the rows by query_id."),
    ("SELECT 1 AS query_id, unnest([4, 5, 4]) AS doc_id, 0 AS grade, 1 AS feature_1",
     ", row 3: document 4 appears twice in query 1. Remove one."),
    ("SELECT 1 AS query_id, 2 AS doc_id, 'good' AS grade, 1 AS feature_1",
     ", row 1, column 'grade': expected a whole number from 0 to 127."),
    ("SELECT 1 AS query_id, 2 AS doc_id, 1.5 AS grade, 1 AS feature_1",
     ", row 1, column 'grade': expected a whole number from 0 to 127."),
    ("SELECT 1 AS query_id, 2 AS doc_id, 0 AS grade, 'x' AS feature_1",
     ", row 1, column 'feature_1': 'x' found, expected a finite number of single precision. "
     "Every column besides query_id, doc_id and grade is a feature."),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "message"), WRONG_FILES)
def test_a_wrong_file_is_refused(tmp_path: Path, sql: str, message: str) -> None:
    path = tmp_path / "train.parquet"
    duckdb.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}{message}')}$"):
        read_features(path)


def test_a_file_without_features_is_refused_with_or_without_grades(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("query_id,doc_id,grade\n1,1,0\n")
    expected = (
        f"{tmp_path / 'f.csv'}: no features; found query_id, doc_id, grade. "
        "Expected query_id, doc_id and one column per feature."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        open_features(tmp_path / "f.csv")


def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    path.write_text("query_id,doc_id")
    message = (
        f"{path}: cannot be read: No magic bytes found at end of file '{path}'. "
        "The file may be damaged or cut off; write it again."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_features(path)


ROWS = """
SELECT unnest(['red shoes', 'red shoes', 'hats']) AS query_id, unnest(['a', 'b', 'a']) AS doc_id,
       unnest([0.5, NULL, 2]) AS bm25_title, unnest([1, 2, 3]) AS "age, days"
"""
FORMATS = {
    "f.parquet": "FORMAT parquet",
    "f.csv": "FORMAT csv, HEADER",
    "f.csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
    "f.ndjson": "FORMAT json",
}


@pytest.mark.parametrize("file", FORMATS)
def test_features_have_their_own_names_and_gaps_in_every_format(tmp_path: Path, file: str) -> None:
    duckdb.execute(f"COPY ({ROWS}) TO '{tmp_path / file}' ({FORMATS[file]})")
    split = open_features(tmp_path / file)
    assert split.feature_names == ("bm25_title", "age, days")
    np.testing.assert_array_equal(split.features, np.array([[0.5, 1], [np.nan, 2], [2, 3]], np.float32))
    assert (split.query_id.tolist(), split.doc_id.tolist()) == (["red shoes", "hats"], ["a", "b", "a"])


def test_named_features_with_gaps_come_back_from_a_file(tmp_path: Path) -> None:
    features = np.array([[0.5, 1], [np.nan, 2], [2, 3], [4, 5], [6, np.nan]], np.float32)
    split = small_split(features=features, feature_names=("bm25 title", "ctr"))
    write_features(split, tmp_path / "f.parquet")
    again = read_features(tmp_path / "f.parquet", gaps=True)
    assert again.feature_names == split.feature_names
    np.testing.assert_array_equal(again.features, features)


def test_numbered_features_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    columns = ", ".join(f"{i} AS feature_{i}" for i in (2, 10, 1, *range(3, 10)))
    duckdb.execute(f"COPY (SELECT 1 AS query_id, 2 AS doc_id, {columns}) TO '{tmp_path / 'f.parquet'}'")
    assert open_features(tmp_path / "f.parquet").features.tolist() == [[*range(1, 11)]]


@pytest.mark.parametrize(("cell", "expected"), [("high", "'high'"), ("1e39", "'1e39'"), ("inf", "'inf'")])
def test_a_cell_that_is_not_a_number_is_not_taken_as_missing(tmp_path: Path, cell: str, expected: str) -> None:
    (tmp_path / "f.csv").write_text(f"query_id,doc_id,bm25\n1,1,\n1,2,{cell}\n")
    with pytest.raises(InputError) as caught:
        open_features(tmp_path / "f.csv")
    assert str(caught.value) == (
        f"{tmp_path / 'f.csv'}, row 2, column 'bm25': {expected} found, expected a finite number of single precision. "
        "Every column besides query_id, doc_id and grade is a feature."
    )


def test_features_in_another_order_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("query_id,ctr,doc_id,bm25\n1,0.5,1,7\n1,,2,8\n")
    split = open_features(tmp_path / "f.csv", names=("bm25", "ctr"))
    np.testing.assert_array_equal(split.features, np.array([[7, 0.5], [8, np.nan]], np.float32))
    assert split.feature_names == ("bm25", "ctr")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ("bm25", "age", "ctr", "size"),
            ": the feature 'age' is missing (and 1 more). Found ctr, bm25. Use the features the ranker was trained on.",
        ),
        (
            ("bm25",),
            ": the ranker was not trained on the feature 'ctr'. Remove the column, or train on it. "
            "The ranker takes bm25.",
        ),
    ],
)
def test_a_missing_or_extra_feature_is_named(tmp_path: Path, names: tuple[str, ...], expected: str) -> None:
    (tmp_path / "f.csv").write_text("query_id,ctr,doc_id,bm25\n1,0.5,1,7\n")
    with pytest.raises(InputError) as caught:
        open_features(tmp_path / "f.csv", names=names)
    assert str(caught.value) == f"{tmp_path / 'f.csv'}{expected}"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a", "grade"), "A feature cannot be called 'grade': the name is already taken. Rename the feature."),
        (("a", "a"), "A feature cannot be called 'a': the name is already taken. Rename the feature."),
        (("a",), "1 feature names for 2 features: expected one name per feature."),
    ],
)
def test_names_that_do_not_name_the_features_are_refused(names: tuple[str, ...], expected: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        small_split(features=np.zeros((5, 2), np.float32), feature_names=names)


def test_a_split_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        small_split().grade[0] = 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"offsets": np.array([0, 2, 4])}, "offsets must go from 0 to the 5 documents, one more than the queries."),
        ({"doc_id": np.arange(4)}, "doc_id and features must have one row for each of the 5 documents."),
    ],
)
def test_columns_that_do_not_fit_are_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        small_split(**changed)


def test_a_part_has_its_own_rows() -> None:
    part = small_split().part(1, 2)
    assert (part.query_id.tolist(), part.offsets.tolist(), part.doc_id.tolist()) == ([3], [0, 3], ["a", "", "né\n'"])
    assert part.features[0, 0] == np.float32(40 / 7)
    assert part.query.tolist() == [0, 0, 0]


@given(st.lists(st.integers(0, 4)))
def test_a_scattered_query_is_found_where_it_comes_back(query: list[int]) -> None:
    back = [i for i in range(1, len(query)) if query[i] != query[i - 1] and query[i] in query[: i - 1]]
    assert row_of_scattered_query(np.array(query, np.int64)) == (back[0] if back else None)


@given(st.lists(st.integers(0, 2)))
def test_offsets_cut_at_every_change(query: list[int]) -> None:
    cuts = [i for i in range(len(query)) if i == 0 or query[i] != query[i - 1]]
    assert offsets_of(np.array(query, np.int64)).tolist() == [*cuts, len(query)]


@pytest.mark.parametrize(("largest", "above"), [(4, [0, 0, 0, 1, 1]), (3, [0, 0, 1, 1, 1]), (2, [0, 0, 1, 1, 1])])
def test_binarized_is_above_half_of_the_largest_grade(largest: int, above: list[int]) -> None:
    assert binarized(np.arange(5, dtype=np.int8), largest_grade=largest).tolist() == above


def test_graded_is_the_share_of_the_largest_grade() -> None:
    assert graded(np.arange(3, dtype=np.int8), largest_grade=2).tolist() == [0, 0.5, 1]
