"""The road of `clickmix debias` through the code is short, leads forwards, and is on the page that shows it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WALK = runpy.run_path(str(ROOT / "benchmarks" / "walk.py"))
Call = tuple[str, str]  # file and function


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    """The calls of a small `debias`, in order."""
    found: list[Call] = WALK["walked_debias"]()
    return found


def test_debias_seldom_steps_backwards(calls: list[Call]) -> None:
    assert sum(backwards for *_, backwards in WALK["stages_changed"](calls)) < 150


def test_debias_visits_few_files(calls: list[Call]) -> None:
    assert len({file for file, _ in calls}) < 49


def test_the_architecture_page_names_every_file_of_the_road(calls: list[Call]) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    road = page.split("## The road of", 1)[1].split("```")[1]
    assert {file for file, _ in calls} - set(re.findall(r"[\w/]+\.py", road)) == set()
