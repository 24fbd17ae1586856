"""What README and docs show of results on file and of programs they run: made again and written into the pages.

Tables come from benchmarks/results; the outputs of examples, of commands at a prompt (`$`) and of the notebook from
running them. `make pictures` runs this after benchmarks/pictures.py.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path

import measuring  # lets `pages` be found
from clickmix.lab.demo import run_demo
from clickmix.storage.atomic import write_atomically
from pages import BLOCK, NOTEBOOK, PAGES, ROOT, TABLES, commands, example, executed, lines_of, table_below


def replace(page: Path, *pairs: tuple[str, str]) -> None:
    """Write a page with some of its text replaced."""
    text = page.read_text(encoding="utf-8")
    for old, new in pairs:
        text = text.replace(old, new)
    write_atomically(page, text.encode())


def write_tables() -> None:
    """The rows of each table, from the figures on file."""
    for name, head, rows in TABLES:
        page = ROOT / name
        rule = f"{head}\n|{'---|' * (head.count('|') - 1)}\n"
        shown = table_below(page.read_text(encoding="utf-8"), head)
        replace(page, (rule + shown, rule + "".join(f"{row}\n" for row in rows)))


def printed_by(*words: str) -> str:
    """What a command prints."""
    with tempfile.TemporaryFile("w+") as printed:
        measuring.run(measuring.clickmix(*words), printed=printed)
        printed.seek(0)
        return printed.read()


def write_sessions() -> None:
    """What commands at a prompt print, where the page shows it."""
    for page in PAGES:
        asked = list(commands(page.read_text(encoding="utf-8")))
        if any(command.shown for command in asked):
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                for command in asked:
                    printed = printed_by(*command.words[1:])
                    if command.shown:
                        end = "\n" * command.shown.endswith("\n")
                        replace(page, (f"{command.line}\n{command.shown}", f"{command.line}\n{printed.strip()}{end}"))


def write_demo() -> None:
    """The first example of the README, and what the demo prints of its fit."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run_demo(Path("demo"), say=print)
        program, shown = example((ROOT / "README.md").read_text(encoding="utf-8"))
        Path("example.py").write_text(program, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            runpy.run_path("example.py")
        replace(ROOT / "README.md", (shown, printed.getvalue()))
        page = ROOT / "docs" / "trust.md"
        (table,) = (
            body for _, body in BLOCK.findall(page.read_text(encoding="utf-8")) if body.startswith("These labels ")
        )
        replace(page, (table, lines_of(printed_by("inspect", "demo/model.json"), like=table)))


def write_notebook() -> None:
    """The outputs of the tutorial."""
    with tempfile.TemporaryDirectory() as folder:
        made = executed(NOTEBOOK, Path(folder))
    write_atomically(NOTEBOOK, f"{json.dumps(made, indent=1, ensure_ascii=False)}\n".encode())


if __name__ == "__main__":
    os.environ |= {"COLUMNS": "80", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    write_tables()
    write_sessions()
    write_demo()
    write_notebook()
