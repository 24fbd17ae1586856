"""Examples: how features and labels are joined, what is left out, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clickmix as cm
from clickmix.features import LeftOut, Split, grade_examples, make_examples, open_features, write_features
from clickmix.features.split import default_names
from collections_rankers import all_labels, split


def frame(labels: tuple[Any, Any, Any]) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(("query_id", "doc_id", "relevance"), labels, strict=True)))


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("layout", ["arrays", "mapping", "pandas", "polars", "duckdb", "parquet", "csv", "ndjson"])
def test_every_layout_of_labels_gives_the_same_examples(tmp_path: Path, layout: str, text: bool) -> None:
    documents = split(sizes=[3, 2, 4], text=text)
    if text:  # text that does not look like numbers, so that CSV keeps it as text
        named = np.char.add("d", np.asarray(documents.doc_id))
        documents = replace(documents, query_id=np.char.add("q", np.asarray(documents.query_id)), doc_id=named)
    arrays = all_labels(documents)
    pandas = frame(arrays)
    path = tmp_path / f"labels.{layout}"
    if layout in ("parquet", "csv", "ndjson"):
        duckdb.from_df(pandas).query("t", f"COPY t TO '{path}' (FORMAT {layout.replace('nd', '')})")
    labels: Any = {
        "arrays": arrays,
        "mapping": dict(pandas),
        "pandas": pandas,
        "polars": pl.DataFrame({column: pandas[column].tolist() for column in pandas}),
        "duckdb": duckdb.from_df(pandas),
    }.get(layout, path)
    found = make_examples(documents, labels)
    assert found.relevance.tolist() == arrays[2].tolist()
    assert found.features.tolist() == documents.features.tolist()
    assert found.left_out == LeftOut()


LARGE = np.array([1, 2**63 + 5, 2**63 + 6], np.uint64)  # the last two are one number as reals, or negative as int64


@pytest.mark.parametrize("layout", ["arrays", "pandas", "polars", "parquet", "csv", "ndjson", "Labels"])
def test_ids_beyond_int64_are_joined_as_they_are(tmp_path: Path, layout: str) -> None:
    documents = replace(split(sizes=[2, 2, 2]), query_id=LARGE)
    write_features(documents, tmp_path / "features.parquet")
    query, document, _ = all_labels(documents)
    log = {"query_id": query, "doc_id": document, "position": [1, 2] * 3, "clicked": [1, 0] * 3}
    labels = cm.debias(pd.DataFrame(log), correction="none")
    assert isinstance(labels, pd.DataFrame)
    path = tmp_path / f"labels.{layout}"
    if layout in ("parquet", "csv", "ndjson"):
        duckdb.from_df(labels).query("t", f"COPY t TO '{path}' (FORMAT {layout.replace('nd', '')})")
    given: Any = {
        "arrays": (labels["query_id"], labels["doc_id"], labels["relevance"]),
        "pandas": labels,
        "polars": pl.DataFrame({column: labels[column].to_numpy() for column in labels}),
        "Labels": cm.debias(cm.count(pd.DataFrame(log)), correction="none"),
    }.get(layout, path)
    found = make_examples(tmp_path / "features.parquet", given)
    assert found.query_id.tolist() == LARGE.tolist()
    assert found.relevance.tolist() == [1, 0] * 3
    assert found.left_out == LeftOut()


@pytest.mark.parametrize("query", [LARGE, LARGE[:1].astype(np.int64), np.array([-(2**63) + 5, 2])])
def test_a_negative_id_is_no_large_one(query: Any) -> None:
    documents = replace(split(sizes=[2]), query_id=np.array([1]))
    labels = (np.repeat(query, 2), [1, 2] * len(query), [0.5, 0.25] * len(query))
    assert make_examples(replace(documents, query_id=query[:1]), labels).queries == 1
    other = replace(documents, query_id=np.array([2**63 - 1 if query[0] == 1 else 2**63 + 5], np.uint64))
    with pytest.raises(cm.InputError, match="no label matches a document of the features"):
        make_examples(other, labels)


def test_labels_of_a_correction_are_taken_as_they_are() -> None:
    counts = cm.Counts.from_arrays([1, 1, 2, 2], [1, 2, 3, 4], [1, 2, 1, 2], [10] * 4, [5, 1, 4, 0])
    found = make_examples(split(sizes=[2, 2]), cm.debias(counts, correction="none"))
    assert found.relevance.tolist() == [0.5, 0.1, 0.4, 0.0]


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
    share=st.floats(0.2, 1),
)
@settings(max_examples=60, deadline=None)
def test_the_join_is_that_of_a_dictionary(sizes: list[int], seed: int, share: float) -> None:
    documents, rng = split(sizes=[2, *sizes], seed=seed), np.random.default_rng(seed)
    query, document, _ = all_labels(documents)
    kept = rng.permutation(np.flatnonzero(np.r_[True, True, rng.random(len(query) - 2) < share]))
    relevance = rng.integers(0, 2, len(query)) / 1.0
    relevance[:2] = 0, 1  # the first query is always useful
    foreign = np.array([99, 99])  # labels of a query that the features do not have
    labels = (np.r_[query[kept], foreign], np.r_[document[kept], [1, 2]], np.r_[relevance[kept], [0.5, 0.5]])
    found = make_examples(documents, labels)

    known = {(q, d): r for q, d, r in zip(*(column.tolist() for column in labels), strict=True)}
    expected, one, equal, none = [], 0, 0, 0
    for i, q in enumerate(documents.query_id.tolist()):
        own = documents.doc_id[documents.offsets[i] : documents.offsets[i + 1]].tolist()
        mine = [(d, known[q, d]) for d in own if (q, d) in known]
        values = {r for _, r in mine}
        none, one = none + (not mine), one + (len(mine) == 1)
        equal += len(mine) > 1 and len(values) == 1
        expected += [(q, d, r) for d, r in mine] if len(values) > 1 else []
    rows = [d - 1 for _, d, _ in expected]
    assert found.query_id[found.query].tolist() == [q for q, _, _ in expected]
    assert found.relevance.tolist() == [r for _, _, r in expected]
    assert found.features.tolist() == documents.features[rows].tolist()
    assert found.left_out == LeftOut(
        labels_without_document=2,
        documents_without_label=documents.documents - len(kept),
        queries_without_label=none,
        queries_with_one_label=one,
        queries_with_equal_labels=equal,
    )
    assert found.left_out.queries == documents.queries - found.queries


def test_what_is_left_out_is_told_in_a_sentence() -> None:
    assert str(LeftOut(1, 2000, 3, 1, 0)) == (
        "Left out: 2,000 documents without a label, 3 queries without any label, "
        "1 query with one labelled document, 1 label whose document has no features."
    )
    assert str(LeftOut()) == "Nothing was left out."


def test_a_join_that_mostly_fails_shows_ids_of_both_sides() -> None:
    documents = (["q"] * 4, ["a", "b", "C", "D"], [[1.0], [2.0], [3.0], [4.0]])
    labels = (["q"] * 5, ["a", "b", "c", "d", "e"], [0.1, 0.9, 0.2, 0.3, 0.4])
    found = make_examples(documents, labels).left_out
    assert str(found) == (
        "Left out: 2 documents without a label, 3 labels whose document has no features. "
        "Most labels match no document. Labels without one: query / document 'q' / 'c', 'q' / 'd' (text / text); "
        "documents without a label: query / document 'q' / 'C', 'q' / 'D' (text / text)."
    )
    assert make_examples(documents, tuple(column[:4] for column in labels)).left_out.unmatched == ""


def test_grades_as_labels() -> None:
    documents = replace(split(sizes=[3, 2]), grade=np.array([0, 3, 1, 2, 2], np.int8))
    found = grade_examples(documents, largest_grade=4)
    assert found.relevance.tolist() == [0.0, 0.75, 0.25]
    assert found.left_out == LeftOut(queries_with_equal_labels=1)
    with pytest.raises(cm.InputError, match=re.escape("grade 3 found, above the largest grade 2.")):
        grade_examples(documents, largest_grade=2)


def test_features_without_grades_can_be_trained_on(tmp_path: Path) -> None:
    documents = split(sizes=[3, 2])
    write_features(documents, tmp_path / "graded.parquet")
    query = f"SELECT * EXCLUDE grade FROM '{tmp_path / 'graded.parquet'}'"
    duckdb.sql(f"COPY ({query}) TO '{tmp_path / 'features.parquet'}' (FORMAT parquet)")
    found = make_examples(tmp_path / "features.parquet", all_labels(documents))
    assert found.features.tolist() == documents.features.tolist()
    assert open_features(tmp_path / "features.parquet").grade.tolist() == [0] * 5


def test_letor_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("2 qid:7 1:0.5 2:1\n0 qid:7 1:0.25 2:2\n")
    found = make_examples(tmp_path / "train.txt", ([7, 7], [0, 1], [1.0, 0.5]))
    assert found.features.tolist() == [[0.5, 1.0], [0.25, 2.0]]


@pytest.mark.parametrize("layout", ["arrays", "pandas", "polars", "lazy"])
def test_every_layout_of_features_gives_the_same_examples(layout: str) -> None:
    documents = split(sizes=[3, 1, 4])
    scattered = np.array([3, 0, 4, 5, 1, 2, 6, 7])  # queries 2, 1, 3, 3, 1, 1, 3, 3: the first row decides the order
    query, document, _ = (column[scattered] for column in all_labels(documents))
    matrix = documents.features[scattered]
    columns = {"query_id": query, "doc_id": document} | {f"feature_{i + 1}": matrix[:, i] for i in range(3)}
    given: Any = {
        "arrays": (query, document, matrix),
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "lazy": pl.LazyFrame(columns),
    }[layout]
    opened = open_features(given)
    assert opened.query_id.tolist() == [2, 1, 3]
    assert opened.offsets.tolist() == [0, 1, 4, 8]
    assert opened.doc_id.tolist() == [4, 1, 2, 3, 5, 6, 7, 8]
    assert opened.features.tolist() == documents.features[np.asarray(opened.doc_id) - 1].tolist()
    assert make_examples(given, all_labels(documents)).relevance.tolist() == pytest.approx(
        np.delete(all_labels(documents)[2], 3).tolist()
    )


BAD_FEATURES: list[tuple[Any, str]] = [
    (7, "the features: a int found. Pass a features file, a Split, a frame, or arrays (query_id, doc_id, features)."),
    (
        ([1, 1], [1, 2], [[0.5]]),
        "the features: 2 query ids, 2 document ids, features of shape (1, 1): "
        "expected one id of each and one row per document.",
    ),
    (
        pd.DataFrame({"query_id": [1], "doc_id": [1], "feature_2": [0.5]}),
        "the features: no column 'feature_1'; found query_id, doc_id, feature_2. "
        "Expected query_id, doc_id and one column per feature.",
    ),
    (
        pd.DataFrame({"query_id": [1], "doc_id": [1], "feature_1": ["abc"]}),
        "the features, row 1, column 'feature_1': 'abc' found, expected a finite number of single precision. "
        "Every column besides query_id, doc_id and grade is a feature.",
    ),
    (
        pl.DataFrame({"query_id": [1], "doc_id": [1], "feature_1": [date(2024, 5, 1)]}),
        "the features, row 1, column 'feature_1': '2024-05-01' found, expected a finite number of single precision. "
        "Every column besides query_id, doc_id and grade is a feature.",
    ),
    (
        pd.DataFrame([[1, 1, 0.5, 0.5]], columns=["query_id", "doc_id", "feature_1", "feature_1"]),
        "the features: two columns are called 'feature_1'. Rename one of them.",
    ),
    (
        pd.DataFrame({"query_id": [1], "doc_id": [1], "grade": [1.5], "feature_1": [0.5]}),
        "the features, row 1, column 'grade': expected a whole number from 0 to 127.",
    ),
    (
        ([1, 2, 1], ["a", "a", "a"], [[0.5]] * 3),
        "the features, row 3: document a appears twice in query 1. Remove one.",
    ),
]


@pytest.mark.parametrize(("features", "expected"), BAD_FEATURES)
def test_features_that_cannot_be_used_are_refused(features: Any, expected: str) -> None:
    with pytest.raises(cm.InputError) as caught:
        open_features(features)
    assert str(caught.value) == expected


def test_the_grades_of_a_frame_are_read_and_go_with_their_documents() -> None:
    columns = {"query_id": [2, 1, 2], "doc_id": [1, 2, 3], "grade": [4, 0, 3], "feature_1": [0.5, 1.5, 2.5]}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        opened = open_features(frame, graded=True)
        assert (opened.doc_id.tolist(), opened.grade.tolist()) == ([1, 3, 2], [4, 3, 0])


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (
            pd.DataFrame({"query_id": [1], "doc_id": [1], "feature_1": [0.5]}),
            "the features: no column 'grade'; found query_id, doc_id, feature_1. "
            "Expected query_id, doc_id, grade and one column per feature.",
        ),
        (
            ([1], [1], [[0.5]]),
            "the features: arrays have no grades. Pass a Split, or a frame with a column grade.",
        ),
    ],
)
def test_where_grades_are_needed_features_without_are_refused(features: Any, expected: str) -> None:
    with pytest.raises(cm.InputError, match=f"^{re.escape(expected)}$"):
        open_features(features, graded=True)


def test_letor_text_that_does_not_name_the_last_features_is_filled_up(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("1 qid:1 1:0.5\n0 qid:1 2:3\n")
    assert open_features(tmp_path / "test.txt", names=default_names(3)).features.tolist() == [[0.5, 0, 0], [0, 3, 0]]
    assert open_features(tmp_path / "test.txt").features.tolist() == [[0.5, 0], [0, 3]]


def three() -> Split:
    return split(sizes=[3])


BAD: list[tuple[str, Any, str]] = [
    ("above one", ([1, 1, 1], [1, 2, 3], [0.5, 1.5, 0.1]),
     "the labels, row 2 (query 1, document 2): relevance 1.5 found, expected a number from 0 to 1."),
    ("below zero", ([1], [1], [-0.25]),
     "the labels, row 1 (query 1, document 1): relevance -0.25 found, expected a number from 0 to 1."),
    ("nan", ([1, 1], [1, 2], [0.5, np.nan]),
     "the labels, row 2 (query 1, document 2): relevance nan found, expected a number from 0 to 1."),
    ("twice", ([1, 1, 1, 1], [1, 2, 3, 2], [0.5, 0.2, 0.1, 0.2]),
     "the labels, rows 2 and 4: query 1, document 2 is labelled twice. Keep one label per document."),
    ("text and numbers", (["1", "1"], ["1", "2"], [0.5, 0.2]),
     "the labels: no label matches a document of the features. Labels have query / document '1' / '1', '1' / '2' "
     "(text / text); features have query / document 1 / 1, 1 / 2 (whole number / whole number). Text '7' is not the "
     "whole number 7: make the ids the same type on both sides (Parquet keeps types)."),
    ("other documents", ([1, 1], [8, 9], [0.5, 0.2]),
     "the labels: no label matches a document of the features. Labels have query / document 1 / 8, 1 / 9 "
     "(whole number / whole number); features have query / document 1 / 1, 1 / 2 (whole number / whole number). "
     "Use the same query and document ids on both sides."),
    ("none", ([], [], np.array([])), "the labels: no labels. Expected one row per query and document."),
    ("one label", ([1], [2], [0.5]),
     "No query is left to train on: a query needs two documents with different labels. Left out: 2 documents without a "
     "label, 1 query with one labelled document. Add more labels, or features of more documents."),
    ("all equal", ([1, 1, 1], [1, 2, 3], [0.5] * 3),
     "No query is left to train on: a query needs two documents with different labels. Left out: 1 query whose labels "
     "are all equal. Add more labels, or features of more documents."),
    ("lengths", ([1, 1], [1, 2], [0.5]),
     "the labels: 2 query ids, 2 document ids, 1 relevances: expected one of each per label."),
    ("two arrays", ([1, 1], [1, 2]),
     "the labels: 2 arrays found. Expected query_id, doc_id and relevance, as `clickmix debias` writes them."),
    ("text relevance", ([1], [1], ["high"]),
     "the labels: relevance has type <U4. Expected one number from 0 to 1 per label."),
    ("real ids", ([1.5], [1], [0.5]),
     "the labels: query_id has type float64. Expected text or whole numbers, one per row."),
    ("missing id", ([1, 1], np.array(["a", None], dtype=object), [0.5, 0.5]),
     "the labels, row 2: doc_id is missing. Every row needs one."),
    ("no labels at all", 7,
     "the labels: a int found. Pass a labels file, Labels, a frame, or arrays (query_id, doc_id, relevance)."),
    ("a column missing", {"query_id": [1], "doc_id": [1], "label": [0.5]},
     "the labels: no column 'relevance'. Found query_id, doc_id, label. "
     "Expected query_id, doc_id and relevance, as `clickmix debias` writes them."),
    ("no file", "no.parquet",
     "no.parquet: no such file. Check the path; folders and globs such as 'logs/*.parquet' work too."),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "expected"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_labels_that_cannot_be_used_are_refused(labels: Any, expected: str) -> None:
    with pytest.raises(cm.InputError) as caught:
        make_examples(three(), labels)
    assert str(caught.value) == expected


FILES = [
    ("query_id,doc_id,relevance\n1,1,0.5\n1,2,high\n",
     ", row 2 (query 1, document 2): relevance 'high' found, expected a number from 0 to 1."),
    ("query_id,doc_id,relevance\n1,1,0.5\n1,2,\n",
     ", row 2 (query 1, document 2): relevance nothing found, expected a number from 0 to 1."),
    ("", ": the file is empty. Expected query_id, doc_id and relevance, as `clickmix debias` writes them."),
    ("query_id,doc_id,relevance\n1,1,0.5\n1,,0.2\n", ", row 2: doc_id is missing. Every row needs one."),
    ("query_id,doc_id\n1,1\n",
     ": no column 'relevance'. Found query_id, doc_id. "
     "Expected query_id, doc_id and relevance, as `clickmix debias` writes them."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FILES)
def test_a_labels_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(cm.InputError) as caught:
        make_examples(three(), tmp_path / "labels.csv")
    assert str(caught.value) == f"{tmp_path / 'labels.csv'}{expected}"


@pytest.mark.parametrize("value", ["inf", "-inf"])
def test_infinite_features_are_refused(value: str) -> None:
    features = three().features.copy()
    features[1, 2] = float(value)
    with pytest.raises(cm.InputError) as caught:
        make_examples(replace(three(), features=features), all_labels(three()))
    assert str(caught.value) == (
        f"features of the labelled documents, row 2, column 3: the feature is {value} (rows and columns count from 1). "
        "Expected a finite number of single precision; fill gaps first."
    )


def test_examples_keep_the_names_of_features_and_their_gaps() -> None:
    features = three().features.copy()
    features[1, 2] = np.nan
    named = replace(three(), features=features, feature_names=("bm25 title", "ctr", "age"))
    found = make_examples(named, all_labels(three()))
    assert found.feature_names == ("bm25 title", "ctr", "age")
    assert np.isnan(found.features).tolist() == [[False] * 3, [False, False, True], [False] * 3]
