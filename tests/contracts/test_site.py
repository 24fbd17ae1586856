"""The docs as a site: built strictly and without a network, with every public name, fetching nothing from elsewhere."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import clickmix as cm
from pages import PAGES, ROOT

pytestmark = pytest.mark.xdist_group("site")

# Runs mkdocs where every attempt to open a connection fails.
OFFLINE = """
import socket, sys
def refuse(*_, **__): raise OSError("no network in this test")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli()
"""
PACKAGES = ("clickmix.evaluate", "clickmix.features", "clickmix.lab.users", "clickmix.rankers", "clickmix.report")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-c", OFFLINE, "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = {page.stem for page in PAGES if page.name != "README.md"} | {"tutorial"}
    assert pages <= {path.stem for path in site.glob("*.html")}


def test_the_search_knows_every_page(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {path.name for path in site.glob("*.html")} - {"404.html"} <= found


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = r"""(?:<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=|url\(|@import )["']?(?:https?:)?//[^"')\s>]+"""
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert re.findall(fetched, path.read_text(encoding="utf-8")) == [], path


def test_every_link_and_picture_of_the_site_is_there(site: Path) -> None:
    """Strict building checks links in Markdown; this also those in HTML."""
    for page in site.glob("*.html"):
        found = re.findall(r"""(?:src|href)="([^"#:?]+)["#?]""", page.read_text(encoding="utf-8"))
        assert [target for target in found if not (site / unquote(target).lstrip("/")).exists()] == [], page.name


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = "".join((site / name).read_text(encoding="utf-8") for name in ("api.html", "api-packages.html"))
    names = [f"clickmix.{name}" for name in cm.__all__]
    names += [f"{package}.{name}" for package in PACKAGES for name in importlib.import_module(package).__all__]
    assert [name for name in names if f'id="{name}"' not in reference] == []


def test_examples_are_code_in_the_reference(site: Path) -> None:
    for name in ("api.html", "api-packages.html"):
        page = (site / name).read_text(encoding="utf-8")
        assert "<blockquote>" not in page  # what Markdown makes of >>>
        assert "doctest:" not in page
    examples = (site / "api.html").read_text(encoding="utf-8").count('<span class="gp">')
    assert examples >= len(cm.__all__)


@pytest.mark.parametrize("package", ["clickmix", *PACKAGES])
def test_every_name_has_an_example(package: str) -> None:
    module = importlib.import_module(package)
    names = {name: getattr(module, name) for name in module.__all__}
    assert [n for n, value in names.items() if callable(value) and ">>>" not in (inspect.getdoc(value) or "")] == []


def test_links_are_called_after_their_page(site: Path) -> None:
    pages = [page.read_text(encoding="utf-8") for page in site.glob("*.html")]
    assert [name for page in pages for name in re.findall(r">([a-z-]+\.md)</a>", page)] == []


def test_bars_in_the_code_of_tables_stand_alone(site: Path) -> None:
    """GitHub needs a backslash before them; the site would show it."""
    for page in site.glob("*.html"):
        assert [
            code for code in re.findall("<code>(.*?)</code>", page.read_text(encoding="utf-8")) if r"\|" in code
        ] == []


def test_the_notebook_is_a_page_with_its_outputs(site: Path) -> None:
    tutorial = (site / "tutorial.html").read_text(encoding="utf-8")
    assert "root mean squared error" in tutorial
    assert "<table" in tutorial


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lists_begin_after_an_empty_line(page: Path) -> None:
    """GitHub needs none; the site would run the items together."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^(?![-*|] | |\d+\. ).+\n[-*] .*", text, re.MULTILINE) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_external_addresses_are_well_formed(page: Path) -> None:
    addresses = re.findall(r"\]\((\w+:[^)]*)\)", page.read_text(encoding="utf-8"))
    assert [each for each in addresses if not re.fullmatch(r"https://[\w.-]+\.[a-z]{2,}(/\S*)?", each)] == []
