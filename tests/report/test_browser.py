"""The report in a real browser: nothing is loaded, nothing complains, all can be seen on a phone, a desk and paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import clickmix as cm
from browser import PROGRAM, Browser, started
from clickmix.errors import printable
from clickmix.lab.collections import synthetic_collection
from clickmix.lab.experiments import Study
from clickmix.lab.experiments.configs import FIGURE2
from clickmix.lab.experiments.pages import clicks_page
from clickmix.report import log_page, write_page
from clickmix.report.words import cut

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: the report is not tried in a browser")

HARM = "window.harmed=1;document.title='harmed'"
HOSTILE = [
    f"<script>{HARM}</script>",
    f'"><img src="https://example.com/x.png" onerror="{HARM}">',
    f"</td></table></style></title><svg onload={HARM}>",
    f"<a href='javascript:{HARM}'>x</a><style>*{{display:none}}</style>",
    "\x00\x07\x1b[2J\u202egnp.exe\u200f\r\n",
    "שלום עולם 123 مرحبا",
    "w" * 5000,
    "https://example.com/" + "a/b-" * 40,
    "👩‍👩‍👧 e\u0301",
]
WIDTHS = {"phone": 360, "desktop": 1280}
# Of every figure: left, right, width and height of its box; and whether each text in it lies within it.
BOXES = """[...document.querySelectorAll('svg.figure')].map(figure => {
  const box = figure.getBoundingClientRect();
  const out = [...figure.querySelectorAll('text')].filter(text => {
    const t = text.getBoundingClientRect();
    return t.left < box.left - 1 || t.right > box.right + 1 || t.bottom > box.bottom + 1;
  }).map(text => text.textContent);
  return {left: box.left, right: box.right, width: box.width, height: box.height, out,
          drawn: figure.querySelectorAll('.line, .bar').length};
})"""


def hostile_report(path: Path) -> Path:
    """The report on a log in which hostile documents are those that the correction moves most."""
    rng = np.random.default_rng(0)
    position, documents = np.repeat([1, 2, 9], 200), 600
    relevant = rng.random(documents) < 0.3
    rates = np.where(relevant, np.repeat([0.95, 0.5, 0.2], 200), np.repeat([0.6, 0.2, 0.02], 200))
    clicks = rng.binomial(200, rates)
    names = np.array([f"document {i}" for i in range(documents)], dtype=object)
    much = np.flatnonzero(~relevant & (position == 1))[: len(HOSTILE)]
    little = np.flatnonzero(relevant & (position == 9))[: len(HOSTILE)]
    names[much], names[little], clicks[much], clicks[little] = HOSTILE, HOSTILE, 145, 22
    device = np.where(np.arange(documents) % 2, HOSTILE[1], HOSTILE[6])
    columns = (names, names[::-1], position, np.full(documents, 200), clicks)
    counts = cm.Counts.from_arrays(*(column.tolist() for column in columns), device=device.tolist())
    fitted = cm.MixtureCorrection("binomial", sharing=False).fit(counts)
    write_page(log_page(counts, fitted, sources=HOSTILE, correction="mixture"), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    with started(folder / "profile") as running:
        yield running


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    return hostile_report(folder / "report.html")


def test_the_browser_notices_what_a_page_does(browser: Browser, folder: Path) -> None:
    """Else the tests below could not fail."""
    bad = folder / "bad.html"
    bad.write_text(
        "<meta charset=utf-8><script>console.error('oh')</script><img src='missing.png'><svg class=figure width=2000>"
        "<text x=2100 y=5>far</text></svg>"
    )
    browser.open(bad, width=360)
    assert [Path(address).name for address in browser.requests()] == ["bad.html", "missing.png"]
    assert browser.complaints()
    assert browser.evaluate("document.documentElement.scrollWidth") > 360
    assert browser.evaluate(BOXES)[0]["out"] == ["far"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
class TestOnScreen:
    """Each width and colour scheme."""

    def test_only_the_file_itself_is_loaded_and_nothing_complains(
        self, browser: Browser, page: Path, width: int, dark: bool
    ) -> None:
        browser.open(page, width=width, dark=dark)
        assert browser.requests() == [page.resolve().as_uri()]
        assert browser.complaints() == []

    def test_every_figure_can_be_seen_whole(self, browser: Browser, page: Path, width: int, dark: bool) -> None:
        browser.open(page, width=width, dark=dark)
        figures = browser.evaluate(BOXES)
        assert len(figures) >= 8
        assert [f for f in figures if f["left"] < 0 or f["right"] > width] == []
        assert min(f["width"] for f in figures) >= 300
        assert min(f["height"] for f in figures) >= 150
        assert min(f["drawn"] for f in figures) >= 1
        assert [f["out"] for f in figures if f["out"]] == []

    def test_nothing_has_to_be_moved_sideways(self, browser: Browser, page: Path, width: int, dark: bool) -> None:
        browser.open(page, width=width, dark=dark)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        if width >= 1280:  # on a desk no table either
            hidden = "[...document.querySelectorAll('.scroll')].map(t => t.scrollWidth - t.clientWidth)"
            assert set(browser.evaluate(hidden)) == {0}

    def test_text_stands_out_from_the_paper(self, browser: Browser, page: Path, width: int, dark: bool) -> None:
        browser.open(page, width=width, dark=dark)
        paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(21, 23, 26)" if dark else "rgb(255, 255, 255)")
        assert browser.evaluate("getComputedStyle(document.querySelector('svg text')).fill") != paper


def graded_report(path: Path) -> None:
    """The report on a log of five grades at six positions."""
    rng = np.random.default_rng(0)
    position = np.repeat(np.arange(1, 7), 300)
    clicks = rng.binomial(400, (0.1 + 0.2 * rng.integers(0, 5, 1800)) / position)
    counts = cm.Counts.from_arrays(np.arange(1800), np.arange(1800), position, np.full(1800, 400), clicks)
    write_page(log_page(counts, cm.MixtureCorrection().fit(counts), sources=["log"], correction="mixture"), path)


def experiment_report(path: Path) -> None:
    """The page of an experiment, with curves and tables."""
    study, collection = Study("figure2", runs=2), synthetic_collection(queries=40, rng=np.random.default_rng(0))
    tasks = FIGURE2.tasks(study)
    results = {task.key: {"ndcg@10": 0.5 + 0.01 * task.run, "label error": 0.1} for task in tasks}
    write_page(clicks_page(FIGURE2, study, collection, results), path)


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("made", [graded_report, experiment_report])
def test_other_pages_load_nothing_and_have_nothing_cut_off(
    browser: Browser, folder: Path, made: Callable[[Path], None], width: int
) -> None:
    page = folder / f"{made.__name__}.html"
    if not page.exists():
        made(page)
    browser.open(page, width=width)
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    figures = browser.evaluate(BOXES)
    assert figures
    assert [f for f in figures if f["left"] < 0 or f["right"] > width or f["out"] or not f["drawn"]] == []


def test_hostile_texts_are_shown_and_do_no_harm(browser: Browser, page: Path) -> None:
    browser.open(page, width=1280)
    assert browser.evaluate("window.harmed") is None
    assert browser.evaluate("document.title") == "Clicks and relevance"
    assert browser.evaluate("document.querySelectorAll('script, img, a, iframe').length") == 0
    shown = browser.evaluate("[...document.querySelectorAll('.cards td:first-child')].map(cell => cell.textContent)")
    assert set(shown) <= {printable(cut(text)) for text in HOSTILE}
    assert {f"<script>{HARM}</script>", r"\x00\x07\x1b[2J\u202egnp.exe\u200f\r\n"} <= set(shown)


def test_text_on_a_phone_is_large_enough_to_read(browser: Browser, page: Path) -> None:
    browser.open(page, width=360)
    heights = browser.evaluate(
        "[...document.querySelectorAll('svg.figure text')].map(text => text.getBoundingClientRect().height)"
    )
    assert min(heights) >= 11


def test_tables_wider_than_a_phone_move_by_themselves(browser: Browser, page: Path) -> None:
    browser.open(page, width=360)
    scrolls = "[...document.querySelectorAll('.scroll')].map(t => [t.scrollWidth > t.clientWidth, t.tabIndex])"
    assert [tabindex for wide, tabindex in browser.evaluate(scrolls) if wide] == [0]


def test_on_paper_nothing_is_cut_off(browser: Browser, page: Path, folder: Path) -> None:
    browser.open(page, width=720, dark=True)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 720
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.paper(folder / "report.pdf")
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")
