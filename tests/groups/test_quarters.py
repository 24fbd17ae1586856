"""Four quarters of a log: nothing is lost, sessions stay whole, impressions are dealt fairly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickmix as cm
from clickmix.counts.counts import Counts
from clickmix.groups.sample import QUARTERS, deal
from logs import Table, small_log, write
from moving_logs import moving_counts
from session_logs import session_log


def cells(counts: Counts) -> Counter[tuple[object, ...]]:
    """Impressions and clicks of every cell."""
    found: Counter[tuple[object, ...]] = Counter()
    for row in counts.engine.rows(counts.query()):
        found[*row[:-2], "impressions"] += row[-2]
        found[*row[:-2], "clicks"] += row[-1]
    return +found


def added_up(parts: list[Counts]) -> Counter[tuple[object, ...]]:
    return sum((cells(part) for part in parts), Counter())


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.ndjson", "log.csv.gz"])
def test_quarters_of_sessions_add_up_to_the_log(tmp_path: Path, name: str) -> None:
    counts = cm.count(write(tmp_path / name, session_log()))
    quarters = deal(counts)
    assert quarters.dealt == "sessions"
    assert added_up([quarters.counts(i) for i in range(QUARTERS)]) == cells(counts)
    assert cells(quarters.counts(0, 1, 2)) == added_up([quarters.counts(i) for i in range(3)])


def by_session(log: Table) -> dict[int, set[tuple[str, int, int]]]:
    found: dict[int, set[tuple[str, int, int]]] = {}
    for query, doc, position, session in zip(
        log["query_id"], log["doc_id"], log["position"], log["session_id"], strict=True
    ):
        found.setdefault(session, set()).add((query, doc, position))
    return found


def test_a_session_is_in_one_quarter() -> None:
    """Every session has documents of its own, so its quarter can be read off the cells."""
    log = session_log()
    log["doc_id"] = [1000 * session + doc for doc, session in zip(log["doc_id"], log["session_id"], strict=True)]
    quarters = deal(cm.count(_frame(log)))
    of_quarter = [{key[:3] for key in cells(quarters.counts(i))} for i in range(QUARTERS)]
    for shown in by_session(log).values():
        assert [shown <= found for found in of_quarter].count(True) == 1
        assert [bool(shown & found) for found in of_quarter].count(True) == 1


def _frame(log: Table) -> Any:
    import pyarrow as pa

    return pa.table(log)


def test_sessions_are_dealt_the_same_way_twice_and_another_way_with_another_seed() -> None:
    counts = cm.count(_frame(session_log()))
    first, again, other = (cells(deal(counts, seed=seed).counts(0)) for seed in (0, 0, 1))
    assert first == again
    assert first != other


@pytest.mark.parametrize("lists", [False, True])
def test_without_sessions_impressions_are_dealt(lists: bool) -> None:
    counts = replace(cm.count(_frame(session_log()), lists=lists), parts=())
    quarters = deal(counts)
    assert quarters.dealt == "impressions"
    parts = [quarters.counts(i) for i in range(QUARTERS)]
    assert added_up(parts) == cells(counts)
    assert [part.by_list is not None for part in parts] == [lists] * QUARTERS


def test_the_impressions_of_a_list_go_together() -> None:
    counts = replace(cm.count(_frame(session_log()), lists=True), parts=())
    part = deal(counts).counts(0)
    uneven = f"SELECT list FROM {part.by_list} GROUP BY query_id, list HAVING min(impressions) <> max(impressions)"
    before = f"SELECT list FROM {counts.by_list} GROUP BY query_id, list HAVING min(impressions) <> max(impressions)"
    assert (part.engine.rows(uneven), counts.engine.rows(before)) == ([], [])


def test_impressions_are_dealt_fairly() -> None:
    """Clicks of a quarter are Binomial(clicks, 1/4): all four within 5 standard deviations."""
    counts = moving_counts(device=True)
    shown, clicked = counts.totals()
    quarters = deal(counts)
    for i in range(QUARTERS):
        part = quarters.counts(i)
        assert part.context == ("device",)
        for found, whole in zip(part.totals(), (shown, clicked), strict=True):
            assert abs(found - whole / 4) < 5 * np.sqrt(whole * 3 / 16)


def test_a_cell_with_a_billion_impressions_is_dealt() -> None:
    counts = Counts.from_arrays(["q"], ["d"], [1], [4_000_000_000], [1_000_000_000])
    shown, clicked = deal(counts).counts(0, 1, 2, 3).totals()
    assert clicked / shown == 0.25


@pytest.mark.parametrize("dealt", ["sessions", "impressions"])
def test_a_sample_has_all_cells_of_its_queries(dealt: str) -> None:
    log = small_log(rows=3000)
    log |= {"query_id": [f"q{i % 500}" for i in range(3000)], "session_id": [i // 5 for i in range(3000)]}
    counts = cm.count(_frame(log))
    ((number,),) = counts.engine.rows(f"SELECT count(*) FROM {counts.table}")
    quarters = deal(
        counts if dealt == "sessions" else replace(counts, parts=()), most_cells=round(number / 5), most_impressions=600
    )
    assert quarters.dealt == dealt
    assert quarters.share == pytest.approx(0.2, abs=1e-3)
    sampled, whole = cells(quarters.counts(0, 1, 2, 3)), cells(counts)
    queries = {key[0] for key in sampled}
    assert 60 < len(queries) < 140  # 100 expected, 9 standard deviation
    assert sampled == Counter({key: value for key, value in whole.items() if key[0] in queries})


def test_large_text_files_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = cm.count(write(tmp_path / "log.csv", session_log()))
    monkeypatch.setattr("clickmix.groups.sample.MOST_TEXT", 100)
    assert deal(counts).dealt == "impressions"


def test_a_log_that_is_too_large_is_not_read_again() -> None:
    counts = cm.count(_frame(session_log()))
    rows, _ = counts.totals()
    assert [deal(counts, most_read=most).dealt for most in (rows, rows - 1)] == ["sessions", "impressions"]


def test_a_file_that_is_gone_is_not_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", session_log())
    counts = cm.count(path)
    path.unlink()
    assert deal(counts).dealt == "impressions"
