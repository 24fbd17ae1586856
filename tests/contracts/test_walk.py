"""The road of `clickmix debias` through the code leads forwards."""

from __future__ import annotations

import runpy
from pathlib import Path

WALK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "walk.py"))


def test_debias_seldom_steps_backwards() -> None:
    steps = WALK["stages_changed"](WALK["walked_debias"]())
    assert sum(backwards for *_, backwards in steps) < 234
