"""Sessions from the columns of a click log."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickmix.errors import InputError
from clickmix.lab.users import SessionLog, Sessions, sessions_from_columns
from clickmix.lab.users.sessions import last_click_above

Row = tuple[Any, Any, Any, Any, Any]  # query_id, doc_id, position, clicked, session_id
ROWS: list[Row] = [
    ("cats", "a", 2, 1, 7),
    ("cats", "b", 1, 0, 7),
    ("dogs", "a", 1, 1, 5),
    ("cats", "b", 1, 1, 3),
    ("cats", "a", 2, 0, 3),
    ("dogs", "c", 1, 0, 3),
]


def from_rows(rows: list[Row]) -> SessionLog:
    return sessions_from_columns(*zip(*rows, strict=True))


def as_rows(log: SessionLog) -> set[Row]:
    """Back to rows, one at a time."""
    rows = set()
    for s, (documents, clicks) in enumerate(zip(log.sessions.documents, log.sessions.clicks, strict=True)):
        for k, code in enumerate(documents):
            if code >= 0:
                ids = log.query_id.tolist()[code], log.doc_id.tolist()[code]
                rows.add((*ids, k + 1, int(clicks[k]), log.session_id.tolist()[s]))
    return rows


def test_a_session_is_a_list_of_one_query_in_the_order_of_its_positions() -> None:
    log = from_rows(ROWS)
    assert log.session_id.tolist() == [3, 3, 5, 7]
    assert log.query_id.tolist() == ["cats", "cats", "dogs", "dogs"]
    assert log.doc_id.tolist() == ["a", "b", "a", "c"]
    assert log.sessions.documents.tolist() == [[1, 0], [3, -1], [2, -1], [1, 0]]
    assert log.sessions.clicks.tolist() == [[True, False], [False, False], [True, False], [False, True]]
    assert len(log.sessions.lists) == 3


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Any sessions of any queries, with ids as text or numbers, in any order of rows."""
    ids = draw(st.sampled_from([st.text("abcé猫 ", max_size=3), st.integers(-(2**62), 2**62)]))
    pages = draw(st.dictionaries(st.tuples(ids, ids), st.integers(1, 4), min_size=1, max_size=6))
    rows = [
        (query, draw(ids), position, draw(st.integers(0, 1)), session)
        for (session, query), length in pages.items()
        for position in range(1, length + 1)
    ]
    return draw(st.permutations(rows))


@settings(max_examples=40, deadline=None)
@given(logs())
def test_nothing_is_lost(rows: list[Row]) -> None:
    assert as_rows(from_rows(rows)) == set(rows)


def test_counts_of_lists() -> None:
    counts = from_rows(ROWS).sessions.counts()
    assert sorted(counts.impressions.tolist()) == [1, 1, 2]
    assert counts.clicks[counts.impressions == 2].tolist() == [[1, 1]]


def test_last_click_above() -> None:
    clicks = np.array([[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]], dtype=bool)
    assert last_click_above(clicks).tolist() == [[0, 1, 1, 3], [0, 0, 0, 0], [0, 1, 2, 2]]


def test_objects_as_ids() -> None:
    columns: list[Any] = [list(column) for column in zip(*ROWS, strict=True)]
    columns[0] = np.array(columns[0], dtype=object)
    assert as_rows(sessions_from_columns(*columns)) == set(ROWS)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [("q", "a", 1, 0, 7), ("q", "b", 3, 0, 7)],
            "Session 7, query 'q': no document at position 2, but one at position 3. A session needs its whole list, "
            "from position 1 without gaps.",
        ),
        (
            [("q", "a", 2, 0, 7)],
            "Session 7, query 'q': no document at position 1, but one at position 2. A session needs its whole list, "
            "from position 1 without gaps.",
        ),
        (
            [("q", "a", 1, 0, "s"), ("q", "b", 1, 0, "s"), ("q", "c", 2, 0, "s")],
            "Session 's', query 'q': position 1 holds two documents. A session is one result list: give every list "
            "its own session_id.",
        ),
        (
            [("q", "a", 1, 0, 7), ("q", "b", 0, 0, 7)],
            "Row 2, column 'position': found 0, expected a whole number from 1.",
        ),
        ([("q", "a", 1.5, 0, 7)], "Row 1, column 'position': found 1.5, expected a whole number from 1."),
        ([("q", "a", 1, 2, 7)], "Row 1, column 'clicked': found 2, expected 0 or 1."),
        ([("q", "a", 1, float("nan"), 7)], "Row 1, column 'clicked': found nan, expected a value."),
        ([("q", "a", 1, 0, 7), (None, "b", 2, 0, 7)], "Row 2, column 'query_id': found None, expected a value."),
        ([("q", "a", "1", 0, 7)], "Column 'position' holds <U1 values, expected numbers."),
    ],
)
def test_rows_that_are_no_sessions_are_refused(rows: list[Row], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        from_rows(rows)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([], [], [], [], []), "The log has no rows, so there are no sessions in it."),
        (
            (["q"], ["a", "b"], [1], [0], [7]),
            "The columns of a log must be equally long, one entry per row: found shapes query_id (1,), doc_id (2,), "
            "position (1,), clicked (1,), session_id (1,).",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: tuple[list[Any], ...], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        sessions_from_columns(*columns)


def test_sessions_of_shapes_that_do_not_fit_are_refused() -> None:
    message = (
        "lists has shape (1, 2), seen (3,) and clicks (3, 1). Expected (lists, positions), (sessions,) and "
        "(sessions, positions)."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        Sessions(lists=np.zeros((1, 2), dtype=int), seen=np.zeros(3, dtype=int), clicks=np.zeros((3, 1), dtype=bool))
