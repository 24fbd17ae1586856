"""Result lists and how people went from click to click in them.   counts by list -> ClickedLists

A session is a chain: from the top to its first click, from there to the next, and from the last click to the end. UBM,
DCM, DBN and SDBN need only how often each step of a chain was taken in each list. There are few steps: sessions of the
same list are counted together, whatever else they clicked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.corrections.affine_em import CodedCells
from clickmix.corrections.click_models.reading import ReadingCounts
from clickmix.corrections.click_rates import PlacedCells
from clickmix.counts.counts import Counts, mixed_clicks_query
from clickmix.engines.engine import embedded
from clickmix.errors import InputError
from clickmix.log.open import counting_lists
from clickmix.types import Floats, Ints

END = -1  # end of a chain: no further click


@dataclass(frozen=True, eq=False)
class ClickedLists:
    """Distinct result lists, and the steps from click to click that were taken in them.

    `query_id` and `doc_id` name the documents. One row per result, list by list from the top: codes from 0 of its
    `list` and `document`, and its `position`. One row per kind of step: the code of its list (`step_list`), the results
    it goes from and to, counted from 1 (`start` 0: the top; `stop` END: no further click), and how many `sessions` took
    it.
    """

    query_id: NDArray[Any]
    doc_id: NDArray[Any]
    list: Ints
    document: Ints
    position: Ints
    step_list: Ints
    start: Ints
    stop: Ints
    sessions: Floats

    @cached_property
    def first(self) -> Ints:
        """The first row of each list, and the number of rows."""
        sizes = np.bincount(self.list)
        return np.concatenate(([0], np.cumsum(sizes)))

    @cached_property
    def shape(self) -> tuple[int, int]:
        """The length of the longest list, and the number of lists."""
        return int(np.diff(self.first).max()), len(self.first) - 1

    def table(self, column: Ints, *, missing: int) -> Ints:
        """A column of results as (results, lists)."""
        found = np.full(self.shape, missing, dtype=np.int64)
        found[np.arange(len(self.list)) - self.first[self.list], self.list] = column
        return found

    def reading_counts(self, *, cells: Ints, number_of_cells: int) -> ReadingCounts:
        """For people who read from the top; `cells` codes what wanting more after a click depends on, per result.

        Counts are sums of whole sessions, so they are exact.
        """
        K, L = self.shape
        ends = self.stop == END
        at = np.where(ends, 0, (self.stop - 1) * L + self.step_list)
        last = np.bincount((self.start * L + self.step_list)[ends], self.sessions[ends], (K + 1) * L)
        return ReadingCounts(
            documents=self.table(self.document, missing=-1),
            cells=self.table(cells, missing=0),
            clicks=np.bincount(at[~ends], self.sessions[~ends], K * L).reshape(K, L),
            last=last.reshape(K + 1, L),
            number_of_documents=len(self.doc_id),
            number_of_cells=number_of_cells,
        )

    def browsing_cells(self) -> tuple[CodedCells, Ints]:
        """Impressions and clicks by document, position and position of the nearest click above (0: none).

        The places of these cells are pairs of both positions, which come second, one row each.
        """
        from scipy.sparse import coo_array  # here, because --help loads this module

        first = self.first[self.step_list]
        size = np.diff(self.first)[self.step_list]
        shown = np.where(self.stop == END, size, self.stop) - self.start  # results that a step goes over
        step = np.repeat(np.arange(len(shown)), shown)
        over = np.arange(len(step)) - np.repeat(np.cumsum(shown) - shown, shown)  # 0, 1, ... within each step
        row = first[step] + self.start[step] + over
        above = np.where(self.start > 0, self.position[np.maximum(first + self.start - 1, 0)], 0)
        clicked = (self.stop[step] != END) & (over == shown[step] - 1)
        span = int(self.position.max()) + 1
        code = self.position[row] * span + above[step]
        pairs = np.flatnonzero(np.bincount(code))
        pair = np.searchsorted(pairs, np.arange(pairs[-1] + 1))[code]
        # One pass adds up both, impressions as real and clicks as imaginary parts; sums of sessions are exact.
        shape = (len(self.doc_id), len(pairs))
        both = coo_array((self.sessions[step] * (1 + 1j * clicked), (self.document[row], pair)), shape=shape).tocsr()
        both.sort_indices()
        document = np.repeat(np.arange(shape[0]), np.diff(both.indptr))
        place = both.indices.astype(np.int64)
        found = CodedCells(self.query_id, self.doc_id, document, place, both.data.real.copy(), both.data.imag.copy())
        return found, np.stack([pairs // span, pairs % span], axis=1)


def read_clicked_lists(counts: Counts, *, correction: str) -> ClickedLists:
    """Read the lists of a log and the steps taken in them, added up in SQL."""
    engine = embedded(counts.engine, of=correction)
    _check_by_clicks(counts, correction=correction)
    tables: list[str] = []

    def keep(query: str) -> str:
        tables.append(engine.keep(query))
        return tables[-1]

    documents = keep(
        "SELECT query_id, doc_id, row_number() OVER (ORDER BY query_id, doc_id) - 1 AS document "
        f"FROM (SELECT DISTINCT query_id, doc_id FROM {counts.table})"
    )
    # A page is what sessions saw and clicked. Two sums of hashes identify what they saw, whatever they clicked.
    pages = keep(
        "SELECT query_id, list, max(impressions) AS sessions, sum(hash(position, doc_id)) AS sum_0, "
        f"sum(hash(doc_id, position)) AS sum_1 FROM {counts.by_list} GROUP BY query_id, list"
    )
    lists = keep(
        "SELECT query_id, sum_0, sum_1, list, row_number() OVER (ORDER BY query_id, list) - 1 AS number FROM "
        f"(SELECT query_id, sum_0, sum_1, min(list) AS list FROM {pages} GROUP BY query_id, sum_0, sum_1)"
    )
    results = keep(
        "SELECT number, document, position, "
        "row_number() OVER (PARTITION BY number ORDER BY position, document) AS place "
        f"FROM {counts.by_list} JOIN {lists} USING (query_id, list) JOIN {documents} USING (query_id, doc_id)"
    )
    numbered = keep(
        "SELECT row_number() OVER () - 1 AS page, query_id, pages.list, number, sessions "
        f"FROM {pages} AS pages JOIN {lists} USING (query_id, sum_0, sum_1)"
    )
    named = engine.fetch(f"SELECT query_id, doc_id FROM {documents} ORDER BY document")
    rows = engine.fetch(f"SELECT number, document, position FROM {results} ORDER BY number, place")
    seen = engine.fetch(f"SELECT page, number, sessions FROM {numbered}")
    clicked = engine.fetch(
        f"SELECT page, place FROM {counts.by_list} JOIN {numbered} USING (query_id, list) "
        f"JOIN {documents} USING (query_id, doc_id) JOIN {results} USING (number, document, position) WHERE clicks > 0"
    )
    for table in tables:
        engine.forget(table)
    number, document, position = (rows[column].astype(np.int64) for column in ("number", "document", "position"))
    of_page = np.empty((2, len(seen["page"])), dtype=np.int64)  # list and sessions; pages come in any order
    of_page[:, seen["page"]] = seen["number"], seen["sessions"]
    steps = _steps(of_page[0], of_page[1], clicked["page"].astype(np.int64), clicked["place"].astype(np.int64))
    return ClickedLists(named["query_id"], named["doc_id"], number, document, position, *steps)


def _steps(list: Ints, sessions: Ints, page: Ints, place: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """The columns of steps, in order, from the list and sessions of pages, and the page and place of clicks."""
    from scipy.sparse import coo_array  # here, because --help loads this module

    span = int(place.max(initial=0)) + 1
    page, place = np.divmod(np.sort(page * span + place), span)
    first = np.ones(len(page), dtype=np.bool_)
    first[1:] = page[1:] != page[:-1]
    start = np.where(first, 0, np.concatenate(([0], place))[:-1])
    last = np.zeros(len(list), dtype=np.int64)
    last[page] = place  # of several clicks, the lowest on the page stays
    of_list = np.concatenate([list[page], list])
    step = np.concatenate([start * (span + 1) + place + 1, last * (span + 1)])  # stops from END
    # Sums of sessions are exact.
    taken = coo_array((np.concatenate([sessions[page], sessions]).astype(np.float64), (of_list, step))).tocsr()
    taken.sort_indices()
    step_list = np.repeat(np.arange(taken.shape[0]), np.diff(taken.indptr))
    start, stop = np.divmod(taken.indices.astype(np.int64), span + 1)
    return step_list, start, stop + END, taken.data


def _check_by_clicks(counts: Counts, *, correction: str) -> None:
    """Refuse counts that do not show which clicks belong to one session."""
    how = f"Count the raw log with clickmix counts {counting_lists('clicks')}; that needs its session_id."
    if counts.by_list is None:
        raise InputError(
            f"{correction} must know which clicks belong to one session, and these counts have no result lists. {how}"
        )
    mixed = counts.engine.rows(mixed_clicks_query(counts.by_list))
    if mixed:
        ((query, position),) = mixed
        raise InputError(
            f"{correction} must know which clicks belong to one session. In these counts some sessions with the same "
            f"list clicked position {position} of query {query!r} and others did not, or a row is there twice. {how}"
        )


def seen_lists(cells: PlacedCells) -> ClickedLists:
    """The lists of one part of a log, each as it was clicked; documents have codes instead of names."""
    code, first, place = _places(cells)
    clicked = np.flatnonzero(cells.clicks > 0)
    again = np.zeros(len(clicked), dtype=np.bool_)
    again[1:] = code[clicked[1:]] == code[clicked[:-1]]
    start = np.where(again, np.concatenate(([0], place[clicked][:-1])), 0)
    last = np.zeros(len(first), dtype=np.int64)
    last[code[clicked]] = place[clicked]  # of several clicks, the lowest on the page stays
    sessions = np.maximum.reduceat(cells.impressions, first)
    unnamed = np.arange(cells.documents)
    return ClickedLists(
        unnamed,
        unnamed,
        code,
        cells.document,
        cells.position,
        np.concatenate([code[clicked], np.arange(len(first))]),
        np.concatenate([start, last]),
        np.concatenate([place[clicked], np.full(len(first), END)]),
        np.concatenate([sessions[code[clicked]], sessions]),
    )


def asked_table(cells: PlacedCells) -> tuple[tuple[Ints, Ints], tuple[int, int]]:
    """Where each cell is in a table (results, lists) of the asked lists, and the shape of that table."""
    code, first, place = _places(cells)
    return (place - 1, code), (int(place.max()), len(first))


def read_down(asked: PlacedCells, clicked: Floats, leaves: Floats, *, continuation: float = 1.0) -> Floats:
    """P(click) of each cell, if people examine it unless something above made them leave.

    `clicked` is P(click | examined) of each cell, `leaves` P(satisfied | examined). Others go on with `continuation`.
    """
    at, shape = asked_table(asked)
    stays, examined = np.ones(shape), np.ones(shape)
    stays[at] = continuation * (1 - leaves)
    examined[1:] = np.cumprod(stays[:-1], axis=0)
    return np.asarray(examined[at] * clicked)


def _places(cells: PlacedCells) -> tuple[Ints, Ints, Ints]:
    """The list of each cell, the first row of each list, and the place of each cell in its list, from 1."""
    if cells.list is None:
        raise InputError("Click models predict clicks of whole result lists, and these cells have none.")
    _, first, code = np.unique(cells.list, return_index=True, return_inverse=True)
    return code, first, np.arange(1, len(code) + 1) - first[code]
