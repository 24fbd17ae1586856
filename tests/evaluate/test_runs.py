"""TREC runs: the text, the order of ties, what trec_eval makes of it, and ids that do not fit."""

import importlib
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickmix.errors import InputError, SettingError
from clickmix.evaluate import trec_run

pytrec_eval: Any = importlib.import_module("pytrec_eval")  # it has no types


def test_a_run_has_queries_ascending_and_best_documents_first() -> None:
    text = trec_run([10, 9, 10, 9], ["a", "a", "b", "c"], [0.1, -2, 1e-7, float("inf")], tag="mbc-1")
    assert text == (
        "9 Q0 c 1 inf mbc-1\n"
        "9 Q0 a 2 -2.0 mbc-1\n"
        "10 Q0 a 1 0.1 mbc-1\n"
        "10 Q0 b 2 1e-07 mbc-1\n"
    )  # fmt: skip


def test_tied_documents_are_in_the_order_trec_eval_gives_them() -> None:
    documents = [9, 10, 100, 2]
    lines = trec_run([0] * 4, documents, [1.0] * 4).splitlines()
    assert [line.split()[2] for line in lines] == ["9", "2", "100", "10"]  # as text, from last to first
    assert [reciprocal_rank(str(document), documents) for document in documents] == [1, 1 / 4, 1 / 3, 1 / 2]


def reciprocal_rank(relevant: str, documents: list[int]) -> float:
    """Where trec_eval finds the one relevant document when all scores are the same."""
    judged = {"0": {str(document): int(str(document) == relevant) for document in documents}}
    run = {"0": {str(document): 1.0 for document in documents}}
    return float(pytrec_eval.RelevanceEvaluator(judged, ["recip_rank"]).evaluate(run)["0"]["recip_rank"])


def test_the_order_of_rows_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    queries, documents, scores = np.repeat(np.arange(12), 20), np.tile(np.arange(20), 12), rng.integers(0, 5, 240)
    order = rng.permutation(240)
    assert trec_run(queries[order], documents[order], scores[order]) == trec_run(queries, documents, scores)


words = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=5)
documents_with_scores = st.lists(
    st.tuples(words, words, st.floats(allow_nan=False)), unique_by=lambda row: row[:2], min_size=1, max_size=20
)


@settings(deadline=None)
@given(documents_with_scores)
def test_a_run_read_back_is_what_went_in(rows: list[tuple[str, str, float]]) -> None:
    text = trec_run(*(list(column) for column in zip(*rows, strict=True)))
    lines = [line.split(" ") for line in text.removesuffix("\n").split("\n")]
    assert sorted((query, document, float(s)) for query, _, document, _, s, _ in lines) == sorted(rows)


def test_no_documents_give_an_empty_run() -> None:
    assert trec_run([], [], []) == ""


BLANKS = (
    "does not fit into a TREC run, whose columns are separated by blanks. "
    "Write a table instead: choose a name ending in .parquet or .csv."
)


@pytest.mark.parametrize(
    ("queries", "documents", "scores", "message"),
    [
        (["red shoes"], ["a"], [1], f"query_ids: 'red shoes' {BLANKS}"),
        ([1], ["a\tb"], [1], f"doc_ids: 'a\\tb' {BLANKS}"),
        ([1], ["a\u2028b"], [1], f"doc_ids: 'a\\u2028b' {BLANKS}"),
        ([1], [""], [1], f"doc_ids: '' {BLANKS}"),
        ([1, 1], [5, 5], [1, 2], "Document '5' appears twice in query '1'. Give each document of a query one score."),
        ([1], [1.5], [1], "doc_ids: ids of type float64, expected text or whole numbers."),
        ([1, 2], [1], [1], "2 query ids, 1 document ids, 1 scores: expected one of each per document."),
        (
            [1],
            [1],
            [float("nan")],
            "scores, document 0 (from 0): nan is not a number. Check where it comes from.",
        ),
    ],
)
def test_what_does_not_fit_into_a_run_is_refused(queries: Any, documents: Any, scores: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        trec_run(queries, documents, scores)


@pytest.mark.parametrize("tag", ["", "my run", "a\n"])
def test_a_tag_with_blanks_is_refused(tag: str) -> None:
    message = f"tag: {tag!r} found, expected text without blanks: they separate the columns of a run."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        trec_run([1], [1], [1], tag=tag)
