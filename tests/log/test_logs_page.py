"""Every recipe of docs/logs.md runs on the files that the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from commands import run

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([^`\n]+)`:\n\n```\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))
COMMANDS = [
    line for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines() if line.strip()
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_recipe_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = run(*shlex.split(command)[1:])
    assert done.exit_code == 0
    assert done.output


def test_the_page_names_every_format() -> None:
    from clickmix.log.layout import LAYOUTS

    assert [name for name in LAYOUTS.names() if name != "auto" and f"| `{name}` |" not in PAGE] == []


@pytest.mark.parametrize(
    ("columns", "table"),
    [
        (
            "query_id=query_md5,doc_ids=url_md5,clicked=click,positions=position",
            {"query_md5": ["q"], "url_md5": [["a", "b"]], "position": [[1, 3]], "click": [[0, 1]]},
        ),
        ("doc_ids=query_doc_ids,clicked=clicks", {"query_id": [1], "query_doc_ids": [[7, 8]], "clicks": [[0, 1]]}),
        (
            "query_id=query_md5,doc_id=url_md5,clicked=click",
            {"query_md5": ["q", "q"], "url_md5": ["a", "b"], "position": [1, 3], "click": [0, 1]},
        ),
    ],
    ids=["Baidu-ULTR lists", "CLAX", "Baidu-ULTR rows"],
)
def test_columns_of_research_logs(tmp_path: Path, columns: str, table: dict[str, list[object]]) -> None:
    from logs import write

    assert f"`--columns {columns}`" in PAGE
    log = write(tmp_path / "log.parquet", table)
    done = run("counts", str(log), "-o", str(tmp_path / "counts.csv"), "--columns", columns)
    assert done.output.startswith("Read 2 impressions and 1 click.\n")
