"""The road of `clickmix debias` through the code stays short, and leads forwards."""

from __future__ import annotations

import runpy
from pathlib import Path

WALK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "walk.py"))


def test_debias_visits_few_files_and_seldom_steps_backwards() -> None:
    calls = WALK["walked_debias"]()
    assert len({file for file, _ in calls}) < 49
    assert sum(backwards for *_, backwards in WALK["stages_changed"](calls)) < 234
