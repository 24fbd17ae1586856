"""Every command and every Python example of README and docs runs, and prints what the page shows."""

from __future__ import annotations

import gzip
import json
import os
import re
import runpy
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import typer

import clickmix as cm
from clickmix import cli
from clickmix.corrections.correction import CORRECTIONS
from clickmix.export.target import EXPORTS
from clickmix.lab import demo
from clickmix.rankers import RANKERS
from clickmix.registry import Family
from clickmix.report import SECTIONS
from commands import run
from pages import (
    NOTEBOOK,
    PAGES,
    ROOT,
    TABLES,
    Command,
    blocks,
    commands,
    example,
    executed,
    lines_of,
    numbers_aside,
    output_texts,
    table_below,
)

pytestmark = pytest.mark.xdist_group("docs commands")

# Tests of their own run these pages: tests/log/test_logs_page.py, tests/export/test_docs.py and test_loop_page.py,
# tests/comparing/test_compare_docs.py.
ELSEWHERE = {"logs.md", "export.md", "loop.md", "compare.md"}
LONG = {"reproduce", "demo"}  # tests of their own run them on little data; here their words are read
SHORTER = {"regression-em": ["--iterations", "1"]}


def on_page(wanted: Callable[[str], Any]) -> list[object]:
    return [
        pytest.param(page, id=page.name)
        for page in PAGES
        if page.name not in ELSEWHERE and wanted(page.read_text(encoding="utf-8"))
    ]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that pages speak of: a shop's log under several names, features, parameters, a histogram."""
    folder = tmp_path_factory.mktemp("shop")
    assert run("simulate", "-o", str(folder), "--queries", "60", "--clicks", "6000").exit_code == 0
    with duckdb.connect() as connection:
        log = f"FROM '{folder / 'log.parquet'}'"
        device = "CASE session_id % 2 WHEN 0 THEN 'mobile' ELSE 'desktop' END AS device"
        connection.sql(f"SELECT *, {device} {log}").write_parquet(str(folder / "clicks.parquet"))
        for number, name in enumerate(("monday", "tuesday", "wednesday", "today/first")):
            (folder / name).parent.mkdir(exist_ok=True)
            connection.sql(f"{log} WHERE session_id % 4 = {number}").write_parquet(str(folder / f"{name}.parquet"))
        names = "query_id AS term, doc_id AS sku, position AS rank, clicked AS is_clicked"
        connection.sql(f"SELECT {names} {log}").write_csv(str(folder / "export.csv"))
        judged = f"SELECT query_id, doc_id, grade FROM '{folder / 'truth.parquet'}' WHERE query_id % 2 = 0"
        connection.sql(judged).write_csv(str(folder / "judged.csv"))
        histogram = run("sql", "histogram", "--dialect", "duckdb", "--table", "counts").stdout
        counts = cm.count(folder / "log.parquet")
        counts.write(folder / "counted.parquet")
        cm.debias(counts).write(folder / "labels.parquet")
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


def check_text(printed: str, shown: str) -> None:
    """What is printed is what the page shows; numbers may differ in the last digits, as machines do."""
    (found, values), (expected, numbers) = numbers_aside(printed.strip()), numbers_aside(shown.strip())
    assert found == expected, "run: make pictures"
    np.testing.assert_allclose(values, numbers, rtol=0.02, atol=0.005, err_msg="run: make pictures")


def run_command(command: Command) -> None:
    words = [word for word in command.words if not re.match(r"[A-Z_]+=", word)]
    if words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    elif words[1] in LONG or "--engine" in words:
        check_words(words[1:])
    else:
        expanded = [name for word in words[1:] for name in (sorted(map(str, Path().glob(word))) or [word])]
        done = run(*expanded, *(option for word in words for option in SHORTER.get(word, [])))
        assert done.exit_code == 0, f"{command.line}\n{done.output}"
        if command.shown:
            check_text(done.stdout, command.shown)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("page", on_page(lambda text: any(commands(text))))
def test_the_commands_of_a_page_run(page: Path) -> None:
    for command in commands(page.read_text(encoding="utf-8")):
        run_command(command)


# Names that examples take for granted, because the text around them explains them.
GIVEN = {
    "commands.md": """
frame = __import__("pandas").read_parquet("clicks.parquet")
query_id, doc_id = (int(ids[0]) for ids in (frame["query_id"], frame["doc_id"]))
""",
    "corrections.md": "alpha, beta = 0.9 / np.arange(1, 21), 0.05 / np.arange(1, 21)",
    "report-reference.md": """
counts = cm.count("clicks.parquet")
fit = cm.MixtureCorrection().fit(counts)
clicks, ndcg, low, high, other = [1e3, 1e4], [0.4, 0.5], [0.3, 0.4], [0.5, 0.6], [0.3, 0.4]
from clickmix.report import Listing
table = Listing(["ranker"], [["ours"]])
""",
}


def yandex_lines() -> str:
    """A small log in the format of the Yandex challenge, in which documents move."""
    rng = np.random.default_rng(0)
    lines = []
    for session in range(800):
        shown = 10 * (session % 4) + rng.permutation(10)
        lines.append("\t".join(map(str, (session, 0, "Q", session % 4, 1, *shown))))
        clicked = shown[rng.random(10) < 0.8 / np.arange(1, 11) * (0.3 + 0.07 * (shown % 10))]
        lines += [f"{session}\t{time + 1}\tC\t{document}" for time, document in enumerate(clicked)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def families_stay() -> Iterator[None]:
    """Members that examples register are removed again."""
    families: tuple[Family[Any], ...] = (CORRECTIONS, EXPORTS, RANKERS, SECTIONS)
    before = [family.names() for family in families]
    yield
    for family, names in zip(families, before, strict=True):
        for name in set(family.names()) - set(names):
            family.remove(name)


@pytest.mark.usefixtures("families_stay")
@pytest.mark.parametrize("page", on_page(lambda text: blocks(text, "python")))
def test_the_examples_of_a_page_run(page: Path, here: Path) -> None:
    (here / "relpred.tsv.gz").write_bytes(gzip.compress(yandex_lines().encode()))
    (here / "MSLR-WEB30K").mkdir()
    for part in ("train", "vali", "test"):
        shutil.copy(here / f"{part}.parquet", here / "MSLR-WEB30K" / f"{part}.parquet")
    (here / "demo").mkdir()
    shutil.copy(here / "clicks.parquet", here / "demo" / "clicks.parquet")
    prelude = f"import numpy as np\nimport clickmix as cm\n{GIVEN.get(page.name, '')}\n"
    program = here / "example.py"
    program.write_text(prelude + "\n".join(blocks(page.read_text(encoding="utf-8"), "python")), encoding="utf-8")
    runpy.run_path(str(program))


def test_the_first_example_of_the_readme_prints_what_it_shows(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "compare_rankers", lambda *_, **__: None)
    demo.run_demo(here / "demo", say=lambda text: None)
    program, shown = example((ROOT / "README.md").read_text(encoding="utf-8"))
    (here / "example.py").write_text(program, encoding="utf-8")
    capsys.readouterr()
    runpy.run_path(str(here / "example.py"))
    check_text(capsys.readouterr().out, shown)
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    (table,) = (body for body in blocks(page) if body.startswith("These labels "))
    check_text(lines_of(run("inspect", "demo/model.json").stdout, like=table), table)


@pytest.mark.parametrize(("page", "head", "rows"), TABLES, ids=lambda value: value if str(value)[-3:] == ".md" else "")
def test_a_table_shows_the_figures_on_file(page: str, head: str, rows: list[str]) -> None:
    shown = table_below((ROOT / page).read_text(encoding="utf-8"), head)
    assert shown.splitlines() == rows, "run: make pictures"


@pytest.mark.xdist_group("notebook")
def test_the_notebook_gives_the_outputs_it_is_committed_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the notebook's own machinery
        made = executed(NOTEBOOK, tmp_path)
    committed = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    for found, shown in zip(output_texts(made), output_texts(committed), strict=True):
        check_text(found, shown)


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
