"""Scores, grades and query ids that cannot be evaluated, and the whole message for each."""

import math
import re
from typing import Any

import pytest

from clickmix.errors import InputError, SettingError
from clickmix.evaluate import evaluate, query_index

EACH = "expected one of each per document."


@pytest.mark.parametrize(
    ("scores", "grades", "query_ids", "message"),
    [
        (
            [1.0, float("nan")],
            [0, 1],
            [0, 0],
            "scores, document 1 (from 0): nan is not a number. Check where it comes from.",
        ),
        ([1], [math.nan], [0], "grades, document 0 (from 0): nan is not a number. Check where it comes from."),
        (
            [1, 2],
            [0, -1],
            [0, 0],
            "grades, document 1 (from 0): -1 found, expected 0 (not relevant) or more. "
            "Leave documents without a judgement out, or use grade 0.",
        ),
        (
            [1],
            [math.inf],
            [0],
            "grades, document 0 (from 0): inf found, expected 0 (not relevant) or more. "
            "Leave documents without a judgement out, or use grade 0.",
        ),
        ([1, 2], [1], [0, 0], f"2 scores, 1 grades and 2 query ids: {EACH}"),
        ([1, 2], [1, 1], [0], f"2 scores, 2 grades and 1 query ids: {EACH}"),
        ([], [], [], "No documents: expected at least one score with its grade and query id."),
        ([[1]], [1], [0], "scores: 2 dimensions, expected one number per document."),
        (["1"], [1], [0], "scores: values of type <U1, expected one number per document."),
        ([1], [1], [[0]], "query_ids: 2 dimensions, expected one id per document."),
        ([1], [1], [0.5], "query_ids: ids of type float64, expected text or whole numbers."),
        ([1, 2], [1, 0], [None, "a"], "query_ids: ids of type object, expected text or whole numbers."),
        (
            [1, 2],
            [1000, 0],
            [0, 0],
            "grades: 1000 found; the exponential gain 2^grade - 1 is for grades up to 900. "
            "Use gain=linear, as in ndcg@10:gain=linear.",
        ),
        (
            [1, 2],
            [0, 0],
            [0, 1],
            "ndcg@10: none of the 2 queries has a document with a grade above 0: there is nothing to average. "
            "Give grades of such documents; in Python, no_relevant='zero' counts these queries.",
        ),
    ],
)
def test_bad_input_is_refused_with_the_place_and_what_to_do(
    scores: Any, grades: Any, query_ids: Any, message: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        evaluate(scores, grades, query_ids)


def test_the_message_names_the_grade_that_counts_as_relevant() -> None:
    message = "mrr:grade=2: none of the 1 queries has a document with grade 2 or more: there is nothing to average. "
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        evaluate([1], [1], [0], measure="mrr:grade=2")


def test_an_unknown_choice_for_queries_without_relevant_documents_is_refused() -> None:
    unknown: Any = "skip"
    message = "no_relevant: 'skip' found, expected one of leave-out, zero, one."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        evaluate([1], [1], [0], no_relevant=unknown)


EXPECTED_OFFSETS = "offsets: expected whole numbers from 0 to the number of documents, for instance [0, 2, 5]."


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0], EXPECTED_OFFSETS),
        ([1, 3], EXPECTED_OFFSETS),
        ([0.0, 2.0], EXPECTED_OFFSETS),
        ([0, 2, 2], "offsets, query 1: starts at 2 and ends at 2, so it has no documents. Leave such queries out."),
        ([0, 2, 1], "offsets, query 1: starts at 2 and ends at 1, so it has no documents. Leave such queries out."),
    ],
)
def test_offsets_that_do_not_rise_from_0_are_refused(offsets: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        query_index(offsets)
