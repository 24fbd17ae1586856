"""Clicks of one session that depend on each other: found in cascades, not found under PBM, and counted right."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascades import simulated_sessions
from clickmix.errors import InputError
from clickmix.judging.dependence import Dependence, Together, click_dependence
from logs import write
from oracles_cascade import pages_of
from session_logs import session_log


def together_slowly(table: dict[str, list[Any]]) -> dict[int, tuple[float, float, float]]:
    """By distance: observed, expected, variance; list by list, pair by pair."""
    lists = defaultdict(list)
    for (query, _), rows in pages_of(table).items():
        lists[query, tuple(sorted((p, d) for p, d, _ in rows))].append({p for p, _, c in rows if c})
    sums: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (_, page), clicked in lists.items():
        n = len(clicked)
        for i, _ in page:
            for j, _ in page:
                if i < j:
                    a, b = sum(i in c for c in clicked), sum(j in c for c in clicked)
                    sums[j - i]["observed"] += sum({i, j} <= c for c in clicked)
                    sums[j - i]["expected"] += a * b / n
                    sums[j - i]["variance"] += a * b * (n - a) * (n - b) / (n * n * (n - 1)) if n > 1 else 0
    return {apart: (s["observed"], s["expected"], s["variance"]) for apart, s in sorted(sums.items())}


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_pairs_are_counted_as_by_hand(tmp_path: Path, name: str) -> None:
    table = session_log(sessions=300)
    found = click_dependence(write(tmp_path / name, table)).together
    expected = together_slowly(table)
    assert [pair.apart for pair in found] == list(expected)
    assert [pair.observed for pair in found] == [o for o, _, _ in expected.values()]
    assert [pair.expected for pair in found] == pytest.approx([e for _, e, _ in expected.values()], abs=1e-6)
    assert [pair.deviation**2 for pair in found] == pytest.approx([v for _, _, v in expected.values()], abs=1e-6)


def test_deviations_are_standard_normal_if_clicks_are_independent() -> None:
    z = [pair.z for seed in range(20) for pair in click_dependence(simulated_sessions("pbm-eta1", seed=seed)).together]
    squares = np.array(z) ** 2
    assert len(z) == 180
    # The mean of 180 squares of standard normals has mean 1 and deviation sqrt(2 / 180).
    assert abs(squares.mean() - 1) < 5 * np.sqrt(2 / 180)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("name", "found"), [("pbm-eta1", False), ("pbm-eta2", False), ("dcm", True), ("ubm", True)])
def test_cascades_are_found_and_nothing_else(name: str, found: bool, seed: int) -> None:
    assert click_dependence(simulated_sessions(name, seed=seed)).found is found


def test_in_words() -> None:
    quiet = Dependence((Together(1, 1_000, 990.0, 30.0),))
    loud = Dependence((Together(1, 1_000, 990.0, 30.0), Together(2, 1_200, 2_000.4, 40.0)))
    tiny = Dependence((Together(1, 1_040_000, 1_000_000.0, 900.0),))
    assert (quiet.found, loud.found, tiny.found) == (False, True, False)
    assert quiet.describe() == "Clicks within a session look independent: the position-based model fits."
    assert loud.describe() == (
        "Clicks within a session depend on each other: positions 2 apart were clicked together 1,200 times; 2,000 "
        "times were expected. Try --examination dcm or ubm."
    )


def test_counts_are_refused(tmp_path: Path) -> None:
    table = {"query_id": ["q"], "list": ["a"], "doc_id": [1], "position": [1], "impressions": [3], "clicks": [1]}
    file = write(tmp_path / "lists.csv", table)
    with pytest.raises(InputError) as caught:
        click_dependence(file)
    assert str(caught.value) == (
        f"{file}: these are counts, which do not show what was clicked together. Use the raw log."
    )
