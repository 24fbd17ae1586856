"""The example of docs/corrections.md prints what the page says it prints."""

import re
import runpy
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "corrections.md"


def test_the_example_prints_what_the_page_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```python\n(import .*?)```\n\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    example = tmp_path / "example.py"
    example.write_text(found[1], encoding="utf-8")
    runpy.run_path(str(example))
    assert capsys.readouterr().out == found[2]
