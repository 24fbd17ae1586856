"""Queries of a report: gains and sums are those a slow computation finds, and only what is shown leaves the engine."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clickmix as cm
from clickmix.report import log_page, page_html
from clickmix.report.log_numbers import labels_at_hand
from clickmix.report.query_numbers import (
    DOCUMENT_BYTES,
    MOST_BYTES,
    POSITION_BYTES,
    QUERY_BYTES,
    QueryTable,
    ShownQuery,
    queries_at_hand,
    read_queries,
)
from oracles_report import gains_slowly

CELLS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 14), st.integers(1, 14), st.integers(1, 30), st.floats(0, 1)),
    min_size=1,
    max_size=40,
    unique_by=lambda cell: cell[:3],
)


def counts_of(cells: Sequence[tuple[Any, ...]]) -> cm.Counts:
    """Counts of (query, document, position, impressions, share of clicks)."""
    query, document, position, impressions, share = (np.array(column) for column in zip(*cells, strict=True))
    return cm.Counts.from_arrays(query, document, position, impressions, np.floor(impressions * share).astype(int))


def shown(counts: cm.Counts, fitted: Any, *, min_sessions: int = 1, most_bytes: int = MOST_BYTES) -> list[ShownQuery]:
    with (
        labels_at_hand(fitted.label(counts)) as labels,
        queries_at_hand(counts, labels, min_sessions=min_sessions) as table,
    ):
        return read_queries(table, most_bytes=most_bytes)


@given(CELLS)
@settings(max_examples=40, deadline=None)
def test_gains_are_those_of_sorting_by_label(cells: list[tuple[Any, ...]]) -> None:
    counts, none = counts_of(cells), cm.NoCorrection()
    labels = none.label(counts)
    relevance = dict(zip(zip(labels.query_id, labels.doc_id, strict=True), labels.relevance, strict=True))
    expected = gains_slowly([cell[:4] for cell in cells], relevance)
    found = shown(counts, none)
    assert {query.query_id: query.gain for query in found} == pytest.approx(expected, abs=1e-6)
    assert [query.gain for query in found] == sorted((query.gain for query in found), reverse=True)
    assert min(query.gain for query in found) >= 0


@given(CELLS)
@settings(max_examples=20, deadline=None)
def test_result_lists_are_in_the_order_shown_with_all_their_evidence(cells: list[tuple[Any, ...]]) -> None:
    counts = counts_of(cells)
    for query in shown(counts, cm.NoCorrection()):
        mine = [cell for cell in cells if cell[0] == query.query_id]
        means = {
            document: sum(p * n for _, d, p, n, _ in mine if d == document)
            / sum(n for _, d, _, n, _ in mine if d == document)
            for document in {cell[1] for cell in mine}
        }
        assert query.documents == len(means)
        assert query.impressions == sum(cell[3] for cell in mine)
        order = [result.doc_id for result in query.results]
        assert order == sorted(order, key=lambda document: (round(means[document], 6), document))
        for result in query.results:
            here = sorted((p, n) for _, d, p, n, _ in mine if d == result.doc_id)
            most = sorted(here, key=lambda pair: (-pair[1], pair[0]))[:5]
            assert [(p, n) for p, n, _ in result.positions] == sorted(most)
            assert result.impressions == sum(n for _, n in here)


def test_a_document_moved_from_the_second_place_to_the_first_gains_what_its_label_says() -> None:
    counts = counts_of([("q", "a", 1, 10, 0.0), ("q", "b", 2, 10, 1.0)])
    (query,) = shown(counts, cm.NoCorrection())
    assert query.gain == pytest.approx(1 - 1 / np.log2(3), abs=1e-6)
    assert [(result.doc_id, result.rank_by_label) for result in query.results] == [("a", 2), ("b", 1)]


def test_documents_shown_often_are_listed_before_those_shown_once_at_the_top() -> None:
    often = [("q", f"often {k}", k, 1000, 0.5) for k in range(1, 11)]
    once = [("q", f"once {i}", 1, 1, 0.0) for i in range(30)]
    (query,) = shown(counts_of([*often, *once]), cm.NoCorrection())
    assert [result.doc_id for result in query.results] == [f"often {k}" for k in range(1, 11)]


def test_intervals_say_how_unsure_a_query_is() -> None:
    rng = np.random.default_rng(0)
    position, documents = np.tile([1, 2, 3], 100), np.arange(300)
    clicks = rng.binomial(20, np.where(rng.random(300) < 0.4, 0.8, 0.2) / position)
    counts = cm.Counts.from_arrays(documents // 10, documents, position, np.full(300, 20), clicks)
    fitted = cm.MixtureCorrection().fit(counts)
    labels = fitted.label(counts)
    widths = labels.columns["high"] - labels.columns["low"]
    found = {query.query_id: query.unsure for query in shown(counts, fitted)}
    assert found == pytest.approx({q: widths[labels.query_id == q].mean() for q in range(30)})


def many_queries(queries: int, name: str = "a query of some length") -> cm.Counts:
    document = np.arange(queries * 10)
    clicks = np.random.default_rng(0).integers(0, 20, len(document))
    texts = np.array([f"{name}, number {i // 10}" for i in document])
    return cm.Counts.from_arrays(texts, document, 1 + document % 10, np.full(len(document), 20), clicks)


@pytest.mark.parametrize("most_bytes", [0, 5_000, 50_000])
def test_as_many_queries_leave_the_engine_as_fit(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    counts, fetched = many_queries(100), []
    rows = type(counts.engine).rows

    def counted(self: Any, query: str) -> list[tuple[Any, ...]]:
        result = rows(self, query)
        fetched.append(len(result))
        return result

    monkeypatch.setattr(type(counts.engine), "rows", counted)
    found = shown(counts, cm.NoCorrection(), most_bytes=most_bytes)
    size = QUERY_BYTES + 33 + 10 * (DOCUMENT_BYTES + 3 + POSITION_BYTES)  # letters of a query and of a document
    assert len(found) == most_bytes // size
    assert sum(fetched) <= len(found) * (1 + 10 + 10) + 12  # queries, documents, positions; and a few facts


@pytest.mark.parametrize("name", ["a query of some length", "\u202e" * 60, "寿司" * 30], ids=["plain", "codes", "wide"])
def test_the_file_stays_below_5_megabytes_and_says_what_it_holds(name: str) -> None:
    counts = many_queries(8_000, name)
    html = page_html(log_page(counts, cm.NoCorrection(), sources=[], correction="none"))
    assert 2_000_000 < len(html.encode()) < 5_000_000
    data = re.findall(r'<script type="application/json">(.*?)</script>', html)[0]
    held = len(json.loads(data)["queries"])
    assert f"This file holds {held:,} of 8,000 queries" in html
    assert f" {8_000 - held:,} with smaller gains did not fit." in html
    assert held > 2_000


def test_a_page_without_queries_to_show_says_so() -> None:
    counts = counts_of([("q", "a", 1, 3, 0.0), ("q", "b", 2, 3, 1.0)])
    html = page_html(log_page(counts, cm.NoCorrection(), sources=[], correction="none"))
    assert "This file holds 0 of 1 query" in html
    assert "1 is left out because its documents were shown fewer than 10 times on average" in html
    assert 'class="queries"' not in html


def test_names_of_queries_are_asked_for_as_texts() -> None:
    counts = counts_of([("it's", "a", 1, 30, 0.0), ("q", "b", 2, 3, 1.0)])
    with (
        labels_at_hand(cm.NoCorrection().label(counts)) as labels,
        queries_at_hand(counts, labels, min_sessions=10) as table,
    ):
        assert isinstance(table, QueryTable)
        assert table.may_show(["it's", "q", "other"]) == {"it's"}
        assert (table.queries, table.hidden) == (2, 1)
