"""The docs are true: examples print what pages show, paths and links lead somewhere, figures are the committed ones."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clickmix as cm
from clickmix.corrections.correction import CORRECTIONS
from moving_logs import moving_counts
from pages import figures

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def example(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What the page's first example with output prints, and what the page shows."""
    found = re.search(r"```python\n((?:(?!```).)*?)```\n\n```\n(.*?)```", text_of(f"docs/{page}"), re.DOTALL)
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


def test_the_cost_of_the_queries_in_a_report_is_the_one_on_file() -> None:
    found, page = figures("report"), " ".join(text_of("docs/report.md").split())
    assert found["rows"] == 100_000_000
    assert found["processor_seconds"] < 5
    assert found["rows_that_left_the_engine"] <= found["rows_shown"] + 1  # the totals
    assert f"adds {found['processor_seconds']:.1f} seconds of processor time" in page
    assert f"{found['rows_that_left_the_engine']:,} rows leave the engine for the {found['rows_shown']:,}" in page


PROMISES = [line for line in text_of("docs/promises.md").splitlines() if line.startswith("| ") and "`" in line]


@pytest.mark.parametrize("path", sorted({path for line in PROMISES for path in re.findall(r"`(tests/[^`]+)`", line)}))
def test_a_test_that_a_promise_names_exists(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise[2:50])
def test_a_promise_names_its_tests(promise: str) -> None:
    evidence = promise.rsplit(" | ", 1)[1]
    files = re.findall(r"`(tests/[^`]+)`", evidence)
    named = re.findall(r"`(test_\w+|Test\w+)`", evidence)
    sources = "\n".join(text_of(file) for file in files)
    assert files
    assert [name for name in named if not re.search(rf"\b(def|class) {name}\b", sources)] == []


def paths_of_architecture() -> list[str]:
    """Modules of the package that the page names, alone on a line of the road or in backticks."""
    found = re.findall(r"(?:^ *|`)((?:\w+/)*\w+\.py)\b", text_of("docs/architecture.md"), re.MULTILINE)
    return sorted({path for path in found if not path.startswith(("tests/", "benchmarks/"))})


@pytest.mark.parametrize("path", paths_of_architecture())
def test_a_module_that_the_architecture_names_exists(path: str) -> None:
    assert (ROOT / "src" / "clickmix" / path).is_file()


def families() -> list[str]:
    """The names of all families, from the sources."""
    sources = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    return sorted(name for source in sources for name in re.findall(r"^(\w+): Family\[", source, re.MULTILINE))


@pytest.mark.parametrize("family", families())
def test_the_architecture_says_how_to_add_to_every_family(family: str) -> None:
    assert f"| `{family}` |" in text_of("docs/architecture.md")


@pytest.fixture
def constant(tmp_path: Path) -> Iterator[Any]:
    """The correction that the architecture page shows."""
    found = re.search(r"```python\n(.*?)```", text_of("docs/architecture.md"), re.DOTALL)
    assert found
    (tmp_path / "constant.py").write_text(found[1], encoding="utf-8")
    yield runpy.run_path(str(tmp_path / "constant.py"))["Constant"]
    CORRECTIONS.remove("constant")


def test_the_correction_that_the_architecture_shows_works(constant: Any) -> None:
    counts = moving_counts(queries=5)
    assert set(cm.debias(counts, correction="constant", value=0.3).relevance.tolist()) == {0.3}
    assert set(cm.debias(counts, correction=constant(0.3)).relevance.tolist()) == {0.3}


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links() -> list[object]:
    return [
        pytest.param(page, target, id=f"{page.name}:{target}")
        for page in PAGES
        for target in sorted(set(re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))))
        if not target.startswith("http")
    ]


@pytest.mark.parametrize(("page", "target"), links())
def test_a_link_leads_somewhere(page: Path, target: str) -> None:
    file, _, anchor = target.partition("#")
    linked = (page.parent / file).resolve() if file else page
    assert linked.exists()
    assert not anchor or anchor in anchors(linked)
