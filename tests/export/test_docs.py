"""Every command and number of docs/export.md."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest

from clickmix.export.target import EXPORTS, export
from commands import run
from pages import RANKINGS, ROOT, error_text, figures

PAGE = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
BLOCKS: list[str] = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's commands run, one after the other."""
    return tmp_path_factory.mktemp("docs")


@pytest.mark.xdist_group("export docs")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_runs(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "--to onnx" in command:
        pytest.importorskip("onnx", reason="onnx is not installed")
    monkeypatch.chdir(folder)
    program, *words = shlex.split(command)
    done = run(*words)
    assert program == "clickmix"
    assert done.exit_code == 0, done.output
    if "export" in words:
        assert Path(words[words.index("-o") + 1]).exists()


def test_the_page_exports_to_every_target() -> None:
    assert {name for command in COMMANDS for name in re.findall(r"--to (\S+)", command)} == set(EXPORTS.names())


@pytest.mark.parametrize("name", EXPORTS.names())
def test_the_page_has_the_limits_of_every_target(name: str) -> None:
    assert EXPORTS.make(name).limits in PAGE


ROWS: list[dict[str, Any]] = figures("export")["rows"]


def change(ratings: str) -> str:
    """The largest change of a ranking's nDCG@10 that these ratings make, as a page writes it."""
    changes = (
        each["export"] - each["labels"] for row in ROWS if row["ratings"] == ratings for each in row["ndcg"].values()
    )
    return error_text(max(map(abs, changes)))


def test_the_pages_say_what_rounding_costs() -> None:
    evidence = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    three, four, two = (change(f"grades 0 to {largest}") for largest in (3, 4, 1))
    assert f"grades 0 to 3 change the nDCG@10 of a ranking by at most {three}" in PAGE
    assert f"Two grades (`--scale 1`) cost up to {two} if" in PAGE
    assert f"Grades 0 to 3 change nDCG@10 by {three} at most, and grades 0 to 4 by {four}." in evidence
    assert f"Two grades cost up to {two} if" in evidence
    assert change("--as expected-gain") == ".000"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['relevance']}, {row['clicks']}, {row['ratings']}")
def test_the_order_of_rankings_is_the_same_against_exported_ratings(row: dict[str, Any]) -> None:
    by_labels, by_export = (sorted(RANKINGS, key=lambda name: row["ndcg"][name][way]) for way in ("labels", "export"))
    assert by_labels == by_export


def test_the_target_of_the_page_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "export-reference.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "labels.csv").write_text("query_id,doc_id,relevance\nq,d,0.9\n")
    (tmp_path / "tsv.py").write_text(program, encoding="utf-8")
    runpy.run_path(str(tmp_path / "tsv.py"))
    try:
        export(tmp_path / "labels.csv", to="tsv", output=tmp_path / "out.tsv", rating="probability")
    finally:
        EXPORTS.remove("tsv")
    assert (tmp_path / "out.tsv").read_text() == "q\td\t0.900\n"
