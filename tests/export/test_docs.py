"""Every command and number of docs/export.md."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest

from clickmix.export.target import EXPORTS, export
from commands import run

ROOT = Path(__file__).parents[2]
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


RANKINGS = ("LambdaMART", "click-through rate", "best feature", "chance")
ROWS: list[dict[str, Any]] = json.loads((ROOT / "benchmarks" / "results" / "export.json").read_text())["figures"][
    "rows"
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['relevance']}, {row['clicks']}, {row['ratings']}")
def test_the_page_shows_the_figures_on_file(row: dict[str, Any]) -> None:
    cells = [f"{each['labels']:.4f} / {each['export']:.4f}" for each in (row["ndcg"][name] for name in RANKINGS)]
    correlation = f"{row['correlation over queries and rankings']:.4f}"
    first = [f"{row['relevance']}, {row['clicks']:,} clicks", row["ratings"].replace("--as", "`--as`")]
    assert f"| {' | '.join([*first, *cells, correlation])} |\n" in PAGE


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['relevance']}, {row['clicks']}, {row['ratings']}")
def test_the_order_of_rankings_is_the_same_against_exported_ratings(row: dict[str, Any]) -> None:
    by_labels, by_export = (sorted(RANKINGS, key=lambda name: row["ndcg"][name][way]) for way in ("labels", "export"))
    assert by_labels == by_export


def test_the_target_of_the_page_works(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "labels.csv").write_text("query_id,doc_id,relevance\nq,d,0.9\n")
    (tmp_path / "tsv.py").write_text(program, encoding="utf-8")
    runpy.run_path(str(tmp_path / "tsv.py"))
    try:
        export(tmp_path / "labels.csv", to="tsv", output=tmp_path / "out.tsv", rating="probability")
    finally:
        EXPORTS.remove("tsv")
    assert (tmp_path / "out.tsv").read_text() == "q\td\t0.900\n"
