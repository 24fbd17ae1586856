"""The commands and the program of docs/compare.md run on the files that the page shows."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

from clickmix.comparing.results import MEASURES, PERPLEXITY, SECONDS
from commands import run

PAGE = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
FILES = re.findall(r"`(\w+\.csv)`[^`]*?\n\n```\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
    line for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines() if line.strip()
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_page_shows_three_files() -> None:
    assert [name for name, _ in FILES] == ["clicks.csv", "judged.csv", "mine.csv"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str) -> None:
    done = run(*shlex.split(command)[1:])
    assert done.exit_code == 0
    assert "ctr-then-rank" in done.output
    found = re.search(r"-o (\S+)", command)
    assert found is None or Path(found[1]).stat().st_size > 1000


@pytest.mark.usefixtures("folder")
def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert found
    Path("example.py").write_text(found[1], encoding="utf-8")
    runpy.run_path("example.py")
    assert "production order" in capsys.readouterr().out
    assert "Do clicks mean relevance?" in Path("compare.html").read_text(encoding="utf-8")


def test_the_seconds_of_the_page_are_those_measured() -> None:
    results = Path(__file__).parents[2] / "benchmarks" / "results" / "compare.json"
    found = json.loads(results.read_text(encoding="utf-8"))["figures"]["million"]
    said = f"A million rows take {found['seconds']:.0f} seconds, {found['processor_seconds']:.0f} of processor time"
    assert said in PAGE
    fits = {stage: seconds for stage, seconds in found["stages"].items() if stage.startswith("fitting")}
    slowest = sorted(sorted(fits, key=fits.__getitem__)[-3:])
    assert slowest == ["fitting dbn", "fitting dcm", "fitting plain-em"]
    assert "`dbn`, `dcm` and `plain-em` take longest" in PAGE


@pytest.mark.parametrize("column", [*MEASURES.values(), PERPLEXITY, SECONDS], ids=lambda column: column.name)
def test_the_page_explains_every_column(column: object) -> None:
    heading = column.heading  # type: ignore[attr-defined]
    assert re.search(rf"^\| (\w+, )?{re.escape(heading)}(, \w+)? \|", PAGE, re.MULTILINE)
