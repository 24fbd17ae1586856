"""What SECURITY.md says was tried is what the committed file says."""

from __future__ import annotations

import json
from pathlib import Path

from trials import table_rows

ROOT = Path(__file__).parents[2]


def test_the_numbers_of_hostile_tests_are_the_counted_ones() -> None:
    figures = json.loads((ROOT / "benchmarks/results/hostile.json").read_text(encoding="utf-8"))["figures"]
    rows = table_rows(figures)
    shown = (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if row not in shown] == []
