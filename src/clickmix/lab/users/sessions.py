"""Sessions: which result list each person saw, and their clicks.   columns of a click log -> sessions"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clickmix.corrections.click_models.reading import ReadingCounts
from clickmix.errors import InputError
from clickmix.types import Floats, Ints

Booleans = npt.NDArray[np.bool_]

PAST_THE_END = -1


@dataclass(frozen=True, eq=False)
class Sessions:
    """One row per session: the list it saw, and whether each position of that list was clicked.

    `lists` (lists, positions) has document codes, one code per query and document, -1 past the end of a shorter list;
    `seen` (sessions,) is the row of `lists` that each session saw; `clicks` (sessions, positions) is True for a click.
    Many sessions see the same list, so this stays small.

    >>> from clickmix.lab.users import PositionBased
    >>> user = PositionBased.with_eta(1, positions=2)
    >>> user.simulate([[1.0, 0.0]], sessions=5, rng=np.random.default_rng(0)).clicks.shape
    (5, 2)
    """

    lists: Ints
    seen: Ints
    clicks: Booleans

    def __post_init__(self) -> None:
        if self.lists.ndim != 2 or self.clicks.shape != (len(self.seen), self.lists.shape[1]):
            raise InputError(
                f"lists has shape {self.lists.shape}, seen {self.seen.shape} and clicks {self.clicks.shape}. "
                "Expected (lists, positions), (sessions,) and (sessions, positions)."
            )
        for column in (self.lists, self.seen, self.clicks):
            column.setflags(write=False)

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def positions(self) -> int:
        """Length of the longest list."""
        return int(self.lists.shape[1])

    @property
    def documents(self) -> Ints:
        """(sessions, positions): the document code at each position of each session, -1 past the end."""
        return self.lists[self.seen]

    def take(self, rows: Ints | Booleans | slice) -> Sessions:
        """The sessions of these rows (indices, a mask or a slice), over the same lists."""
        return Sessions(lists=self.lists, seen=self.seen[rows], clicks=self.clicks[rows])

    def counts(self) -> ListCounts:
        """How often each list was seen, and each of its positions clicked."""
        impressions = np.bincount(self.seen, minlength=len(self.lists))
        clicks = np.zeros(self.lists.shape, dtype=np.int64)
        for k in range(self.positions):
            clicks[:, k] = np.bincount(self.seen[self.clicks[:, k]], minlength=len(self.lists))
        return ListCounts(impressions=impressions, clicks=clicks)

    def reading_counts(self, cells: Ints) -> ReadingCounts:
        """Counts to fit people who read from the top; `cells` (lists, positions) is the cell of a click there.

        Refuses a log without clicks.
        """
        K, L = self.positions, len(self.lists)
        clicks = self.counts().clicks
        check_clicked(int(clicks.sum()))
        last_click = (self.clicks * np.arange(1, K + 1)).max(axis=1)
        last = np.bincount(last_click * L + self.seen, minlength=(K + 1) * L).reshape(K + 1, L)
        return ReadingCounts(
            documents=np.ascontiguousarray(self.lists.T),
            cells=np.ascontiguousarray(cells.T),
            clicks=np.ascontiguousarray(clicks.T, dtype=np.float64),
            last=last.astype(np.float64),
            number_of_documents=int(self.lists.max()) + 1,
            number_of_cells=int(cells.max()) + 1,
        )


@dataclass(frozen=True, eq=False)
class ListCounts:
    """`impressions` (lists,): how often each list was seen; `clicks` (lists, positions): clicks on each position.

    >>> one = ListCounts(impressions=np.array([3]), clicks=np.array([[2, 1]]))
    >>> (one + one).clicks.tolist()
    [[4, 2]]
    """

    impressions: Ints
    clicks: Ints

    def __add__(self, other: ListCounts) -> ListCounts:
        """Counts of both together, over the same lists."""
        return ListCounts(impressions=self.impressions + other.impressions, clicks=self.clicks + other.clicks)


@dataclass(frozen=True, eq=False)
class SessionLog:
    """Sessions read from a log, with the log's ids.

    `query_id` and `doc_id` have one entry per document code, `session_id` one per session. `clicks_elsewhere` counts
    clicks on documents that the session was not shown; `sessions` leaves them out.

    >>> log = sessions_from_columns(["q", "q"], ["a", "b"], [1, 2], [0, 1], [7, 7])
    >>> log.doc_id.tolist(), log.clicks_elsewhere
    (['a', 'b'], 0)
    """

    sessions: Sessions
    query_id: npt.NDArray[Any]
    doc_id: npt.NDArray[Any]
    session_id: npt.NDArray[Any]
    clicks_elsewhere: int = 0


def concatenate(parts: Iterable[Sessions]) -> Sessions:
    """One `Sessions` from several over the same lists."""
    parts = list(parts)
    # Position by position, as in the simulation, so that a column of clicks is contiguous.
    clicks = np.concatenate([part.clicks.T for part in parts], axis=1).T
    return Sessions(lists=parts[0].lists, seen=np.concatenate([part.seen for part in parts]), clicks=clicks)


def totals(index: Ints, weights: npt.NDArray[Any], *, size: int) -> Floats:
    """Sum of the weights with each index 0 ... size-1."""
    return np.bincount(index, weights=weights, minlength=size).astype(np.float64)


def check_clicked(clicks: int) -> None:
    """Refuse a log without clicks, which says nothing about people."""
    if clicks == 0:
        raise InputError("There is no click in these sessions, so no user model can be fitted to them.")


def last_click_above(clicks: Booleans) -> Ints:
    """(sessions, positions): position, from 1, of the nearest click above each position; 0 if there is none."""
    above = np.zeros(clicks.shape, dtype=np.int64)
    positions = np.arange(1, clicks.shape[1])
    above[:, 1:] = np.maximum.accumulate(np.where(clicks[:, :-1], positions, 0), axis=1)
    return above


def sessions_from_columns(
    query_id: npt.ArrayLike,
    doc_id: npt.ArrayLike,
    position: npt.ArrayLike,
    clicked: npt.ArrayLike,
    session_id: npt.ArrayLike,
) -> SessionLog:
    """Sessions from the columns of a click log, one row per document shown, in any order.

    A session is one result list: the rows with the same `session_id` and the same `query_id`. Its positions must be
    1, 2, 3 ... without a gap. Sessions are sorted by `session_id` and `query_id`.

    >>> log = sessions_from_columns(["q", "q"], ["a", "b"], [1, 2], [0, 1], [7, 7])
    >>> log.sessions.clicks.tolist()
    [[False, True]]
    """
    columns = [np.asarray(column) for column in (query_id, doc_id, position, clicked, session_id)]
    _check_columns(columns)
    queries, query = np.unique(columns[0], return_inverse=True)
    docs, doc = np.unique(columns[1], return_inverse=True)
    sessions, session = np.unique(columns[4], return_inverse=True)
    position, clicked = columns[2].astype(np.int64), columns[3].astype(np.bool_)

    order = np.lexsort((position, query, session))
    query, doc, session, position, clicked = (c[order] for c in (query, doc, session, position, clicked))
    starts = np.flatnonzero(np.r_[True, (np.diff(session) != 0) | (np.diff(query) != 0)])
    page = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(order)]))
    expected = np.arange(len(order)) - starts[page] + 1
    _check_positions(position, expected=expected, queries=queries[query], sessions=sessions[session])

    pairs, code = np.unique(query * len(docs) + doc, return_inverse=True)
    shape = (len(starts), int(position.max()))
    documents = np.full(shape, PAST_THE_END, dtype=np.int64)
    documents[page, position - 1] = code
    clicks = np.zeros(shape, dtype=np.bool_)
    clicks[page, position - 1] = clicked
    lists, seen = _distinct_rows(documents)
    return SessionLog(
        sessions=Sessions(lists=lists, seen=seen, clicks=clicks),
        query_id=queries[pairs // len(docs)],
        doc_id=docs[pairs % len(docs)],
        session_id=sessions[session[starts]],
    )


def _distinct_rows(matrix: Ints) -> tuple[Ints, Ints]:
    """The distinct rows of `matrix`, and for each row which of them it is; the order of distinct rows is arbitrary."""
    matrix = np.ascontiguousarray(matrix)
    rows = matrix.view(np.dtype((np.void, matrix.itemsize * matrix.shape[1]))).ravel()
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    return matrix[first], which


def _check_columns(columns: list[npt.NDArray[Any]]) -> None:
    names = ("query_id", "doc_id", "position", "clicked", "session_id")
    lengths = {column.shape for column in columns}
    if len(lengths) > 1 or columns[0].ndim != 1:
        shapes = ", ".join(f"{name} {column.shape}" for name, column in zip(names, columns, strict=True))
        raise InputError(f"The columns of a log must be equally long, one entry per row: found shapes {shapes}.")
    if columns[0].size == 0:
        raise InputError("The log has no rows, so there are no sessions in it.")
    _, _, position, clicked, _ = columns
    for name, column in zip(names, columns, strict=True):
        _refuse_first(_missing(column), column, name, "a value")
    for name, column in (("position", position), ("clicked", clicked)):
        if column.dtype.kind not in "biuf":
            raise InputError(f"Column '{name}' holds {column.dtype} values, expected numbers.")
    _refuse_first(~(position == np.floor(position)) | (position < 1), position, "position", "a whole number from 1")
    _refuse_first(~((clicked == 0) | (clicked == 1)), clicked, "clicked", "0 or 1")


def _missing(column: npt.NDArray[Any]) -> Booleans:
    if column.dtype.kind == "O":
        return np.array([value is None for value in column], dtype=np.bool_)
    return np.asarray(column != column, dtype=np.bool_)  # only NaN differs from itself


def _refuse_first(bad: Booleans, column: npt.NDArray[Any], name: str, expected: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise InputError(f"Row {row + 1}, column '{name}': found {_plain(column[row])!r}, expected {expected}.")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _check_positions(position: Ints, *, expected: Ints, queries: npt.NDArray[Any], sessions: npt.NDArray[Any]) -> None:
    """Refuse repeated and missing positions. They are sorted within a page, so the first wrong one shows which."""
    wrong = position != expected
    if not wrong.any():
        return
    row = int(wrong.argmax())
    where = f"Session {_plain(sessions[row])!r}, query {_plain(queries[row])!r}"
    if position[row] < expected[row]:
        raise InputError(
            f"{where}: position {position[row]} holds two documents. "
            "A session is one result list: give every list its own session_id."
        )
    raise InputError(
        f"{where}: no document at position {expected[row]}, but one at position {position[row]}. "
        "A session needs its whole list, from position 1 without gaps."
    )
