"""The page of a comparison in a real browser: nothing loaded, nothing too wide, no accessibility faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import clickmix as cm
from browser import AXE, PROGRAM, Browser, started
from judged_logs import judged_log

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: the page is not tried in a browser")

UNFOLD = "document.querySelector('#unfold').click()"
HIDDEN = "Math.max(...[...document.querySelectorAll('.scroll')].map(t => t.scrollWidth - t.clientWidth))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    with started(folder / "profile") as running:
        yield running


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    """Labels come from a file with a hostile name."""
    counts, judgments = judged_log(queries=60)
    labels = folder / "<img src=x onerror=alert(1)> a name that goes on and on and on and on.csv"
    cm.debias(counts, correction="ctr-smoothed").write(labels)
    found = cm.compare(counts, judgments=pa.table(judgments), labels=[str(labels)], corrections=("ctr-smoothed", "ips"))
    found.write(folder / "compare.html", sources=[str(labels)], command=["clickmix", "compare", str(labels)])
    return folder / "compare.html"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_can_be_read(browser: Browser, page: Path, width: int, dark: bool) -> None:
    browser.open(page, width=width, dark=dark)
    browser.evaluate(UNFOLD)
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('svg.figure').length") == 3
    if width == 1400:
        assert browser.evaluate(HIDDEN) <= 0


@pytest.mark.skipif(AXE is None, reason="no axe-core here: accessibility is not checked (CLICKMIX_AXE)")
def test_an_accessibility_engine_finds_nothing(browser: Browser, page: Path) -> None:
    assert AXE is not None
    browser.open(page, width=1400)
    browser.evaluate(UNFOLD)
    browser.evaluate(AXE.read_text(encoding="utf-8"))
    assert browser.evaluate("axe.run().then(d => d.violations.map(v => [v.id, v.nodes[0].html]))") == []
