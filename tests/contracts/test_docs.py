"""The examples of the docs print what the pages say they print."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def example(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What the page's first example with output prints, and what the page shows."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(r"```python\n((?:(?!```).)*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert found
    program = folder / "example.py"
    program.write_text(found[1], encoding="utf-8")
    runpy.run_path(str(program))
    return capsys.readouterr().out, found[2]


def test_corrections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed, shown = example("corrections.md", tmp_path, capsys)
    assert printed == shown


def test_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed, shown = example("evaluation.md", tmp_path, capsys)
    first, second, table = printed.split("\n", 2)
    assert first == "1.0 ['books' 'hats' 'shoes'] 1"
    assert second.startswith("0.0526")
    assert table == shown + "\n"
