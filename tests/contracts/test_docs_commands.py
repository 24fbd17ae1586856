"""Every command and every Python example of README and docs runs, and prints what the page shows."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import typer

import clickmix as cm
from clickmix import cli
from clickmix.registry import Family
from commands import run
from pages import PAGES, ROOT, Command, blocks, commands, numbers_aside

pytestmark = pytest.mark.xdist_group("docs commands")

ELSEWHERE = {"logs.md", "export.md"}  # tests of their own run them: tests/log/test_logs_page.py, tests/export/test_docs.py
LONG = {"reproduce", "demo"}  # tests of their own run them on little data; here their words are read


def on_page(wanted: Any) -> list[object]:
    return [
        pytest.param(page, id=page.name)
        for page in PAGES
        if page.name not in ELSEWHERE and wanted(page.read_text(encoding="utf-8"))
    ]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that pages speak of: a shop's log under several names, features, parameters, a histogram."""
    folder = tmp_path_factory.mktemp("shop")
    assert run("simulate", "-o", str(folder), "--queries", "100", "--clicks", "20000").exit_code == 0
    shutil.copy(folder / "log.parquet", folder / "clicks.parquet")
    with duckdb.connect() as connection:
        log = f"FROM '{folder / 'log.parquet'}'"
        for number, name in enumerate(("monday", "tuesday", "wednesday", "today/first")):
            (folder / name).parent.mkdir(exist_ok=True)
            connection.sql(f"{log} WHERE session_id % 4 = {number}").write_parquet(str(folder / f"{name}.parquet"))
        names = "query_id AS term, doc_id AS sku, position AS rank, clicked AS is_clicked"
        connection.sql(f"SELECT {names} {log}").write_csv(str(folder / "export.csv"))
        histogram = run("sql", "histogram", "--dialect", "duckdb", "--table", "counts").stdout
        cm.count(folder / "log.parquet").write(folder / "counted.parquet")
        connection.sql(f"CREATE VIEW counts AS FROM '{folder / 'counted.parquet'}'")
        connection.sql(histogram).write_csv(str(folder / "histogram.csv"))
    positions = np.arange(1, 21)
    cm.BiasParameters(0.9 / positions, 0.05 / positions).write(folder / "ab.json")
    (folder / "counts").mkdir()
    return folder


@pytest.fixture
def here(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shop's folder to work in."""
    shutil.copytree(shop, tmp_path, dirs_exist_ok=True, copy_function=shutil.copy)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def check_words(words: list[str]) -> None:
    """Let the command read its words without doing anything."""
    group: Any = typer.main.get_command(cli.app)
    with group.make_context("clickmix", words[:1], resilient_parsing=True) as context:
        group.get_command(context, words[0]).make_context(words[0], words[1:])


def check_output(command: Command, printed: str) -> None:
    """What is printed is what the page shows; numbers may differ in the last digits, as machines do."""
    (found, values), (shown, expected) = numbers_aside(printed.strip()), numbers_aside(command.shown.strip())
    assert found == shown
    np.testing.assert_allclose(values, expected, rtol=0.02, atol=0.005)


def run_command(command: Command) -> None:
    words = [word for word in command.words if not re.match(r"[A-Z_]+=", word)]
    if words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    elif words[1] in LONG or "--engine" in words:
        check_words(words[1:])
    else:
        expanded = [name for word in words[1:] for name in (sorted(map(str, Path().glob(word))) or [word])]
        done = run(*expanded)
        assert done.exit_code == 0, f"{command.line}\n{done.output}"
        if command.shown:
            check_output(command, done.stdout)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("page", on_page(lambda text: any(commands(text))))
def test_the_commands_of_a_page_run(page: Path) -> None:
    for command in commands(page.read_text(encoding="utf-8")):
        run_command(command)


# What examples take for granted: names that a sentence before them explains.
GIVEN = {
    "commands.md": "query_id, doc_id, frame = 1, int(cm.debias('clicks.parquet').doc_id[0]), cm.debias('clicks.parquet').to_pandas()[[]]",
}


def names() -> list[str]:
    return sorted(command.callback.__name__ for command in cli.app.registered_commands if command.callback)


def spoken() -> list[object]:
    """Commands in running text: `clickmix debias --report x.html`."""
    return [
        pytest.param(found, id=f"{page.name}: {found}")
        for page in PAGES
        for found in sorted(set(re.findall(r"`clickmix ([a-z][^`]*)`", page.read_text(encoding="utf-8"))))
    ]


def options_of(command: str) -> set[str]:
    group: Any = typer.main.get_command(cli.app)
    with group.make_context("clickmix", [command], resilient_parsing=True) as context:
        return {name for option in group.get_command(context, command).get_params(context) for name in option.opts}


@pytest.mark.parametrize("text", spoken())
def test_a_command_in_running_text_exists_with_its_options(text: str) -> None:
    command = text.replace("\\|", "|").split()[0]
    assert command in names()
    own = {"--depth", "--value"}  # of the members that pages show how to add
    assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", text)) - own <= options_of(command) | {"--help"}
